"""Seconds of one weight-streaming step, layer by layer, for one case or for many at once.

B samples on N systems in m micro-batches, B_n = B / (N m) samples at a time on each; layer l has P
weights of density s, G of them trained, F operations per sample forward, and runs at a share eta of
the peak R::

    t_w = P min(b_w, s b_s) / min(beta_store, beta_system) + d a      weights in, d = ceil(log2 N)
    t_f = B_n F g / (eta R) + t_0                                    forward
    t_b = B_n (F_b + e F) g / (eta R) + t_0                          backward; e F computed again
    t_g = G s b_g / min(beta_store, beta_system) + d a               gradients out
    t_u = G s / R_update                                             update, in the store
    g   = (s + overhead) (1 - harvest zeros)

    T_forward  = t_w(1) + sum_l max(t_f(l), t_w(l+1))       the next weights are prefetched
    T_backward = sum_l max(t_b(l), r t_w(l-1), t_g(l+1))    links work both ways at once
    T_step     = max(m (T_forward + T_backward) + t_g(1) + t_u(1),
                     input, all gradients, all updates) + t_step

That is `lockstep`. `lower` is the busiest resource alone, `upper` everything one after another.
Gradients leave with every micro-batch: the wafer has no room for their sums. m is the smallest
for which the activations fit. Three plans are tried and the fastest that fits is taken: all
activations wait for the backward pass (r = 1, e = 0); only what enters each block does (r = 2,
e = 0: efficiencies were calibrated on a model that needs this, so they contain what is computed
again); only every sqrt(blocks)-th of these does (r = 3, e = 1).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from wse.predict.arrays import Integers, Plan, Reals, Shapes
from wse.predict.bandwidth import Rates


@dataclass(frozen=True)
class Times:
    """Seconds of one step, for each case.

    Attributes:
        weights_s: t_w of one micro-batch, one pass; likewise `forward_s`, `backward_s`,
            `gradients_s`; `update_s` of the whole step.
        forward_s: t_f.
        backward_s: t_b.
        gradients_s: t_g.
        update_s: t_u.
        slots_s: max(...) of every visit, forward and backward.
        micro: m.
        input_s: of the whole step.
        lower_s: the busiest resource alone.
        lockstep_s: with the overlaps that the module's words state.
        upper_s: one after another.
        busy_s: of the whole step, by resource: fabric, weights in, gradients out, store, host link.
    """

    weights_s: Float[Reals, "case layer"]
    forward_s: Float[Reals, "case layer"]
    backward_s: Float[Reals, "case layer"]
    gradients_s: Float[Reals, "case layer"]
    update_s: Float[Reals, "case layer"]
    slots_s: tuple[Float[Reals, "case visit"], Float[Reals, "case visit"]]
    micro: Float[Reals, " case"]
    input_s: Float[Reals, " case"]
    lower_s: Float[Reals, " case"]
    lockstep_s: Float[Reals, " case"]
    upper_s: Float[Reals, " case"]
    busy_s: dict[str, Float[Reals, " case"]]


def times(
    layers: Shapes,
    made: Rates,
    plan: Plan,
    batch: Float[Reals, " case"],
    systems: Float[Reals, " case"],
    density: Float[Reals, "case layer"],
    micro: Float[Reals, " case"],
) -> Times:
    """The seconds of one step for every case, as the module's words state."""
    c, s, m = made.constants, density, micro
    g = np.where(s < 1, s + c.sparse_overhead.value, 1.0) * (1 - c.harvest.value * layers.zeros)
    sent = layers.weights * np.minimum(c.weight_bytes.value, s * c.sparse_weight_bytes.value)
    back = layers.trained * s * c.gradient_bytes.value
    tree_s = np.ceil(np.log2(systems))[:, None] * made.level_s
    out_s, home_s = (np.where(some > 0, tree_s, 0.0) for some in (layers.weights, layers.trained))
    flop_s = (batch / (systems * m))[:, None] * g * layers.seconds_per_flop
    t_w = sent / made.link_bytes_per_s + out_s
    t_g = back / made.link_bytes_per_s + home_s
    t_f = flop_s * layers.forward_flops + c.pass_s.value
    t_b = flop_s * (layers.backward_flops + plan.again * layers.forward_flops) + c.pass_s.value
    t_u = layers.updated * s / made.update_per_s

    # The place -1 is that of no neighbour: nothing comes or goes.
    nothing = np.zeros((len(batch), 1))
    near_w, near_g = np.hstack([t_w, nothing]), np.hstack([t_g, nothing])
    forward = np.maximum(t_f[:, layers.here], near_w[:, layers.after])
    backward = np.maximum(t_b[:, layers.here], near_g[:, layers.after])
    backward = np.maximum(backward, plan.passes * near_w[:, layers.before])

    visits = np.bincount(layers.here, weights=layers.count, minlength=len(layers.weights))
    first, last = layers.here[layers.before < 0][0], layers.here[layers.after < 0][0]
    sum_w = t_w @ visits
    back_w = plan.passes * (sum_w - t_w[:, last])
    ordered_s = t_w[:, first] + forward @ layers.count + backward @ layers.count
    ordered_s = m * ordered_s + t_g[:, first] + t_u[:, first]
    busy = {
        "fabric": m * (t_f @ visits + t_b @ visits),
        "weights in": m * (sum_w + back_w),
        "gradients out": m * (t_g @ visits),
        "store": t_u @ visits,
        "host link": batch / systems * made.input_s_per_sample,
    }
    lower = np.max([*busy.values()], axis=0)
    step_s = c.step_s.value
    return Times(
        *(t_w, t_f, t_b, t_g, t_u),
        slots_s=(forward, backward),
        micro=m,
        input_s=busy["host link"],
        lower_s=lower + step_s,
        lockstep_s=np.maximum(ordered_s, lower) + step_s,
        upper_s=np.sum([*busy.values()], axis=0) + plan.passes * m * t_w[:, last] + step_s,
        busy_s=busy,
    )


