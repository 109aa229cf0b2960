"""A fit on the emulated machine beside the fused one: milliseconds of a step.

Net of 8 layers of 32 units, batch 100: as small as published. The shorter of two fits is taken off.
"""

import statistics
import time

import sciml
import wse

EPOCHS = 3, 63  # of 10 steps each
ROUNDS = 5


def step_ms(data: object, executor: object) -> tuple[float, float]:
    """Return the milliseconds of a step, by the clock and of the processor."""
    model, recipe = sciml.models.Dense(width=32, depth=8), sciml.train.Recipe(batch=100)
    spent = []
    for epochs in EPOCHS:
        began = time.process_time()
        fit = sciml.fit(model, data, epochs=epochs, recipe=recipe, executor=executor)
        all_s, attrs = time.process_time() - began, fit.history.attrs
        # Compiling is left out by the clock, and takes the same processor time in both.
        spent.append((attrs["train_s"], all_s))
    (short, short_all), (long, long_all) = spent
    steps = 10 * (EPOCHS[1] - EPOCHS[0])
    return 1e3 * (long - short) / steps, 1e3 * (long_all - short_all) / steps


def main() -> None:
    """Print the medians of all rounds, taken in turns."""
    data = sciml.simulate(sciml.ode.fitzhugh_nagumo(), 1000, seed=0)
    kinds = {"fused": None, "streamed": wse.CS2(mode="streaming")}
    for executor in kinds.values():
        step_ms(data, executor)  # what is compiled once
    rounds = [{name: step_ms(data, x) for name, x in kinds.items()} for _ in range(ROUNDS)]
    for name in kinds:
        clock, processor = (statistics.median(r[name][i] for r in rounds) for i in (0, 1))
        print(f"{name}: {clock:.2f} ms by the clock, {processor:.2f} ms of the processor")
    ratios = [r["streamed"][0] / r["fused"][0] for r in rounds]
    print(f"streamed over fused, by the clock: {min(ratios):.1f} to {max(ratios):.1f}")


if __name__ == "__main__":
    main()
