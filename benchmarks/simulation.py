"""How fast FitzHugh-Nagumo is simulated here, beside SciPy, diffrax and torchdiffeq.

All see the same parameters, and each takes the loosest tolerance at which its error is not above
ours: the maximum over time against SciPy's DOP853 at 1e-12, as the median over trajectories.
Contestants take turns: every round runs each once. Printed are medians over rounds, and medians of
ratios within a round.
"""

import argparse
import importlib.util
import json
import math
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from sciml.ode import Diffrax, RungeKutta4, fitzhugh_nagumo, prior, solver
from sciml.ode.methods.blocks import in_blocks
from sciml.provenance import machine
from wse._files import write_aside

SYSTEM = fitzhugh_nagumo()
TIMES = np.asarray(SYSTEM.observation.times)
AIMS = {"scipy": 50.0, "others": 5.0}  # times as fast: the project's own
LADDER = 10.0 ** -np.arange(4.5, 11.1, 0.5)  # relative tolerances, loosest first
Solve = Callable[[np.ndarray], np.ndarray]


def ours(substeps: float) -> Solve:
    """Return our fixed-step method, float32."""
    method = RungeKutta4(int(substeps))
    solve = jax.jit(solver(SYSTEM, method))
    return lambda theta: in_blocks(solve, (theta,), method, progress=False)


def scipy(scheme: str, rtol: float) -> Solve:
    """Return SciPy's `solve_ivp`, one trajectory after the other, on Python floats."""
    from scipy.integrate import solve_ivp

    def one(theta):
        def field(time, state):
            u, w = state.tolist()  # Python's floats are faster than NumPy's
            if abs(u) > 1e100:  # in a step that will be rejected; a cube would overflow
                return math.inf, math.inf
            return SYSTEM.vector_field(time, (u, w), theta)

        span = (0.0, TIMES[-1])
        with np.errstate(all="ignore"):
            done = solve_ivp(field, span, (0.0, 0.0), scheme, TIMES, rtol=rtol, atol=rtol)
        return done.y[0]

    return lambda theta: np.stack([one(row) for row in theta.astype(float).tolist()])


def diffrax(dtype: str, rtol: float) -> Solve:
    """Return diffrax's Tsit5 under `vmap`, all trajectories in one compiled program."""
    with jax.enable_x64(dtype == "float64"):
        solve = jax.jit(solver(SYSTEM, Diffrax("Tsit5", rtol=rtol, atol=rtol, dtype=dtype)))

    def run(theta):
        with jax.enable_x64(dtype == "float64"):
            return np.asarray(solve(jnp.asarray(theta, dtype)))

    return run


def torchdiffeq(scheme: str, rtol: float) -> Solve:
    """Return torchdiffeq's `odeint` on the whole batch; `rtol` is the step for its "rk4"."""
    import torch
    from torchdiffeq import odeint

    fixed = {"method": "rk4", "options": {"step_size": rtol}}
    how = fixed if scheme == "rk4" else {"method": scheme, "rtol": rtol, "atol": rtol}
    dtype = torch.float32 if scheme == "rk4" else torch.float64

    def run(theta):
        p = torch.as_tensor(theta, dtype=dtype).T
        field = lambda t, u: torch.stack(SYSTEM.vector_field(t, u, p))  # noqa: E731
        start = torch.zeros(2, len(theta), dtype=dtype)
        with torch.no_grad():
            states = odeint(field, start, torch.as_tensor(TIMES, dtype=dtype), **how)
        return states[:, 0].T.numpy()

    return run


# Name → (how to make it from a tolerance, tolerances, trajectories in a run).
CONTESTANTS: dict[str, tuple[Callable[[float], Solve], np.ndarray, int]] = {
    "scipy RK45": (partial(scipy, "RK45"), LADDER, 8),
    "scipy DOP853": (partial(scipy, "DOP853"), LADDER, 8),
    "scipy LSODA": (partial(scipy, "LSODA"), LADDER, 8),
    "diffrax float32": (partial(diffrax, "float32"), LADDER[LADDER >= 0.99e-6], 1024),
    "diffrax float64": (partial(diffrax, "float64"), LADDER, 1024),
    "torchdiffeq dopri5": (partial(torchdiffeq, "dopri5"), LADDER, 1024),
    "torchdiffeq rk4": (partial(torchdiffeq, "rk4"), np.array([0.1, 0.05, 0.025]), 1024),
}


