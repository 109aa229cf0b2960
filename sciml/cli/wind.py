"""The commands `sciml wind train`, `predict`, `nets` and `score`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from wse._command import told

wind = typer.Typer(help="Nets that refine wind, from files to files.", no_args_is_help=True)


def label(text: str) -> int | str:
    """Return a member's number, or its name."""
    return int(text) if text.isdigit() else text


Height = Annotated[float | None, typer.Option(help="Which of several heights, in m.")]
Pressure = Annotated[float | None, typer.Option(help="Which of several levels, in hPa.")]
ModelLevel = Annotated[int | None, typer.Option(help="Of WRF: U and V of this level.")]
Kind = Annotated[str | None, typer.Option("--level", help="Of GRIB: another one, as tropopause.")]
Variable = Annotated[list[str] | None, typer.Option(help="The wind's names in the files.")]
Member = Annotated[Any, typer.Option(parser=label, metavar="label", help="Which of an ensemble.")]
Lead = Annotated[float | None, typer.Option("--lead", help="Which hour of several forecasts.")]
Row = Annotated[str | None, typer.Option("--first-row", help="south or north, if untold.")]


@wind.command()
def train(
    settings: Annotated[Path, typer.Argument(help="YAML: data, model, recipe …")],
    out: Annotated[Path | None, typer.Option(help="The file of the net.")] = None,
    epochs: Annotated[int | None, typer.Option(help="In place of the file's.")] = None,
    seed: Annotated[int | None, typer.Option(help="In place of the file's.")] = None,
) -> None:
    """Train a net on the files of a YAML file. An interrupted training goes on.

    Example: sciml wind train wind.yaml --out net.wind
    """
    from dataclasses import replace

    with told():
        from sciml.downscale import commands
        from sciml.downscale.settings import settings as read

        given = {"out": out and str(out), "epochs": epochs, "seed": seed}
        changes: Any = {name: value for name, value in given.items() if value is not None}
        path, net = commands.train(replace(read(settings), **changes))
        kept = int(net.trained.validated[net.trained.validation.argmin()])
        typer.echo(
            f"{path}: {net.weights:,} weights, epoch {kept} of {len(net.trained.loss)} kept, "
            f"validation loss {net.trained.validation.min():.4g}, {net.trained.train_s:.0f} s"
        )


@wind.command()
def predict(
    net: Annotated[str, typer.Argument(help="A file that train wrote, or a name of `nets`.")],
    files: Annotated[list[Path], typer.Argument(help="Coarse wind, of one grid.")],
    out: Annotated[Path, typer.Option(help="netCDF, or Zarr if it ends in .zarr.")],
    others: Annotated[
        list[Path] | None, typer.Option("--with", help="Nets of other seeds: the mean of all.")
    ] = None,
    factor: Annotated[int | None, typer.Option(help="Of a Cascade; none: its own.")] = None,
    coarsen: Annotated[bool, typer.Option(help="The files are fine: average them first.")] = False,
    onto: Annotated[
        Path | None, typer.Option(help="A file of the fine grid, if the coarse one is another.")
    ] = None,
    statics: Annotated[Path | None, typer.Option(help="Land and relief, on the fine grid.")] = None,
    draws: Annotated[int, typer.Option(help="Of a net that draws: fields at each time.")] = 0,
    seed: Annotated[int, typer.Option(help="Of the draws.")] = 0,
    folds: Annotated[bool, typer.Option(help="Average over all symmetries: slower.")] = False,
    height_m: Height = None,
    pressure_hpa: Pressure = None,
    model_level: ModelLevel = None,
    level: Kind = None,
    variable: Variable = None,
    member: Member = None,
    lead_h: Lead = None,
    first_row: Row = None,
) -> None:
    """Refine coarse wind. Its coordinates and attributes are kept.

    Example: sciml wind predict net.wind coarse.nc --out fine.nc
    """
    with told():
        from sciml.downscale import commands, load_downscaling
        from sciml.wind import onto_blocks, open_statics
        from sciml.wind import open as open_wind
        from sciml.wind.prepare.resolution import coarser

        trained = load_downscaling(net)
        trained = trained.averaged(*(load_downscaling(other) for other in others or ()))
        trained = trained if factor is None else trained.at(factor)
        trained = trained.folded() if folds else trained
        choice: Any = {
            "height_m": height_m,
            "pressure_hpa": pressure_hpa,
            "model_level": model_level,
            "level": level,
            "variable": variable or None,
            "member": member,
            "lead_h": lead_h,
            "first_row": first_row,
        }
        winds = open_wind(files, allow_missing=True, beside=trained.beside, **choice)
        if onto is not None and coarsen:
            raise ValueError("--onto is of coarse files, --coarsen of fine ones; give one of them")
        winds = coarser(winds, trained.model.factor) if coarsen else winds
        if onto is not None:
            grid = open_wind(onto, allow_missing=True, lazy=True, first_row=first_row)
            winds = onto_blocks(winds, grid, trained.model.factor)
        ground = None if statics is None else open_statics(statics)
        path = commands.refine_file(trained, winds, out, ground, draws=draws, seed=seed)
        typer.echo(f"{path}")


