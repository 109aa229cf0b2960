"""The command `wse`: parses, calls, prints."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from wse._command import Commands, Version, told, written
from wse._numbers import positive
from wse.cli import compare as cli_compare
from wse.cli import params as cli_params
from wse.cli import port as cli_port
from wse.cli import run as cli_run

if TYPE_CHECKING:
    from wse.machine.cluster import Cluster
    from wse.machine.machine import Sourced
    from wse.models.doors.given import ReadModel

app = typer.Typer(
    cls=Commands,
    help="What it would take to train on a wafer-scale machine.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

EXAMPLES = (
    "wse estimate --width 2048",
    "wse estimate --model GPT-J-6B --systems 2 --batch 120 --json",
    'wse compare --model GPT-J-6B --machines "cs2,8 x h100" --batch 128',
    "wse estimate --model mine.yaml --machine mine-machine.yaml --sequence 4096",
    "wse estimate --params params_llama2_7b.yaml",
    "wse sweep --model GPT-3-13B --systems 1,4,16 --batch 256,1024 --density 1,0.25",
    "wse workloads",
    "wse machines",
    "wse check GPT-2-small",
    "wse check package.module:function",
    "wse check model.py:Net --example 8x3x224x224",
    "wse check --params params_llama2_7b.yaml",
    "wse port model.py:Net --example 8x3x224x224 --out port.html",
    "wse run CSX --params params.yaml --num_csx 4 --mode train",
)


def examples(command: str = "") -> str:
    """Return the examples of one command, or of all, for the end of its help."""
    own = [line for line in EXAMPLES if line.startswith(f"wse {command}")]
    return "\n\n".join(["Examples:", *own])


MODEL = (
    "A name of `wse workloads`, a YAML file, or your own program: package.module:function, "
    "model.py:Net."
)
Model = Annotated[str, typer.Option(help=MODEL)]
Params = Annotated[str, typer.Option("--params", help="A params file, or a config.json.")]
MachineName = Annotated[str, typer.Option(help="cs1, cs2, cs3, cg1, or a YAML file.")]
Sequence = Annotated[int | None, typer.Option(help="Tokens per sample; left out: the model's.")]
Mode = Annotated[str, typer.Option(help="streaming or pipelined; empty: what fits the model.")]
Release = Annotated[
    str, typer.Option(help="Of the vendor's software; empty: the last in this mode.")
]
Batch = Annotated[
    int | None,
    typer.Option(help="Samples per step; left out: your program's, or 100 for each system."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


app.command(epilog=cli_run.EXAMPLE)(cli_run.run)
app.command(epilog=cli_compare.EXAMPLE)(cli_compare.compare)
app.command(epilog=cli_port.EXAMPLE)(cli_port.port)


@app.callback(epilog=examples())
def main(_version: Version = False) -> None:
    """What it would take to train on a wafer-scale machine."""


@app.command(epilog=examples("estimate"))
def estimate(
    model: Model = "",
    params: Params = "",
    machine: Annotated[
        str, typer.Option(help="cs1, cs2, cs3, cg1, a YAML file; h100 and the like; here.")
    ] = "cs2",
    systems: Annotated[
        int | None, typer.Option(help="Systems; left out: the file's or machine's.")
    ] = None,
    batch: Batch = None,
    sequence: Sequence = None,
    example: cli_params.Example = "",
    batch_size: cli_params.BatchSize = None,
    has_aux: cli_params.HasAux = None,
    mode: Mode = "",
    release: Release = "",
    samples: Annotated[
        int | None, typer.Option(help="Processed; the file's, or 10^6, if left out.")
    ] = None,
    density: Annotated[float, typer.Option(help="Share of weights that are not zero.")] = 1.0,
    micro_batch: Annotated[
        int | None, typer.Option(help="Samples at once; left out: as many as fit.")
    ] = None,
    forward: Annotated[bool, typer.Option(help="Answer one batch instead of training.")] = False,
    width: Annotated[int | None, typer.Option(help="Dense net: units per layer, or 2048.")] = None,
    depth: Annotated[int | None, typer.Option(help="Dense net: hidden layers, or 8.")] = None,
    inputs: Annotated[int | None, typer.Option(help="Dense net: numbers in, or 1000.")] = None,
    outputs: Annotated[int | None, typer.Option(help="Dense net: numbers out, or 2.")] = None,
    as_json: AsJson = False,
) -> None:
    """Seconds to train a model, phase by phase. Without a model a dense net's.

    A program of yours is imported and runs as Python runs it; a module is called with --example.
    """
    from dataclasses import replace

    from wse.models import own
    from wse.models.doors.given import ReadModel
    from wse.models.shapes.workload import dense
    from wse.predict import inference as answer

    sizes = {"inputs": inputs, "width": width, "depth": depth, "outputs": outputs}
    with told():
        cluster = _any_machine(machine, systems, mode, forward)
        if params or model:
            named = f"params {params!r}" if params else f"model {model!r}"
            cli_params.refuse_beside(f"{named}, which has its own", **sizes)
        if forward:
            one = "--forward, which answers one batch"
            cli_params.refuse_beside(one, samples=samples, micro_batch=micro_batch)
        said = cli_params.said_of(params or model, batch_size, has_aux)
        if params:
            own.check_example(params, example)
            read = _read(params, model, sequence)
            cluster = cli_params.cluster_of(read, cluster, systems)
        elif model:
            read = _read_model(model, sequence, example, said)
        else:
            cli_params.refuse_beside("a dense net, which has no tokens", sequence=sequence)
            given = {name: size for name, size in sizes.items() if size is not None}
            read = ReadModel(dense(**given), "", None)
        if density != 1:
            read = replace(read, family="", workload=read.workload.sparse(density))
        if forward:
            found = answer.inference(
                read.workload,
                1 if batch is None else batch,
                machine=cluster,
                release=release or None,
            )
            answered = {**found.summary(), "cautions": list(found.cautions)}
            typer.echo(written(answered) if as_json else str(found))
            return
        run: dict[str, Any] = {"batch": batch, "samples": samples, "micro_batch": micro_batch}
        result = cli_params.estimated(read, cluster, release=release, **run)
        about = {"model": read.document()} if params else {}
        typer.echo(written({**result.document(), **about}) if as_json else str(result))


@app.command(epilog=examples("sweep"))
def sweep(
    model: Model,
    machine: MachineName = "cs2",
    systems: Annotated[str, typer.Option(help="Systems, with commas between.")] = "1",
    batch: Annotated[
        str | None, typer.Option(help="Samples per step, with commas; left out: 100 a system.")
    ] = None,
    density: Annotated[str, typer.Option(help="Shares of weights, with commas between.")] = "1",
    sequence: Sequence = None,
    release: Release = "",
    as_json: AsJson = False,
) -> None:
    """Streamed steps by systems, batch and density."""
    from wse.predict.sweep import sweep as run

    with told():
        counts = cli_params.numbers("systems", systems, int)
        data = run(
            _read_model(model, sequence).workload,
            [100 * n for n in counts] if batch is None else cli_params.numbers("batch", batch, int),
            machine=_cluster(machine, 1, "streaming"),
            systems=counts,
            density=cli_params.numbers("density", density, float),
            release=release or None,
        )
        typer.echo(written(_cases(data)) if as_json else _table(data))


@app.command(epilog=examples("machines"))
@told()
def machines() -> None:
    """The catalogue: every number with its status and source."""
    from wse.machine import catalog, processors
    from wse.machine.machine import numbers

    for one in processors.PROCESSORS:
        _print_numbers(f"{one.name} ({one.wafer})", numbers(one))
    for machine in catalog.MACHINES:
        _print_numbers(f"{machine.name} ({machine.wafer})", machine.numbers())
    for site in catalog.INSTALLATIONS:
        _print_numbers(f"{site.name} ({site.machine.name})", numbers(site))
    for wafer, stores in catalog.STORES.items():
        for store in stores:
            _print_numbers(f"{store.name} ({wafer})", numbers(store))
    for wafer, tree in catalog.TREES.items():
        _print_numbers(f"{tree.name} ({wafer})", numbers(tree))


@app.command(epilog=examples("workloads"))
@told()
def workloads() -> None:
    """The models that --model knows. Kernels, with the bounds that they ran under."""
    from wse import _render
    from wse.models import shapes as known

    rows: list[tuple[str, ...]] = []
    for entry in known.entries().values():
        net = entry.build()
        count = "" if entry.parameters is None else f"{entry.parameters:.6g}"
        work = f"{net.forward_flops:.3g}"
        rows.append((entry.name, entry.family, f"{net.parameters:,}", count, work, entry.source))
    head = ("model", "family", "parameters", "published", "FLOP forward", "source")
    typer.echo(f"{_render.text(head, rows)}\n")
    kernels = [
        (x.name, f"{x.published.value:.4g}", f"{x.bound:.4g}", x.published.unit, f"{x.share:.2f}")
        for x in known.KERNELS
    ]
    typer.echo(_render.text(("kernel", "published", "bound", "unit", "share"), kernels))


@app.command(epilog=examples("check"))
def check(
    model: Annotated[str, typer.Argument(help=MODEL)] = "",
    params: Params = "",
    machine: MachineName = "cs2",
    mode: Mode = "",
    release: Release = "",
    sequence: Sequence = None,
    example: cli_params.Example = "",
    batch_size: cli_params.BatchSize = None,
    has_aux: cli_params.HasAux = None,
    as_json: AsJson = False,
) -> None:
    """Which operations of a model would port. Exit code 1 if not all are known to.

    Each is native, decomposed into native ones, unsupported, or unknown. A program of yours is
    imported and runs as Python runs it. A function takes nothing and returns (loss, params, batch),
    as `wse.trace` takes them; a module of PyTorch or Flax, its class, or a function that returns
    one, is called with --example.
    """
    from wse import checks
    from wse.models import own
    from wse.models import shapes as known
    from wse.models.zoo import Traceable

    with told():
        cluster = _cluster(machine, None, mode)
        said = cli_params.said_of(params or model, batch_size, has_aux)
        if params:
            own.check_example(params, example)
            made: Any = _read(params, model, sequence)
            cluster = cli_params.cluster_of(made, cluster, None)
        elif not model:
            raise ValueError("there is no model; name one, or pass --params with a file")
        else:
            own.check_example(model, example)
            changes = _changes(model, sequence)
            mine = own.is_own(model)
            made = own.traceable(model, example) if mine else known.get(model, **changes)
        given = (made.loss, made.params, made.batch) if isinstance(made, Traceable) else (made,)
        report = checks.check(
            *given,
            machine=cluster,
            release=release or None,
            mode=mode or None,
            **said,
        )
        typer.echo(written(report.document()) if as_json else str(report))
    raise typer.Exit(0 if report.portable else 1)


def _changes(name: str, sequence: int | None) -> dict[str, Any]:
    """What a model by name is built with; a program of the user's has a batch of its own."""
    from wse.models import own

    if sequence is None:
        return {}
    if own.is_own(name):
        rule = f"model {name!r}, whose tokens are those of its batch or example"
        cli_params.refuse_beside(rule, sequence=sequence)
    return {"max_sequence_length": positive("sequence", sequence, "pass --sequence 2048")}


