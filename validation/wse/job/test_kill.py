"""`wse run` goes on after a kill, with the weights of a run that was never interrupted."""

import signal
import subprocess
import sys

import pytest

from tests.wse.job.test_run import close, filled, params, plain
from wse.job import Job, read

pytestmark = pytest.mark.usefixtures("quick_compilation")


def test_a_killed_run_goes_on(tmp_path):
    path = params(filled(tmp_path))
    text = path.read_text().replace("max_steps: 12", "max_steps: 100000")
    path.write_text(text.replace("log_steps: 4", "log_steps: 10"))
    command = [sys.executable, "-m", "wse", "run", "CSX", "--params", str(path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "Step=20 " in line:
                break
        process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    job = Job(read(path))
    step = job.executor.init(job.built.params).step
    assert step >= 15
    close(job.executor.init(job.built.params).params, plain(job, step))
