"""A replica on loopback for benchmarks: `pulsarbox storage serve` in a process beside the measured one."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

SUFFIX: Final = "+replica"
"""Marks numbers of copies of which one is on a replica: 2/2/2+replica."""


class ReplicaOnLoopback(NamedTuple):
    """A running replica."""

    address: str
    secret_file: Path


@contextmanager
def replica(folder: Path) -> Iterator[ReplicaOnLoopback]:
    """Serve a directory in ``folder``."""
    secret = folder / "secret"
    secret.write_text("the secret of a benchmark\n")
    secret.chmod(0o600)
    command = [sys.executable, "-m", "pulsarbox", "storage", "serve", str(folder / "replica"), "--listen"]
    command += ["127.0.0.1:0", "--secret-file", str(secret), "--log-level", "warning"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield ReplicaOnLoopback("replica://" + process.stdout.readline().split()[-1], secret)
        finally:
            process.terminate()