def tried(
    layers: Shapes,
    made: Rates,
    plans: Sequence[Plan],
    batch: Float[Reals, " case"],
    systems: Float[Reals, " case"],
    density: Float[Reals, "case layer"],
    micro_batch: int | None = None,
) -> tuple[Times, ...]:
    """The times of every plan; NaN in the cases in which its activations do not fit.

    Args:
        layers: of the workload.
        made: numbers of the cluster.
        plans: what may wait on the wafer.
        batch: B, samples per step.
        systems: N.
        density: s of every layer.
        micro_batch: samples of one micro-batch on one system; None: as many as fit.
    """
    return tuple(
        times(layers, made, plan, batch, systems, density, m)
        for plan in plans
        for m in [micro_batches(plan, made, batch / systems, micro_batch)]
    )


def fastest(found: Sequence[Times]) -> Int[Integers, " case"]:
    """Which plan takes least in each case; -1 where none fits."""
    seconds = np.array([one.lockstep_s for one in found])
    known = np.where(np.isnan(seconds), np.inf, seconds)
    return np.where(np.isinf(known).all(axis=0), -1, known.argmin(axis=0))


def micro_batches(
    plan: Plan,
    made: Rates,
    per_system: Float[Reals, " case"],
    micro_batch: int | None = None,
) -> Float[Reals, " case"]:
    """m, the fewest micro-batches whose activations fit; NaN where one sample does not.

    Args:
        plan: what waits on the wafer.
        made: the machine's memory among them.
        per_system: samples of a step on one system.
        micro_batch: samples of one micro-batch on one system, where it is given.
    """
    fit = made.sram_bytes // plan.bytes_per_sample
    size = fit if micro_batch is None else micro_batch
    if fit < 1 or size > fit:
        return np.full_like(per_system, np.nan)
    return np.ceil(per_system / size)
