"""The daemon: a process that is a box. Signals, logging, limits, the garbage collector, and what its end is told as.

The binary port serves first; the Admin API, whose library takes longer to import, follows a moment later.
"""

import asyncio
import gc
import logging
import signal
import sys
import time
from pathlib import Path

from pulsarbox import __version__
from pulsarbox.config import Settings
from pulsarbox.errors import PersistenceError
from pulsarbox.server.disk_speed import slow, sync_times
from pulsarbox.server.limits import FILES_MIN, raise_file_limit, too_few
from pulsarbox.server.listening import PortTaken
from pulsarbox.server.logs import set_up
from pulsarbox.server.processes import described
from pulsarbox.server.running import Report
from pulsarbox.server.serving import Serving, lmdb_engine, new_loop
from pulsarbox.storage.directory import DirectoryHeld
from pulsarbox.storage.engine import Engine

log = logging.getLogger(__name__)

EXIT_FAILED = 1
EXIT_TAKEN = 4
"""The data directory or a port is another process's."""

_SYNCS = 16


def run(settings: Settings, report: Report, *, memory: bool = False) -> int:
    """Serve until SIGTERM or SIGINT; the process's exit code. With ``memory`` nothing is kept, or written anywhere."""
    began = time.monotonic()
    scarce = own_process(settings)
    if scarce:
        return _failed(report, scarce)
    engine: Engine | None = None
    try:
        engine = _engine(settings, memory)
        return new_loop(settings).run_until_complete(_serve(settings, engine, began, report, memory))
    except DirectoryHeld as error:
        here = settings.dataDirectory
        advice = f"stop it with `pulsarbox stop --data-dir {here}`, or choose another directory with --data-dir"
        return _failed(report, f"data directory {here} is in use by {described(error.pid)}: {advice}", EXIT_TAKEN)
    except PortTaken as error:
        return _failed(report, str(error), EXIT_TAKEN)
    except (PersistenceError, OSError) as error:
        return _failed(report, str(error))
    finally:
        if engine is not None:
            engine.close()


def own_process(settings: Settings) -> str:
    """Set up what a process has once, for one that is all a box's. What makes it impossible; empty where nothing does.

    In somebody else's process none of it is to be touched.
    """
    set_up(settings)
    sys.setswitchinterval(settings.journalSwitchIntervalMicros / 1_000_000)
    limit = raise_file_limit()
    scarce = too_few(limit, settings)
    if limit < FILES_MIN:
        return scarce
    if scarce:
        log.warning("%s", scarce)
    return ""


def settle_memory() -> None:
    """What lives now lives until the end: the collector need not look at it again, nor look up so often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def _failed(report: Report, reason: str, code: int = EXIT_FAILED) -> int:
    log.error("cannot start: %s", reason)
    report.failed(reason)
    return code


def _engine(settings: Settings, memory: bool) -> Engine:
    if memory:
        from pulsarbox.server.memory import SharedMemoryEngine

        return SharedMemoryEngine()
    return lmdb_engine(settings)


async def _serve(settings: Settings, engine: Engine, began: float, report: Report, memory: bool) -> int:
    """Startup, serve, shutdown."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    serving = Serving(settings, engine, memory=memory)
    running = await serving.open()
    log.info("serving %s after %.0f ms", running.broker_url, (time.monotonic() - began) * 1000)
    await serving.open_http()
    settle_memory()
    log.info(
        "pulsarbox %s: %s, %s, data in %s, ready after %.0f ms",
        __version__,
        running.broker_url,
        running.web_url,
        "memory only" if memory else settings.dataDirectory,
        (time.monotonic() - began) * 1000,
    )
    report.serving(running)
    if not memory:
        await measure_disk(Path(settings.dataDirectory))
    await stopped.wait()
    log.info("stopping: no new connections, finishing what is under way")
    await serving.close()
    log.info("stopped")
    return 0


async def measure_disk(data: Path) -> None:
    """Warn of a slow one. After the start, beside the loop: a start does not wait for it."""
    try:
        times = await asyncio.get_running_loop().run_in_executor(None, sync_times, data, _SYNCS)
    except OSError as error:
        log.debug("the disk's speed is not known: %s", error)
        return
    warning = slow(times, str(data))
    if warning:
        log.warning("%s", warning)