def main() -> None:
    """Find equal errors, measure in turns, print and write the table."""
    options = arguments()
    print(f"{machine()}\nload before: {os.getloadavg()[0]:.2f} (a quiet machine has < 0.3)")
    theta = prior.draw(SYSTEM.prior, 1024, jax.random.key(0), "fitzhugh_nagumo")
    checked = theta[: options.checked]
    reference = scipy("DOP853", 1e-12)(checked)
    mine = ours(options.substeps)
    goal = error(mine, checked, reference)
    runs = {"sciml": (mine, theta, {"tolerance": 0.2 / options.substeps, "error": goal})}
    for name, (make, ladder, size) in CONTESTANTS.items():
        if name.startswith("torch") and not importlib.util.find_spec("torchdiffeq"):
            continue
        if found := matched(make, ladder, checked, reference, goal):
            runs[name] = (found[0], theta[:size], found[1])
        else:
            print(f"{name}: no tolerance reaches an error of {goal:.1e}")
    table = measured(runs, options.rounds)
    print(report(table))
    if options.out:
        with write_aside(options.out / "simulation.json") as path:
            path.write_text(json.dumps({"machine": machine(), "table": table}, indent=1))


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--substeps", type=int, default=4, help="of ours, between observations")
    parser.add_argument("--checked", type=int, default=8, help="trajectories to find errors on")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def error(solve: Solve, theta: np.ndarray, reference: np.ndarray) -> float:
    """Return the median over trajectories of the largest error over time."""
    return float(np.median(np.abs(solve(theta) - reference).max(axis=1)))


def matched(make, ladder, theta, reference, goal) -> tuple[Solve, dict[str, float]] | None:
    """Return the contestant at the loosest tolerance whose error is not above the goal."""
    for tolerance in ladder:
        solve = make(float(tolerance))
        if (found := error(solve, theta, reference)) <= goal:
            return solve, {"tolerance": float(tolerance), "error": found}
    return None


def measured(runs, rounds: int) -> dict[str, dict[str, float]]:
    """Return for every contestant its rate, and how many times as fast ours is.

    By the clock, which a busy machine disturbs, and by the processor's seconds, of all cores,
    which it disturbs less.
    """
    clock: dict[str, list[float]] = {name: [] for name in runs}
    processor: dict[str, list[float]] = {name: [] for name in runs}
    for name, (solve, theta, _) in runs.items():
        if not name.startswith("scipy"):
            solve(theta)  # compiles for this number of trajectories
    for _ in range(rounds):
        for name, (solve, theta, _) in runs.items():
            began, began_cpu = time.perf_counter(), time.process_time()
            solve(theta)
            clock[name].append((time.perf_counter() - began) / len(theta))
            processor[name].append((time.process_time() - began_cpu) / len(theta))
    return {
        name: {
            **found,
            "trajectories/s": 1 / statistics.median(clock[name]),
            "sciml is": ratio(clock[name], clock["sciml"]),
            "by processor time": ratio(processor[name], processor["sciml"]),
        }
        for name, (_, _, found) in runs.items()
    }


def ratio(theirs: list[float], mine: list[float]) -> float:
    """Return the median over rounds of their seconds over ours."""
    return statistics.median(a / b for a, b in zip(theirs, mine, strict=True))


def report(table) -> str:
    """Return the table, and whether the aims are met by the best of each kind."""
    lines = ["| contestant | tolerance or step | error | trajectories/s | sciml is | by CPU time |"]
    lines += ["| --- | --- | --- | --- | --- | --- |"]
    for name, row in table.items():
        lines.append(
            f"| {name} | {row['tolerance']:.1e} | {row['error']:.1e} | "
            f"{row['trajectories/s']:.0f} | {row['sciml is']:.1f}× | "
            f"{row['by processor time']:.1f}× |"
        )
    of_scipy = [row["sciml is"] for name, row in table.items() if name.startswith("scipy")]
    others = [row["sciml is"] for n, row in table.items() if not n.startswith(("scipy", "sciml"))]
    lines += [
        f"{kind}: at least {min(found):.1f}× (aim {AIMS[kind]:.0f}×)"
        for kind, found in {"scipy": of_scipy, "others": others}.items()
        if found
    ]
    return "\n".join([*lines, f"load after: {os.getloadavg()[0]:.2f}"])


if __name__ == "__main__":
    main()
