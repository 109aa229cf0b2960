"""The command `wse run`: a model on the emulated cluster, as on the real one."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from wse._command import told
from wse._numbers import one_of, positive

if TYPE_CHECKING:
    from wse.job import Job, Params
    from wse.models.doors.given import ReadModel

EXAMPLE = """Example:

  wse run CSX --params params.yaml --num_csx 4 --num_steps 100 --model_dir run --mode train"""
TARGETS = ("CSX",)
MODES = ("train", "eval", "infer")


def run(
    target: Annotated[str, typer.Argument(help="CSX: the emulated cluster.")],
    params: Annotated[Path, typer.Option("--params", help="The params file, YAML.")],
    mode: Annotated[str, typer.Option("--mode", help="train, eval or infer.")] = "train",
    num_csx: Annotated[
        int | None, typer.Option("--num_csx", help="Systems; left out: the file's.")
    ] = None,
    num_steps: Annotated[
        int | None, typer.Option("--num_steps", help="Steps; left out: the file's.")
    ] = None,
    model_dir: Annotated[str, typer.Option("--model_dir", help="Folder of the run.")] = "",
    model: Annotated[str, typer.Option("--model", help="package.module:Class.")] = "",
    weights: Annotated[
        str, typer.Option("--weights", help="A safetensors file to start from.")
    ] = "",
    execution_strategy: Annotated[
        str, typer.Option("--execution_strategy", help="weight_streaming or pipeline.")
    ] = "",
    machine: Annotated[str, typer.Option("--machine", help="cs1, cs2, cs3 or YAML.")] = "cs2",
    validate_only: Annotated[bool, typer.Option("--validate_only", help="Check, stop.")] = False,
    compile_only: Annotated[bool, typer.Option("--compile_only", help="Estimate, stop.")] = False,
) -> None:
    """Train, evaluate or predict on the emulated cluster. An interrupted training goes on."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("wse").setLevel(logging.INFO)
    with told():
        _check(target, mode)
        only = validate_only or compile_only
        if only and weights:
            raise ValueError(f"weights is {weights!r}; nothing is trained here: leave it out")
        if only and (named := _named(params, model)):
            asked = (num_csx, num_steps)
            how = execution_strategy or None
            raise typer.Exit(_shapes_alone(named, machine, asked, how, validate_only))
        changes = {
            "num_csx": num_csx,
            "model_dir": model_dir,
            "execution_strategy": execution_strategy,
        }
        job = replace(_job(params, model, machine, num_steps, changes), weights=weights or None)
        if only:
            raise typer.Exit(_only(job, validate_only))
        _run(job, mode)


def _check(target: str, mode: str) -> None:
    if target not in TARGETS:
        raise ValueError(f"target is {target!r}; only CSX is emulated: wse run CSX --params ...")
    one_of("mode", mode, MODES, "pass --mode")


def _named(path: Path, module: str) -> "ReadModel | None":
    """A model that the file names, of the catalogue or the Model Zoo: it needs no samples here."""
    from wse import _document
    from wse.job import read
    from wse.models.doors import modelzoo
    from wse.models.doors.given import ReadModel
    from wse.models.shapes.foreign import check_params
    from wse.models.trainable.which import by_name, in_catalogue

    if module:
        return None
    check_params(path)
    found = _document.read(path)
    model: Any = found.get("model")
    if not isinstance(model, dict) or not in_catalogue(cast("Any", model)):
        return modelzoo.from_document(found, path.stem) if modelzoo.is_modelzoo(found) else None
    said = read(path)
    entered, config = said.train_input or said.eval_input, said.runconfig
    made = by_name(said.model, entered.sequence if entered else {})
    half = said.precision and said.precision.mixed_precision and said.precision.fp16_type
    return ReadModel(
        made.workload,
        made.family,
        made.net,
        batch=entered.batch_size if entered else None,
        systems=config.num_csx,
        steps=config.max_steps,
        precision=half or None,
    )


def _shapes_alone(
    found: "ReadModel",
    name: str,
    counts: tuple[int | None, int | None],
    strategy: str | None,
    validate: bool,
) -> int:
    """Print what of a model by name would port, or what it would take; return the exit code."""
    from wse.checks import check
    from wse.cli import params as cli_params
    from wse.job.run import MODES as STRATEGIES
    from wse.machine import specification

    if strategy is not None:
        one_of("execution_strategy", strategy, STRATEGIES)
    systems, steps = counts
    if systems is not None:
        positive("num_csx", systems, "pass --num_csx 1")
    cluster = cli_params.cluster_of(found, specification.find(name), systems)
    cluster = replace(cluster, mode=STRATEGIES.get(strategy or "", cluster.mode))
    if validate:
        report = check(found, machine=cluster)
        typer.echo(str(report))
        return 0 if report.portable else 1
    asked = (
        found
        if steps is None
        else replace(found, steps=positive("num_steps", steps, "pass --num_steps 100"))
    )
    typer.echo(str(cli_params.estimated(asked, cluster)))
    return 0


def _job(path: Path, module: str, machine: str, steps: int | None, given: dict[str, Any]) -> "Job":
    from wse.job import Job, read
    from wse.machine import specification

    said: Params = read(path)
    changes = {name: value for name, value in given.items() if value not in (None, "")}
    said = replace(said, runconfig=replace(said.runconfig, **changes))
    return Job(said, module or None, specification.find(machine), steps)


def _only(job: "Job", validate: bool) -> int:
    """Print what would port, or what it would take; return the exit code."""
    from wse.checks import check
    from wse.predict.estimate import estimate

    if validate:
        report = check(*job.asked, machine=job.cluster)
        typer.echo(str(report))
        return 0 if report.portable else 1
    samples = job.last * job.samples.plan.batch_size
    typer.echo(str(estimate(*job.asked, machine=job.cluster, samples=samples)))
    return 0


def _run(job: "Job", mode: str) -> None:
    from wse.job import evaluate, infer, train

    if mode == "eval":
        evaluate(job)
    elif mode == "infer":
        typer.echo(f"{infer(job)}")
    else:
        done = train(job)
        typer.echo(
            f"{done.total_samples} samples in {done.total_time:.1f} s on this computer, after "
            f"{done.compile_time:.1f} s of compiling; weights, trace and "
            f"records in {job.folder}"
        )
