"""Inverse maps for ODE parameters and super-resolution of wind, learned with Flax.

>>> import sciml
>>> data = sciml.simulate(sciml.ode.fitzhugh_nagumo(), samples=4, seed=0)
>>> data.observation.shape
(4, 1000)
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sciml import (
        baselines,
        diagnose,
        estimator,
        figure,
        models,
        notebook,
        ode,
        reference,
        studies,
        train,
        wind,
    )
    from sciml.citations import cite
    from sciml.inverse import Fit, Likelihood, fit, fit_likelihood, load, refine
    from sciml.ode import dataset, simulate
    from sciml.provenance import show_versions
    from sciml.reference import population, trials

__version__ = "0.1.0"
__all__ = [
    "Fit",
    "Likelihood",
    "baselines",
    "cite",
    "dataset",
    "diagnose",
    "estimator",
    "figure",
    "fit",
    "fit_likelihood",
    "load",
    "models",
    "notebook",
    "ode",
    "population",
    "reference",
    "refine",
    "show_versions",
    "simulate",
    "studies",
    "train",
    "trials",
    "wind",
]

# Loaded at first use, so that `import sciml` and the command line start at once.
FUNCTIONS = {
    "Fit": "sciml.inverse",
    "Likelihood": "sciml.inverse",
    "cite": "sciml.citations",
    "dataset": "sciml.ode",
    "fit": "sciml.inverse",
    "fit_likelihood": "sciml.inverse",
    "load": "sciml.inverse",
    "population": "sciml.reference",
    "refine": "sciml.inverse",
    "show_versions": "sciml.provenance",
    "simulate": "sciml.ode",
    "trials": "sciml.reference",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name in FUNCTIONS:
        return getattr(importlib.import_module(FUNCTIONS[name]), name)
    if name in __all__:
        return importlib.import_module(f"sciml.{name}")
    raise AttributeError(f"sciml has no {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    """Return the public names."""
    return [*__all__, "__version__"]
