"""How near posteriors come to the reference, against the seconds spent, here and elsewhere.

All contestants get the same simulations of the public benchmark tasks and take turns. Seconds
count simulation, set-up (compilation), training and 10,000 draws for each observation; the
classifier that compares with the reference draws is not counted.
"""

import argparse
import importlib.util
import json
import os
import platform
import statistics
import time
from functools import partial
from pathlib import Path

import numpy as np

from wse._files import write_aside

TASKS = ("two_moons", "sir", "lotka_volterra", "slcp", "gaussian_linear")
DRAWS = 10_000  # sourced: arXiv 2101.04653, as in its reference draws


def main() -> None:
    """Run every contestant on every task and budget, and print and write what was found."""
    options = arguments()
    print(f"{machine()}\nload before: {os.getloadavg()[0]:.2f} (a quiet machine has < 0.3)")
    rows = []
    for task in options.tasks:
        for budget in options.budgets:
            for row in turns(task, budget, options):
                rows.append(row)
                print(line(row), flush=True)
    print(f"load after: {os.getloadavg()[0]:.2f}")
    if options.out:
        write(options.out, rows)


def arguments() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=["two_moons", "sir"])
    parser.add_argument("--budgets", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, default=list(CONTESTANTS))
    parser.add_argument("--observations", type=int, default=10, help="of the 10, the first so many")
    parser.add_argument("--points", type=int, default=DRAWS, help="draws that are compared")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--threads", type=int, help="of PyTorch; default: its own choice")
    parser.add_argument("--out", type=Path, help="folder for inference.json and inference.png")
    return parser.parse_args()


def turns(task: str, budget: int, options):
    """Yield one row per seed and contestant."""
    seen, references = published(task, options.observations)
    for seed in options.seeds:
        began = clocks()
        data = simulated(task, budget, seed)
        simulated_in = clocks() - began
        for name in available(options.only):
            began = clocks()
            draws = CONTESTANTS[name](task, data, seen, seed, options)
            seconds, processor_s = simulated_in + clocks() - began
            scores = [score(r, d, options.points) for r, d in zip(references, draws, strict=True)]
            yield {
                "task": task,
                "budget": budget,
                "seed": seed,
                "contestant": name,
                "seconds": seconds,
                "processor_s": processor_s,
                "c2st": scores,
            }


def clocks() -> np.ndarray:
    """Return the clock, and the time of all threads, which other programs do not lengthen much."""
    return np.asarray([time.perf_counter(), time.process_time()])


def machine() -> str:
    """Return what ran this."""
    import jax

    return f"{os.cpu_count()} cores, {platform.platform()}, JAX {jax.__version__}"


def simulated(task: str, budget: int, seed: int):
    """Return `budget` pairs as the benchmark makes them."""
    import sciml

    problem = getattr(sciml.ode, task)()
    return sciml.simulate(problem, samples=budget, seed=seed, noise=problem.noise)


def published(task: str, count: int):
    """Return the observations (count, feature) and their reference draws (draw, param)."""
    import pandas as pd

    spec = importlib.util.find_spec("sbibm")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the reference draws are missing: pip install --no-deps sbibm")
    root = Path(next(iter(spec.submodule_search_locations))) / "tasks" / task / "files"
    folders = [root / f"num_observation_{k}" for k in range(1, count + 1)]
    read = lambda name: [pd.read_csv(f / name).to_numpy(np.float32) for f in folders]  # noqa: E731
    return np.concatenate(read("observation.csv")), read("reference_posterior_samples.csv.bz2")


def score(reference: np.ndarray, draws: np.ndarray, points: int) -> float:
    """Return the accuracy of the classifier, by the recipe of the benchmark."""
    from sciml.diagnose import c2st

    return float(c2st(reference[:points], draws[:points]).score)


def as_observed(task: str, seen: np.ndarray) -> np.ndarray:
    """Return observations in our layout: the populations are (time, channel), not one row."""
    if task == "lotka_volterra":
        return seen.reshape(len(seen), 2, -1).swapaxes(1, 2)
    return seen


def sciml_draws(model, epochs: int, recipe=None, answer=None):
    """Return a contestant: our `fit` with a tenth held out, then `Fit.sample` or `answer`."""

    def run(task: str, data, seen: np.ndarray, seed: int, options):
        del options
        import sciml

        # As many updates from few simulations as from 10,000; more of them need fewer passes.
        few = 10_000 / data.sizes["sample"]
        passes = max(20, round(epochs * (few if few > 1 else few**0.5)))
        fitted = sciml.fit(
            model(task), data, validation=0.1, epochs=passes, seed=seed, recipe=recipe
        )
        observed = data.isel(sample=slice(len(seen)))[["observation"]].copy(deep=True)
        observed["observation"].values[:] = as_observed(task, seen)
        if answer:
            draws = answer(fitted, data=observed)["posterior"]
        else:
            draws = fitted.sample(observed, draws=DRAWS, seed=seed)["posterior"]
        return draws.transpose("sample", "draw", "parameter").values

    return run


