"""One file for each published table or figure: what is run, and what it is compared with."""

from sciml.studies.figure2 import STUDY as FIGURE2
from sciml.studies.figure2 import figure2
from sciml.studies.figure3 import STUDY as FIGURE3
from sciml.studies.figure3 import figure3
from sciml.studies.figure4 import STUDY as FIGURE4
from sciml.studies.figure4 import figure4
from sciml.studies.study import Study
from sciml.studies.table4 import STUDY as TABLE4
from sciml.studies.table4 import table4

STUDIES = {study.name: study for study in (TABLE4, FIGURE2, FIGURE3, FIGURE4)}

__all__ = ["STUDIES", "Study", "figure2", "figure3", "figure4", "table4"]
