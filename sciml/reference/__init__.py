"""Posteriors to compare with: by standard samplers, from a net's by weight, or published."""

from sciml.reference.compute import compute, stored
from sciml.reference.importance import importance
from sciml.reference.laplace import laplace
from sciml.reference.likelihood import log_likelihood
from sciml.reference.nuts import Chains, nuts
from sciml.reference.sbibm import sbibm_posterior
from sciml.reference.several import Hyper, population, trials
from sciml.reference.smc import Population, smc
from sciml.reference.target import Target, target
from sciml.reference.trust import trust

__all__ = [
    "Chains",
    "Hyper",
    "Population",
    "Target",
    "compute",
    "importance",
    "laplace",
    "log_likelihood",
    "nuts",
    "population",
    "sbibm_posterior",
    "smc",
    "stored",
    "target",
    "trials",
    "trust",
]
__dir__ = __all__.copy  # what tab completion shows
