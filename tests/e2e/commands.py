"""The commands of this project as subprocesses."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from click.testing import CliRunner, Result

from pulsarbox.cli.main import main
from tests import forks

SECONDS: Final = 250.0


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "pulsarbox", *words]


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PULSARBOX_")}


def run(
    *words: str, stdin: bytes = b"", code: int = 0, folder: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end, and check its exit code."""
    done = forks.run(*words, stdin=stdin, seconds=SECONDS, env=environment(), cwd=folder)
    assert done.returncode == code, f"{words}: exit code {done.returncode}\n{done.stderr.decode()}"
    return done


def called(*words: str, stdin: bytes = b"", code: int = 0) -> Result:
    """Run a command in this process, which has loaded the libraries of its queries, and check its exit code."""
    done = CliRunner().invoke(main, words, input=stdin)
    assert done.exit_code == code, f"{words}: exit code {done.exit_code}\n{done.output}\n{done.exception!r}"
    return done


@contextmanager
def running(
    *words: str, stdin: Any = subprocess.DEVNULL, folder: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command, which is stopped at the end of the block at the latest."""
    with forks.box(
        command(*words), stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), cwd=folder
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def envelopes(lines: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.splitlines()]


def ndjson(documents: Sequence[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in documents)
