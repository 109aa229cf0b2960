"""Draws of a net, and its density, where the rules of a joint prior hold."""

from typing import Any

import numpy as np

from sciml.inverse.program import by_contents, draws_of
from sciml.ode.rule import holds

LEAST = 0.01  # assumed: share of a net's draws inside, below which the net has not learned the rule
FEWEST = 1000  # assumed: draws by which that is judged
AT_ONCE = 256  # assumed: observations of which so many draws are kept at once
COUNTED = 4096  # assumed: draws for the share that a density is divided by; of 0.9 they give 0.5 %


def all_hold(fit: Any, theta: np.ndarray) -> np.ndarray:
    """Tell of θ (…, param) where all rules hold."""
    values = dict(zip(fit.grid.parameters, np.moveaxis(theta, -1, 0), strict=True))
    found = [np.asarray(holds(rule, values)) for rule in fit.scaling.inside]
    return np.all(found, axis=0) if found else np.ones(theta.shape[:-1], bool)


def net_draws(
    fit: Any, observed: np.ndarray, draws: int, seed: int, numbers: np.ndarray
) -> np.ndarray:
    """Return draws of the net itself (draw, sample, param), in the parameters' own units."""
    return np.asarray(fit.scaling.backward(draws_of(fit, observed, draws, seed, numbers)))


def draws_inside(
    fit: Any, observed: np.ndarray, draws: int, seed: int, numbers: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return draws (draw, sample, param) inside, and the share (sample,) of the net's that were.

    Without rules all are inside, and there is no share. Each observation's are of its number.
    """
    if not fit.scaling.inside:
        return net_draws(fit, observed, draws, seed, numbers), None
    kept: list[list[np.ndarray]] = [[] for _ in observed]
    found, spent = np.zeros(len(observed), int), np.zeros(len(observed), int)
    tried, each = 0, max(draws, FEWEST // 10)
    while (short := found < draws).any():
        own = np.random.SeedSequence([seed, tried]).generate_state(1)[0]
        drawn = net_draws(fit, observed, each, int(own), numbers)
        good, tried = all_hold(fit, drawn), tried + each
        for i in np.flatnonzero(short):
            kept[i].append(drawn[good[:, i], i][:draws])
        found, spent = found + good.sum(axis=0) * short, spent + each * short
        lost = (found < draws) & (found < LEAST * tried) & (tried >= FEWEST)
        if lost.any():
            raise ValueError(
                f"of the net's draws for observation {lost.argmax()}, {found[lost.argmax()]} of "
                f"{tried} lie where {' and '.join(fit.scaling.inside)}, as for {lost.sum()} "
                f"observations in all; {LEAST:.0%} must: train longer, or leave out observations "
                "unlike those of the training"
            )
    columns = [np.concatenate(rows)[:draws] for rows in kept]
    return np.stack(columns, axis=1), found / spent


def log_share(fit: Any, observed: np.ndarray) -> np.ndarray:
    """Return ln of the share of the net's draws inside, (sample,), alike for alike observations."""
    if not fit.scaling.inside:
        return np.zeros(len(observed), np.float32)
    first = {row.tobytes(): i for i, row in reversed([*enumerate(observed)])}
    rows = [*first.values()]
    parts = [observed[rows[i : i + AT_ONCE]] for i in range(0, len(rows), AT_ONCE)]
    drawn = (net_draws(fit, part, COUNTED, 0, by_contents(part)) for part in parts)
    good = np.concatenate([all_hold(fit, part).mean(axis=0) for part in drawn])
    share = dict(zip(rows, np.log(np.maximum(good, 1 / COUNTED)), strict=True))
    return np.array([share[first[row.tobytes()]] for row in observed], np.float32)
