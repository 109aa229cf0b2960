"""The problem of an observation under a prior, whose noise is a learned likelihood."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import Uniform

from sciml.inverse.surrogate.span import ends_of, spans
from sciml.ode.prior import Prior, draw, names_of
from sciml.ode.static import Static

LOOKED = 4096  # assumed: draws of a prior that are compared with the training
BEYOND = 0.01  # assumed: share of them that may lie where the net was not trained


def problem_of(law: Any, prior: Prior, name: str) -> Static:
    """Return the problem; see `Likelihood.problem`."""
    own, points = law.parameters, law.points
    if {*names_of(prior)} != {*own}:
        raise ValueError(
            f"the prior is of {', '.join(names_of(prior))}, and the likelihood was learned of "
            f"{', '.join(own)}: write a prior of these"
        )
    order = [names_of(prior).index(each) for each in own]
    labels = points.labels if "channel" in points.axes or law.parts == points.parts else ()
    times = law.known[:, points.conditions.index("time")] if "time" in points.axes else None
    made = Static(
        name=name,
        prior=prior,
        features=points.size if "channel" in points.axes else law.parts * points.size,
        noise=law,
        observed=labels or "observation",
        solution=solution(law, order),
        times=None if times is None else tuple(times.tolist()),
        conditions=pools(law),
        time_unit=points.time_unit,
    )
    check_prior(law, made, order)
    return made


def pools(law: Any) -> dict[str, Any]:
    """Return what conditions are drawn from that come with an observation."""
    known = spans(law.points)
    return {
        name: list(few) if few else Uniform(low, high)
        for name, (few, low, high) in known.items()
        if name in law.open
    }


def solution(law: Any, order: list[int]) -> Any:
    """Return what gives parameters in the order of the training, then open conditions."""
    names = law.open
    if not names:
        return None if order == sorted(order) else (lambda theta: theta[jnp.array(order)])

    def with_conditions(theta: Any, given: dict[str, Any]) -> Any:
        known = jnp.stack([jnp.asarray(given[name], theta.dtype) for name in names])
        least, most = jnp.array([ends_of(law.points)[name] for name in names], theta.dtype).T
        known = jnp.where((known < least) | (known > most), jnp.nan, known)  # which has failed
        return jnp.concatenate([theta[jnp.array(order)], known])

    return with_conditions


def check_prior(law: Any, problem: Static, order: list[int]) -> None:
    """Refuse a prior that reaches beyond the parameters of the training."""
    theta = draw(problem.prior, LOOKED, jax.random.key(0), problem.name)[:, order]
    least, most = (np.array(end)[: len(order)] for end in (law.points.least, law.points.most))
    beyond = ((theta < least) | (theta > most)).mean(axis=0)
    if beyond.max() > BEYOND:
        i = int(beyond.argmax())
        raise ValueError(
            f"{beyond[i]:.1%} of the prior of {law.parameters[i]} lie outside "
            f"[{least[i]:.4g}, {most[i]:.4g}], where the likelihood was learned; at most "
            f"{BEYOND:.0%} may: simulate there too, or cut the prior"
        )
