"""Start in the background: run the command in a new session, which reports its outcome through a pipe."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from pulsarbox.cli.common.terminal_text import clean, notify
from pulsarbox.storage.lmdb.private_files import PRIVATE, make_directory


def start_detached(arguments: list[str], log_file: Path | None, *, in_data: bool = False) -> int:
    """Run pulsarbox with the arguments, wait until it serves, print its URLs, and return the exit code.

    The log is appended to ``log_file``, or discarded if that is None. ``in_data``: the log is in the data directory,
    and both are removed if they were created for a failed start.
    """
    made: list[Path] = []
    try:
        if log_file is not None:
            made = _made(log_file.parent)
        log = os.open(log_file or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE)
    except OSError as error:
        notify(_not_written(Path(log_file or os.devnull), error, in_data))
        return 1
    told, tell = os.pipe()
    log_to = [] if log_file is None else ["--log-to", str(log_file.absolute())]
    child = subprocess.Popen(
        [sys.executable, "-m", "pulsarbox", *arguments, *log_to, "--report-to", str(tell)],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        pass_fds=[tell],
        start_new_session=True,
    )
    os.close(tell)
    os.close(log)
    try:
        with os.fdopen(told, "rb") as answers:
            answer = answers.readline()
    except KeyboardInterrupt:
        child.terminate()
        notify(f"interrupted: stopping process {child.pid}")
        return 130
    document = json.loads(answer) if answer else {}
    if "pid" in document:
        _print(document, log_file)
        return 0
    code = child.wait()
    notify(document.get("failed") or f"it exited with code {code}")
    if log_file is not None and in_data and "failed" in document and _removed(log_file, made):
        log_file = None
    if log_file is not None:
        notify(f"its log: {log_file}")
    return code if code > 0 else 1


def _not_written(log_file: Path, error: OSError, in_data: bool) -> str:
    folder = log_file.parent
    if in_data and isinstance(error, FileExistsError | NotADirectoryError):
        return f"the data directory {folder} is not a directory: choose another with --data-dir"
    others = "--data-dir, or another place for the log with --log-file" if in_data else "--log-file"
    return f"the log {log_file} cannot be written: {error.strerror}: choose another with {others}"


def _made(folder: Path) -> list[Path]:
    """Create a directory. Return the created directories, innermost first. Raises OSError."""
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    make_directory(folder)
    return made


def _removed(log_file: Path, made: list[Path]) -> bool:
    """Remove the directories created for a failed start, if they contain only its log. Return whether that is gone."""
    try:
        if not made or list(made[0].iterdir()) != [log_file]:
            return False
        log_file.unlink()
        for each in made:
            each.rmdir()
    except OSError:  # another process uses it now
        pass
    return True


def _print(running: dict[str, Any], log_file: Path | None) -> None:
    which = f"--data-dir {shlex.quote(running['data'])}" if running["data"] else f"--memory --pid {running['pid']}"
    rows = {
        "process": str(running["pid"]),
        "pulsar": ", ".join(filter(None, (running["broker_url"], running["broker_url_tls"]))),
        "http": ", ".join(filter(None, (running["web_url"], running["web_url_tls"]))),
        "data": running["data"] or "in memory: nothing is written to disk",
        "log": str(log_file.absolute()) if log_file else "none (--log-file)",
        "stop": f"pulsarbox stop {which}",
    }
    for name, value in rows.items():
        click.echo(f"{name:<8} {clean(value)}")