def flow_matching(task: str):
    """Return our flow matching; the four points of SLCP are known to be exchangeable."""
    from sciml.models import Attention, FlowMatching

    if task == "slcp":
        points = Attention(width=48, depth=2, heads=2, tokens=4, ordered=False)
        return FlowMatching(width=192, embedding=points)
    return FlowMatching()


def spline_flow(_: str):
    """Return our spline flow."""
    from sciml.models import SplineFlow

    return SplineFlow()


def tuned(task: str, data, seen: np.ndarray, seed: int, options):
    """Draw with the configuration that did best on the task, of those tried."""
    from sciml.models import Ensemble, FlowMatching, SplineFlow
    from sciml.train import Recipe

    matching = Recipe(batch=100, learning_rate=1e-3)
    choices = {
        "sir": (SplineFlow(), 60, None),
        "lotka_volterra": (Ensemble(SplineFlow(), 4), 60, matching),
        "two_moons": (FlowMatching(), 500, matching),
        "slcp": (Ensemble(flow_matching("slcp"), 3), 250, Recipe(200, 2e-3, weight_decay=0.1)),
        "gaussian_linear": (Ensemble(FlowMatching(), 3), 80, matching.replace(weight_decay=0.3)),
    }
    model, epochs, recipe = choices[task]
    return sciml_draws(lambda _: model, epochs, recipe)(task, data, seen, seed, options)


def likelihood(task: str, data, seen: np.ndarray, seed: int, options):
    """Draw by a sampler from a learned likelihood.

    SLCP's four points are draws of one law; what is seen at ten times is independent given the
    parameters. A population follows several modes, chains one; of counts, whose density costs
    more, a posterior net's draws are weighed.
    """
    import sciml
    from sciml.models import Gaussian, SplineFlow
    from sciml.reference.nuts import Chains
    from sciml.reference.smc import Population

    problem, sharp = getattr(sciml.ode, task)(), SplineFlow(width=128, layers=5, bins=12)
    parts, model, epochs, batch = {
        "slcp": (4, sharp, 100, 256),
        "sir": (10, sharp, 30, 512),
        "lotka_volterra": (10, Gaussian(width=128, depth=4), 100, 512),
    }.get(task, (1, sharp, 100, 256))
    recipe = sciml.train.Recipe(batch=batch, learning_rate=1e-3)
    learned = sciml.fit_likelihood(
        model, data, epochs=epochs, seed=seed, parts=parts, recipe=recipe
    )
    target = learned.problem(problem.prior)
    if task == "sir":
        weigh = partial(sciml.reference.importance, problem=target, draws=DRAWS, seed=seed)
        return sciml_draws(spline_flow, 60, answer=weigh)(task, data, seen, seed, options)
    cloud = Population(particles=DRAWS, moves=10 if task == "slcp" else 20)
    sampler, settings = {
        "lotka_volterra": (sciml.reference.nuts, Chains(draws=DRAWS // 4, forward=False))
    }.get(task, (sciml.reference.smc, cloud))
    each = as_observed(task, seen)
    return [sampler(target, x, settings=settings, seed=seed)["posterior"].values for x in each]


def sbi_draws(estimator: str):
    """Return a contestant: neural posterior estimation of sbi with its default settings."""

    def run(task: str, data, seen: np.ndarray, seed: int, options):
        import torch
        from sbi.inference import NPE

        if options.threads:
            torch.set_num_threads(options.threads)
        torch.manual_seed(seed)
        rows = data.observation.values.astype(np.float32)
        rows = rows.swapaxes(1, 2) if task == "lotka_volterra" else rows
        theta = torch.as_tensor(data.parameters.values.astype(np.float32))
        inference = NPE(torch_prior(task), density_estimator=estimator, show_progress_bars=False)
        inference.append_simulations(theta, torch.as_tensor(rows.reshape(len(rows), -1).copy()))
        inference.train()
        posterior = inference.build_posterior()
        draw = lambda x: posterior.sample((DRAWS,), x=x, show_progress_bars=False)  # noqa: E731
        return [draw(torch.as_tensor(x[None])).numpy() for x in seen]

    return run


def bayesflow_draws(task: str, data, seen: np.ndarray, seed: int, options):
    """Draw with BayesFlow's default workflow: a coupling flow, 100 epochs, batches of 32."""
    del options
    os.environ.setdefault("KERAS_BACKEND", "jax")  # read when Keras is imported, and never again
    import keras
    from bayesflow import Adapter, BasicWorkflow

    keras.utils.set_random_seed(seed)
    rows = data.observation.values.astype(np.float32)
    adapter = Adapter().convert_dtype("float64", "float32")
    if bounds := supports(data):
        adapter = adapter.constrain("theta", **bounds)
    adapter = adapter.concatenate("theta", into="inference_variables")
    adapter = adapter.concatenate("x", into="inference_conditions")
    # By default it standardises the parameters alone; observations of hundreds need it, too.
    workflow = BasicWorkflow(adapter=adapter, standardize="all")
    theta = data.parameters.values.astype(np.float32)
    simulations = {"theta": theta, "x": rows.reshape(len(rows), -1)}
    workflow.fit_offline(simulations, verbose=0)
    observed = as_observed(task, seen).reshape(len(seen), -1)
    return workflow.sample(num_samples=DRAWS, conditions={"x": observed}, seed=seed)["theta"]


def supports(data) -> dict:
    """Return the finite ends of the priors: `lower`, `upper`, both or neither; all of one kind."""
    ends = zip(*json.loads(data.attrs["support"]).values(), strict=True)
    named = zip(("lower", "upper"), ends, strict=True)
    return {name: np.asarray(values) for name, values in named if None not in values}


def torch_prior(task: str):
    """Return the prior of a task for sbi."""
    import torch

    import sciml

    kinds = {
        "LogNormal": lambda d: torch.distributions.LogNormal(*one(d.loc, d.scale)),
        "Normal": lambda d: torch.distributions.Normal(*one(d.loc, d.scale)),
        "Uniform": lambda d: torch.distributions.Uniform(*one(d.low, d.high)),
    }
    one = lambda *values: [torch.tensor([float(v)]) for v in values]  # noqa: E731
    scalars = getattr(sciml.ode, task)().prior.values()
    parts = [kinds[type(d).__name__](d) for d in scalars]
    if {type(d).__name__ for d in scalars} == {"Uniform"}:
        from sbi.utils import BoxUniform

        return BoxUniform(torch.cat([p.low for p in parts]), torch.cat([p.high for p in parts]))
    from sbi.utils import MultipleIndependent

    return MultipleIndependent(parts)


CONTESTANTS = {
    "sciml flow matching": sciml_draws(flow_matching, epochs=150),
    "sciml spline flow": sciml_draws(spline_flow, epochs=60),
    "sciml tuned": tuned,
    "sciml likelihood": likelihood,
    "sbi maf": sbi_draws("maf"),
    "sbi nsf": sbi_draws("nsf"),
    "bayesflow": bayesflow_draws,
}


def available(names: list[str]) -> list[str]:
    """Return the contestants that can run here."""
    return [name for name in names if importlib.util.find_spec(name.split()[0]) is not None]


def line(row: dict) -> str:
    """Return one line of the table."""
    mean = statistics.mean(row["c2st"])
    return (
        f"{row['task']:16}{row['budget']:>7}{row['seed']:>4}  {row['contestant']:22}"
        f"{row['seconds']:>8.1f} s{row['processor_s']:>8.1f} s of a core   C2ST {mean:.3f}"
    )


def write(folder: Path, rows: list[dict]) -> None:
    """Write every number as JSON, and the curves as a figure."""
    folder.mkdir(parents=True, exist_ok=True)
    with write_aside(folder / "inference.json") as aside:
        aside.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1))
    draw(folder / "inference.png", rows)


