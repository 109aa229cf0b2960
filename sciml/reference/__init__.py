"""Posteriors to compare with: by standard samplers, from a net's by weight, or published."""

from sciml.reference.compute import compute, stored
from sciml.reference.importance import importance
from sciml.reference.likelihood import log_likelihood
from sciml.reference.nuts import Chains, nuts
from sciml.reference.sbibm import sbibm_posterior
from sciml.reference.smc import Population, smc
from sciml.reference.target import Target, target

__all__ = [
    "Chains",
    "Population",
    "Target",
    "compute",
    "importance",
    "log_likelihood",
    "nuts",
    "sbibm_posterior",
    "smc",
    "stored",
    "target",
]
__dir__ = __all__.copy  # what tab completion shows
