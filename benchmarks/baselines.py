"""What the classical estimators reach on the FitzHugh-Nagumo neuron: `docs/baselines.md`.

Run: python benchmarks/baselines.py [--train 1000 --test 128 --noise 0 0.3]
"""

import argparse

import numpy as np

from sciml.baselines import (
    Summary,
    extra_trees,
    least_squares,
    nearest_neighbours,
    principal_components,
    spike_features,
    together,
)
from sciml.ode import AR1, fitzhugh_nagumo, simulate


def report(label: str, found, test) -> None:
    """Print R² and median absolute error of each parameter, and shares of close estimates."""
    error = np.abs(found.estimate - test.parameters)
    r2 = 1 - (error**2).mean("sample") / test.parameters.var("sample")
    worst = error.max("parameter").values
    shares = [f"{(worst < bound).mean():.3f}" for bound in (1e-3, 1e-2)]
    print(label, "R2", r2.values.round(4), "median", error.median("sample").values, *shares)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", type=int, default=1000)
    parser.add_argument("--test", type=int, default=128)
    parser.add_argument("--noise", type=float, nargs="*", default=[0.0, 0.3])
    options = parser.parse_args()
    problem = fitzhugh_nagumo()
    for level in options.noise:
        noise = AR1(sd=level) if level else None
        train = simulate(problem, samples=options.train, seed=1, noise=noise)
        test = simulate(problem, samples=options.test, seed=11, noise=noise)
        components = principal_components(train, 16)
        all_features = together(Summary(), spike_features, components)
        named = {"summary": Summary(), "spikes": spike_features, "all": all_features}
        for name, features in named.items():
            for learn in (extra_trees, nearest_neighbours):
                found = learn(train, test, features=features)
                report(f"sd {level} {learn.__name__} {name}:", found, test)
        report(f"sd {level} least_squares:", least_squares(problem, test, noise=noise), test)


if __name__ == "__main__":
    main()