def _read_model(
    name: str, sequence: int | None, example: str = "", said: dict[str, Any] | None = None
) -> "ReadModel":
    """A model by name; a program of the user's with its graph, and with its batch."""
    from wse.models import own
    from wse.models import shapes as known
    from wse.models.doors.given import ReadModel

    own.check_example(name, example)
    changes = _changes(name, sequence)
    if not own.is_own(name):
        return ReadModel(known.get(name, **changes), "", None)
    from wse.models import from_graph

    graph = cli_params.graph_of(name, example, said or {})
    made = from_graph.workload(graph, name)
    return ReadModel(made, cli_params.TRACED, graph, batch=graph.batch_size)


def _read(params: str, model: str, sequence: int | None) -> "ReadModel":
    from wse.models.doors.read import read_model

    if model:
        raise ValueError(f"model is {model!r} beside params {params!r}: pass one of them")
    return read_model(params, sequence)


def _cluster(name: str, systems: int | None, mode: str) -> "Cluster":
    from dataclasses import replace

    from wse.machine import specification

    _check_count(name, systems)
    found = specification.find(name)
    count = found.systems if systems is None else systems
    return replace(found, systems=count, mode=mode or found.mode)


def _check_count(name: str, systems: int | None) -> None:
    """Refuse systems beside a machine that says how many, as "8 x h100"."""
    from wse.machine.processors import counted

    count, one = counted(name)
    if one != name and systems not in (None, count):
        raise ValueError(
            f"systems is {systems} beside machine {name!r}, which says {count}: drop one of both"
        )


