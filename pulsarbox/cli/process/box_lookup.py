"""Which box ``status`` and ``stop`` are about: that of a data directory, or one that keeps everything in memory."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.process.directory_options import CONFIG, DATA_DIR, data_directory
from pulsarbox.server.process.runtime_file import read

NOWHERE = Path("/nonexistent/pulsarbox in memory")
"""Stands for the directory of a box in memory where none runs."""
_MEMORY = click.option(
    "--memory", is_flag=True, help="The box that was started with --memory, instead of a directory's."
)
_PID = click.option("--pid", type=click.IntRange(1), help="With --memory: which one, where there are several.")


def box_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that ``directory_of`` takes."""
    for option in (_PID, _MEMORY, DATA_DIR, CONFIG):
        command = option(command)
    return command


def directory_of(config_file: Path | None, data_dir: str | None, memory: bool, pid: int | None) -> Path:
    """The directory that tells of the box; one that does not exist where no box in memory runs.

    Raises Misused where the options do not say which one.
    """
    if not memory:
        if pid is not None:
            raise Misused("--pid goes with --memory: the box of a data directory is found by the directory")
        return data_directory(config_file, data_dir)
    if data_dir is not None:
        raise Misused("a box with --memory has no data directory: leave --data-dir or --memory out")
    from pulsarbox.server.process.memory_box_entry import entries, pid_of

    found = {pid_of(path): path for path in entries()}
    if pid is not None:
        return found.get(pid, NOWHERE)
    if len(found) > 1:
        boxes = ", ".join(_told(number, path) for number, path in found.items())
        raise Misused(f"several boxes run in memory: {boxes}; name one with --pid")
    return next(iter(found.values()), NOWHERE)


def _told(pid: int, path: Path) -> str:
    running = read(path, pid)
    return f"{pid} ({running.broker_urls})" if running else str(pid)
