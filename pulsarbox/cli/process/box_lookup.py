"""Lookup of the box for ``status`` and ``stop``: by data directory, or an in-memory box."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.value_types import BoundedInteger
from pulsarbox.cli.process.directory_options import CONFIG, DATA_DIR, data_directory
from pulsarbox.server.process.runtime_file import read

NOWHERE = Path("/nonexistent/pulsarbox in memory")
"""Placeholder directory if no in-memory box runs."""
_MEMORY = click.option(
    "--memory", is_flag=True, help="Select the box started with --memory, instead of one with a data directory."
)
_PID = click.option("--pid", type=BoundedInteger(1), help="With --memory: select one of several boxes by process ID.")


def box_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of ``directory_of`` to a command."""
    for option in (_PID, _MEMORY, DATA_DIR, CONFIG):
        command = option(command)
    return command


def directory_of(config_file: Path | None, data_dir: str | None, memory: bool, pid: int | None) -> Path:
    """Return the directory with the runtime file of the box. It does not exist if no in-memory box runs.

    Raises Misused if the options conflict or match several boxes.
    """
    if not memory:
        if pid is not None:
            raise Misused("--pid requires --memory: select the box of a data directory with --data-dir")
        return data_directory(config_file, data_dir)
    if data_dir is not None:
        raise Misused("--memory and --data-dir cannot be combined: a box in memory has no data directory")
    from pulsarbox.server.process.memory_box_entry import entries, pid_of

    found = {pid_of(path): path for path in entries()}
    if pid is not None:
        return found.get(pid, NOWHERE)
    if len(found) > 1:
        boxes = ", ".join(_told(number, path) for number, path in found.items())
        raise Misused(f"several boxes run in memory: {boxes}; select one with --pid")
    return next(iter(found.values()), NOWHERE)


def _told(pid: int, path: Path) -> str:
    running = read(path, pid)
    return f"{pid} ({running.broker_urls})" if running else str(pid)
