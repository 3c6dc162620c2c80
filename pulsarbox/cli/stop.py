"""``pulsarbox stop``: end the daemon of a data directory, and say how that went."""

import os
import select
import signal
import sys
from pathlib import Path
from typing import Final

import click

from pulsarbox.cli.holding import find
from pulsarbox.cli.options import CONFIG, DATA_DIR, data_directory
from pulsarbox.cli.text import say

EXIT_OTHER_CONTAINER: Final = 4
EXIT_OTHER_PROGRAM: Final = 4
EXIT_NOT_ALLOWED: Final = 5
EXIT_TIMEOUT: Final = 7


@click.command()
@CONFIG
@DATA_DIR
@click.option(
    "--timeout",
    metavar="S",
    type=click.FloatRange(0),
    default=30,
    show_default=True,
    help="Seconds to wait for its end. A box takes brokerShutdownTimeoutMs at most to finish its work.",
)
def stop(config_file: Path | None, data_dir: str | None, timeout: float) -> None:
    """Stop the box of a data directory: ask it to end (SIGTERM) and wait until it has.

    It is found by the LOCK file, and asked only when it really holds the directory. A box that was started with
    --memory has none: end it by its process id.

    \b
    Exit codes:
      0  it is stopped, or none was running
      2  an option or the configuration cannot be used
      4  its process cannot be told from here: it runs in another container; or it is another program (see
         docs/embedding.md), which ends the box itself
      5  its process is another user's
      7  it still runs after --timeout

    \b
    Examples:
      pulsarbox stop
      pulsarbox stop --data-dir mybox --timeout 60
    """
    sys.exit(_stopped(data_directory(config_file, data_dir), timeout))


def _stopped(directory: Path, timeout: float) -> int:
    if not directory.is_dir():
        say(f"not running: there is no data directory {directory}")
        return 0
    found = find(directory)
    if found is None:
        say(f"not running: no process holds {directory}")
        return 0
    try:
        # The number of a process may be given away again; what this stands for stays the same process.
        process = os.pidfd_open(found.pid) if found.pid else -1
    except OSError:
        process = -1
    found = find(directory)  # it may have ended meanwhile
    if found is None:
        say(f"not running: it has just ended, no process holds {directory}")
        return 0
    if process < 0 or not found.confirmed:
        say(
            f"{directory} is held by process {found.pid or 'unknown'}, which is not seen from here:"
            " stop it in the container that it runs in"
        )
        return EXIT_OTHER_CONTAINER
    if _is_embedded(directory, found.pid):
        say(f"the box on {directory} is part of process {found.pid}, which is another program: it ends the box")
        return EXIT_OTHER_PROGRAM
    try:
        signal.pidfd_send_signal(process, signal.SIGTERM)
    except PermissionError:
        say(f"process {found.pid} is another user's: run this as the user of the box, or as root")
        return EXIT_NOT_ALLOWED
    except ProcessLookupError:
        pass
    say(f"process {found.pid} is asked to stop; waiting up to {timeout:g} s")
    waiting = select.poll()
    waiting.register(process, select.POLLIN)
    if not waiting.poll(timeout * 1000):
        say(f"process {found.pid} still runs after {timeout:g} s: wait longer (--timeout), or `kill -9 {found.pid}`,")
        say("after which everything that was acknowledged is still there")
        return EXIT_TIMEOUT
    say(f"stopped: process {found.pid} has ended, {directory} is free")
    return 0


def _is_embedded(directory: Path, pid: int) -> bool:
    """Whether the process is a program of its own, which a signal would end as a whole."""
    from pulsarbox.server.running import read

    running = read(directory, pid)
    return running is not None and running.embedded