def _any_machine(name: str, systems: int | None, mode: str, forward: bool) -> Any:
    """A cluster, or where a training is asked for GPUs, TPUs or CPUs, or this computer."""
    from dataclasses import replace

    from wse.machine import processors

    _check_count(name, systems)
    found = None if forward or mode else processors.chosen(name)
    if found is None:
        return _cluster(name, systems, mode)
    return found if systems is None else replace(found, systems=systems)


def _cases(data: Any) -> list[dict[str, Any]]:
    """One dictionary to a case; None where there are no times, and then a reason."""
    from wse import _render
    from wse.predict.sweep import REFUSED

    flat = data.stack(case=("batch", "systems", "density")).squeeze("model")
    names = ("batch", "systems", "density", "step_s", "samples_per_s", "micro_batches")
    columns = {name: [float(value) for value in flat[name].values] for name in names}
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    reasons = [REFUSED.get(int(value)) for value in flat.refused.values]
    found = _render.finite(rows)
    return [{**row, "reason": why} for row, why in zip(found, reasons, strict=True)]


def _table(data: Any) -> str:
    from wse import _render

    cases = _cases(data)
    none = any(case["reason"] for case in cases)  # else the column would be empty
    names = [name for name in cases[0] if name != "reason" or none]

    def shown(x: Any) -> str:
        return "" if x is None else x if isinstance(x, str) else f"{x:.5g}"

    return _render.text(names, [[shown(case[name]) for name in names] for case in cases])


def _print_numbers(title: str, found: "dict[str, Sourced]") -> None:
    from wse import _render

    rows: list[tuple[str, ...]] = []
    for name, x in found.items():
        ends = f"{x.interval[0]:g} to {x.interval[1]:g}" if x.interval else ""
        source = f"{x.source} ({x.note})" if x.note else x.source
        rows.append((name, f"{x.value:g}", x.unit, ends, x.status, source))
    header = ("number", "value", "unit", "interval", "status", "source")
    typer.echo(f"{title}\n{_render.text(header, rows)}\n")
