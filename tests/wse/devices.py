"""Programs that need several devices, which are counted when JAX starts.

Each runs in a process of its own, forked off one that has imported everything and computed
nothing: the imports take longer than most of the programs.
"""

import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import traceback
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
# A rendezvous that hangs must fail here, not after JAX's own 40 s.
FLAGS = (
    "--xla_force_host_platform_device_count=8"
    " --xla_cpu_collective_call_warn_stuck_timeout_seconds=20"
    " --xla_cpu_collective_call_terminate_timeout_seconds=40"
)


def run_on_8_devices(program: str, timeout_s: int = 120) -> str:
    """Return what a program prints that ends well within the time."""
    server = started()
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps([textwrap.dedent(program), timeout_s]) + "\n")
    server.stdin.flush()
    code, printed, errors = json.loads(server.stdout.readline())
    assert code == 0, errors[-3000:]
    return printed


@functools.cache
def started() -> Any:
    """Return the process off which programs are forked; it ends when this one does."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} {FLAGS}"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-W", "error", __file__],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def serve() -> None:
    """Run the programs on standard input, one a line; tell of each how it ended."""
    import jax  # noqa: F401
    import optax  # noqa: F401
    from flax import linen, nnx  # noqa: F401

    from wse.execute.resident import executor as resident  # noqa: F401
    from wse.execute.streaming import visits  # noqa: F401

    for line in sys.stdin:
        program, timeout_s = json.loads(line)
        with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as errors:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of threads of libraries that have done nothing
                process = os.fork()
            if not process:
                os._exit(ended(program, timeout_s, [printed.fileno(), errors.fileno()]))
            code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            for file in (printed, errors):
                file.seek(0)
            sys.stdout.write(json.dumps([code, printed.read(), errors.read()]) + "\n")
            sys.stdout.flush()


def ended(program: str, timeout_s: int, outputs: list[int]) -> int:
    """Run a program in this process; return its exit code."""
    for number, output in enumerate(outputs, 1):
        os.dup2(output, number)
    signal.alarm(timeout_s)
    code = 0
    try:
        exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    serve()