@wind.command()
def nets(
    name: Annotated[str | None, typer.Argument(help="One of them: all that its card says.")] = None,
) -> None:
    """List the trained nets that come with the package, for `predict`.

    Example: sciml wind nets wind4
    """
    with told():
        from sciml.downscale import card, net_names

        typer.echo(
            "\n".join(f"{one}: {card(one).title}" for one in net_names())
            if name is None
            else str(card(name))
        )


@wind.command()
def score(
    prediction: Annotated[Path, typer.Argument(help="A file that predict wrote.")],
    truth: Annotated[
        list[Path],
        typer.Argument(help="Fine wind of the same grid and times, or a table of stations."),
    ],
    coarse: Annotated[
        list[Path] | None, typer.Option(help="What was refined; none: block means of the truth.")
    ] = None,
    factor: Annotated[int | None, typer.Option(help="None: as the prediction says.")] = None,
    tolerance_h: Annotated[float, typer.Option(help="Times so far apart count as one.")] = 0.0,
    method: Annotated[str, typer.Option(help="At stations: nearest or bilinear.")] = "nearest",
    out: Annotated[Path | None, typer.Option(help="The table as CSV.")] = None,
    height_m: Height = None,
    pressure_hpa: Pressure = None,
    model_level: ModelLevel = None,
    level: Kind = None,
    variable: Variable = None,
    member: Member = None,
    lead_h: Lead = None,
    first_row: Row = None,
) -> None:
    """Score a prediction beside interpolations. Errors, skill with its interval, spectra, extremes.

    Example: sciml wind score fine.nc truth_u.grib truth_v.grib --out scores.csv
    """
    with told():
        from sciml.downscale import commands
        from sciml.downscale.comparison import scores
        from sciml.wind import open as open_wind

        guess = commands.read_prediction(prediction)
        choice: Any = {
            "height_m": height_m,
            "pressure_hpa": pressure_hpa,
            "model_level": model_level,
            "level": level,
            "variable": variable or None,
            "member": member,
            "lead_h": lead_h,
            "first_row": first_row,
        }
        winds = None if not coarse else open_wind(coarse, allow_missing=True, **choice)
        by = commands.factor_of(guess, factor)
        if commands.are_stations(truth):
            table = commands.score_stations(
                guess, truth, by, winds, height_m=height_m, tolerance_h=tolerance_h, method=method
            )
        else:
            known = open_wind(truth, allow_missing=True, **choice)
            table = scores(guess, known, by, winds, tolerance_h=tolerance_h)
        if out is not None:
            commands.write_table(table, out)
        typer.echo(commands.as_text(table))
