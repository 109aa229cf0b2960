"""Programs that run as several processes, which `jax.distributed` joins."""

import json
import os
import socket
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]


def started(program: str, *arguments: object) -> list[subprocess.Popen]:
    """Two processes, each with its rank, a port to meet at, and the arguments."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"
    # More threads than cores: a process that waits in a sum must not keep the other from it.
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PJRT_NPROC": "8"}
    return [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(program), str(rank), str(port)]
            + [str(x) for x in arguments],
            env=environment,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]


def answered(several: list[subprocess.Popen]) -> list[dict]:
    """What each printed last; both are read at once, since a full pipe stops its writer."""
    try:
        with ThreadPoolExecutor(len(several)) as pool:
            answers = list(pool.map(lambda process: process.communicate(timeout=300), several))
    finally:
        for process in several:
            process.kill()
    assert [process.returncode for process in several] == [0, 0], answers[0][1][-3000:]
    return [json.loads(out.splitlines()[-1]) for out, _ in answers]
