"""Runs of a model on the emulated cluster from a params file: train, evaluate, infer."""

from wse.job.params import Params, read
from wse.job.record import Record
from wse.job.run import Job, evaluate, infer, train

__all__ = ["Job", "Params", "Record", "evaluate", "infer", "read", "train"]
__dir__ = __all__.copy  # what tab completion shows
