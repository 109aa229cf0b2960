"""What has XLA compile tests in half the time: its older emitters, if it has them, in one piece.

    python tests/xla_flags.py

prints them, for the Makefile. XLA ends a process that names a flag which it does not know.
"""

import sys
from importlib.metadata import version

NEWER = (0, 11)  # of jaxlib: without the older emitters
OLDER = tuple(map(int, version("jaxlib").split(".")[:2])) < NEWER
QUICK = OLDER * "--xla_cpu_use_fusion_emitters=false " + "--xla_cpu_parallel_codegen_split_count=1"

if __name__ == "__main__":
    sys.stdout.write(QUICK)
