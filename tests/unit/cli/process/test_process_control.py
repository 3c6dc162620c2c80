"""Stopping another process and waiting for it, with and without the system calls of Linux 5.3."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from pulsarbox.cli.process.process_control import find_process


@pytest.fixture(params=["pidfd", "ENOSYS", "EPERM", "missing"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Kernels with pidfd_open, without it, with a sandbox that forbids it, and a Python without support for it."""
    kind = str(request.param)

    def fail(*_: object) -> int:
        raise OSError(getattr(errno, kind), "no")

    if kind == "missing":
        monkeypatch.delattr(os, "pidfd_open")
    elif kind != "pidfd":
        monkeypatch.setattr(os, "pidfd_open", fail)
    return kind


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    """A process whose name contains blanks and brackets, as any process name may."""
    code = "import ctypes, time; ctypes.CDLL(None).prctl(15, b'a) R (b'); print(1, flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


@pytest.mark.usefixtures("kernel")
def test_a_process_is_asked_to_end_and_waited_for(sleeper: "subprocess.Popen[bytes]") -> None:
    process = find_process(sleeper.pid)
    assert process is not None
    assert not process.wait(0.1)
    process.terminate()
    assert process.wait(60)  # the process has ended, although its exit code is not collected yet
    assert sleeper.wait(60) == -signal.SIGTERM


@pytest.mark.usefixtures("kernel")
def test_one_that_has_ended_gets_no_signal(sleeper: "subprocess.Popen[bytes]") -> None:
    process = find_process(sleeper.pid)
    assert process is not None
    sleeper.kill()
    sleeper.wait(60)
    with pytest.raises(ProcessLookupError):
        process.terminate()
    assert process.wait(0)
    assert find_process(sleeper.pid) is None


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("pid", [0, -1, 2**22 + 1])
def test_no_process(pid: int) -> None:
    assert find_process(pid) is None
