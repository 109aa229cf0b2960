"""One file for each published table or figure: what is run, and what it is compared with.

`PUBLISHED` are the four of the published study; `STUDIES` holds further ones, which say what limits
an inverse map.
"""

from sciml.studies.description import Study
from sciml.studies.figure2 import STUDY as FIGURE2
from sciml.studies.figure2 import figure2
from sciml.studies.figure3 import STUDY as FIGURE3
from sciml.studies.figure3 import figure3
from sciml.studies.figure4 import STUDY as FIGURE4
from sciml.studies.figure4 import figure4
from sciml.studies.inverse.covariance import STUDY as COVARIANCE
from sciml.studies.inverse.covariance import covariance
from sciml.studies.inverse.numerics import PRECISION, SPARSITY
from sciml.studies.inverse.posteriors import STUDY as POSTERIORS
from sciml.studies.inverse.posteriors import posteriors
from sciml.studies.inverse.questions import JOINT, NOISE, SAMPLES, WIDTH
from sciml.studies.table4 import STUDY as TABLE4
from sciml.studies.table4 import table4
from sciml.studies.wind.questions import (
    WIND_DRAWS,
    WIND_LIMITS,
    WIND_LIMITS_GENERATED,
    WIND_SAMPLES,
    WIND_SIZE,
    WIND_SIZE_GENERATED,
    WIND_SKILL,
)
from sciml.studies.wind.terrain import WIND_TERRAIN
from sciml.studies.wind.two_sources import STUDY as TWO_SOURCES

PUBLISHED = (TABLE4, FIGURE2, FIGURE3, FIGURE4)
STUDIES = {
    study.name: study
    for study in (
        *PUBLISHED,
        NOISE,
        WIDTH,
        SAMPLES,
        JOINT,
        COVARIANCE,
        POSTERIORS,
        SPARSITY,
        PRECISION,
        WIND_SKILL,
        WIND_SIZE,
        WIND_SIZE_GENERATED,
        WIND_LIMITS,
        WIND_LIMITS_GENERATED,
        WIND_SAMPLES,
        WIND_DRAWS,
        WIND_TERRAIN,
        TWO_SOURCES,
    )
}
noise, width, samples, joint = NOISE.run, WIDTH.run, SAMPLES.run, JOINT.run
sparsity, precision = SPARSITY.run, PRECISION.run

__all__ = [
    "PUBLISHED",
    "STUDIES",
    "Study",
    "covariance",
    "figure2",
    "figure3",
    "figure4",
    "joint",
    "noise",
    "posteriors",
    "precision",
    "samples",
    "sparsity",
    "table4",
    "width",
]
__dir__ = __all__.copy  # what tab completion shows
