"""``pulsarbox stop``: stop the daemon of a data directory."""

import sys
from pathlib import Path
from typing import Final

import click

from pulsarbox.cli.common.terminal_text import notify
from pulsarbox.cli.common.value_types import Seconds
from pulsarbox.cli.process.box_lookup import box_options, directory_of
from pulsarbox.cli.process.lock_holder import find
from pulsarbox.cli.process.process_control import find_process

EXIT_OTHER_CONTAINER: Final = 4
EXIT_OTHER_PROGRAM: Final = 4
EXIT_NOT_ALLOWED: Final = 5
EXIT_TIMEOUT: Final = 7


@click.command()
@box_options
@click.option(
    "--timeout",
    type=Seconds(),
    default="30s",
    show_default=True,
    help="Time to wait for the process to exit. The box itself takes at most brokerShutdownTimeoutMs to shut down.",
)
def stop(config_file: Path | None, data_dir: str | None, memory: bool, pid: int | None, timeout: float) -> None:
    """Stop the box of a data directory.

    Sends SIGTERM to the process that holds the LOCK file, and waits until it exits. For a box started with --memory,
    pass --memory.

    \b
    Exit codes:
      0  stopped, or no box was running
      2  an option or the configuration is invalid
      4  the process is in another container, or it is a program with an embedded box (docs/embedding.md), which stops
         the box itself
      5  the process or the data directory belongs to another user
      7  still running after --timeout

    \b
    Examples:
      pulsarbox stop
      pulsarbox stop --data-dir mybox --timeout 60
      pulsarbox stop --memory
    """
    directory = directory_of(config_file, data_dir, memory, pid)
    if memory and not directory.is_dir():
        notify("not running: no box of this user runs in memory" + (f" as process {pid}" if pid else ""))
        sys.exit(0)
    sys.exit(_stopped(directory, timeout, memory))


def _stopped(directory: Path, timeout: float, memory: bool) -> int:
    if not directory.is_dir():
        notify(f"not running: data directory {directory} does not exist")
        return 0
    found = find(directory)
    if found is None:
        notify(f"not running: no process holds {directory}")
        return 0
    process = find_process(found.pid)
    found = find(directory)  # the box may have stopped meanwhile
    if found is None:
        notify(f"not running: it has just exited, no process holds {directory}")
        return 0
    if process is None or not found.confirmed:
        notify(
            f"{directory} is held by process {found.pid or 'unknown'}, which is not visible from here:"
            " stop it in its container"
        )
        return EXIT_OTHER_CONTAINER
    if _is_embedded(directory, found.pid):
        notify(
            f"the box on {directory} is part of process {found.pid}, another program: stop the box through that program"
        )
        return EXIT_OTHER_PROGRAM
    try:
        process.terminate()
    except PermissionError:
        notify(f"process {found.pid} belongs to another user: run this as the user of the box, or as root")
        return EXIT_NOT_ALLOWED
    except ProcessLookupError:
        pass
    notify(f"stopping process {found.pid}; waiting up to {timeout:g} s")
    if not process.wait(timeout):
        notify(f"process {found.pid} is still running after {timeout:g} s: raise --timeout, or `kill -9 {found.pid}`,")
        notify("which stops it immediately" if memory else "which loses no acknowledged message")
        return EXIT_TIMEOUT
    notify(f"stopped: process {found.pid} has exited" + ("" if memory else f", {directory} is free"))
    return 0


def _is_embedded(directory: Path, pid: int) -> bool:
    """Return whether the box is embedded in another program, which a signal would end as a whole."""
    from pulsarbox.server.process.runtime_file import read

    running = read(directory, pid)
    return running is not None and running.embedded
