"""The processor and the memory at hand, and what this process may use of them."""

import os
import platform
import sys
from pathlib import Path

import psutil

GROUP = Path("/sys/fs/cgroup")  # of a container: the limits of all its processes together


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def free_bytes() -> int:
    """Return the memory that this process may still take: its limit and its container count."""
    free = psutil.virtual_memory().available
    if sys.platform == "linux":
        process = psutil.Process()
        limit, _ = process.rlimit(psutil.RLIMIT_AS)
        free = free if limit < 0 else min(free, max(0, limit - process.memory_info().vms))
    try:
        most, used = (int((GROUP / name).read_text()) for name in ("memory.max", "memory.current"))
        stat = (GROUP / "memory.stat").read_text().splitlines()
    except (OSError, ValueError):  # no container, or one without a limit
        return free
    cached = sum(int(line.split()[1]) for line in stat if line.startswith("inactive_file "))
    return max(0, min(free, most - used + cached))


def processor() -> str:
    """Return the processor's own name where the system tells it."""
    return _told("model name") or platform.processor() or "unknown processor"


def instructions() -> str:
    """Return what the processor can do beyond its architecture, where the system tells it."""
    return f"{platform.machine()} {_told('flags', 'Features')}".strip()


def _told(*names: str) -> str:
    """Return the first line of one of these names in what Linux says of the processor."""
    info = Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.exists() else ():
        name, _, value = line.partition(":")
        if name.strip() in names:
            return value.strip()
    return ""