def draw(path: Path, rows: list[dict]) -> None:
    """Draw C2ST against seconds, a panel per task, a curve per contestant.

    The larger a marker, the more simulations.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

    tasks = list(dict.fromkeys(row["task"] for row in rows))
    budgets = " < ".join(f"{b:,}" for b in sorted({row["budget"] for row in rows}))
    figure, axes = plt.subplots(
        1, len(tasks), figsize=(3.4 * len(tasks), 3), squeeze=False, layout="constrained"
    )
    for axis, task in zip(axes[0], tasks, strict=True):
        for name in dict.fromkeys(row["contestant"] for row in rows):
            mine = [r for r in rows if (r["task"], r["contestant"]) == (task, name)]
            curve = sorted((r["budget"], r["seconds"], statistics.mean(r["c2st"])) for r in mine)
            budget, seconds, c2st = zip(*curve, strict=True)
            style = "o-" if name.startswith("sciml") else "o--"
            (drawn,) = axis.plot(seconds, c2st, style, label=name, markersize=3)
            axis.scatter(seconds, c2st, [b**0.5 for b in budget], drawn.get_color())
        axis.set(title=task.replace("_", " "), xlabel="time / s", xscale="log", ylim=(0.49, 1.01))
        axis.axhline(0.5, color="0.7", linewidth=1)
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.xaxis.set_major_formatter(ScalarFormatter())
        axis.xaxis.set_minor_formatter(NullFormatter())
    axes[0, 0].set_ylabel("C2ST (½ is perfect)")
    axes[0, 0].legend(fontsize=7, title=f"{budgets} simulations", title_fontsize=7)
    figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
