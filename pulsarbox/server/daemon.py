"""The daemon: a process that runs a box, with its signals, logging, limits, garbage collector and exit codes.

The binary port starts first; the Admin API, whose library takes longer to import, follows a moment later.
"""

import asyncio
import gc
import logging
import os
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pulsarbox import __version__
from pulsarbox.config import ConfigError, Settings
from pulsarbox.config.data_directories import data_directories
from pulsarbox.errors import PersistenceError
from pulsarbox.server.network.listeners import PortTaken
from pulsarbox.server.plugins import PluginWatcher
from pulsarbox.server.process.disk_speed import slow, sync_times
from pulsarbox.server.process.home_directory import at_home
from pulsarbox.server.process.log_setup import log_file_of, set_up
from pulsarbox.server.process.port_owner import described
from pulsarbox.server.process.rlimit import FILES_MIN, raise_file_limit, too_few
from pulsarbox.server.process.runtime_file import RuntimeFile, StartReport, write
from pulsarbox.server.process.signals import install_signal_handlers
from pulsarbox.server.serving import Serving, disk_engine, new_loop
from pulsarbox.storage.engine import Engine
from pulsarbox.storage.lmdb.directory import DirectoryHeld

if TYPE_CHECKING:
    from pulsarbox.server.process.memory_box_entry import MemoryEntry

log = logging.getLogger(__name__)

EXIT_FAILED = 1
EXIT_MISCONFIGURED = 2
"""Invalid settings for this machine."""
EXIT_TAKEN = 4
"""Another process uses the data directory or a port."""

_SYNCS = 16


def run(
    settings: Settings,
    report: StartReport,
    *,
    memory: bool = False,
    log_file: Path | None = None,
    accept_loss_of: Sequence[str] = (),
) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code of the process.

    With ``memory``, nothing is stored on disk. ``log_file`` is the file behind stdout and stderr, if any.
    ``accept_loss_of`` are data directories without which the box starts even if that loses messages.
    """
    began = time.monotonic()
    scarce = own_process(settings, log_file)
    settings = at_home(settings)
    where = "memory only" if memory else ", ".join(data_directories(settings))
    log.info("starting pulsarbox %s: process %d, data in %s", __version__, os.getpid(), where)
    if scarce:
        return _failed(report, scarce)
    engine: Engine | None = None
    try:
        engine = _engine(settings, memory, accept_loss_of)
        return new_loop(settings).run_until_complete(_serve(settings, engine, began, report, memory, log_file))
    except DirectoryHeld as error:
        here = str(error.path)
        advice = (
            f"stop it with `pulsarbox stop --data-dir {shlex.quote(here)}`, or choose another directory with --data-dir"
        )
        return _failed(report, f"data directory {here} is in use by {described(error.pid)}: {advice}", EXIT_TAKEN)
    except PortTaken as error:
        return _failed(report, str(error), EXIT_TAKEN)
    except ConfigError as error:
        return _failed(report, str(error), EXIT_MISCONFIGURED)
    except (PersistenceError, OSError) as error:
        return _failed(report, str(error))
    finally:
        if engine is not None:
            engine.close()


def own_process(settings: Settings, log_file: Path | None = None) -> str:
    """Set up process-wide state for a dedicated process. Return what prevents startup; empty if nothing does.

    Must not be called in a process of another program.
    """
    set_up(settings, log_file)
    os.umask(0o077)  # for plugins and libraries; our own files are created with explicit modes
    sys.setswitchinterval(settings.journalSwitchIntervalMicros / 1_000_000)
    limit = raise_file_limit()
    scarce = too_few(limit, settings)
    if limit < FILES_MIN:
        return scarce
    if scarce:
        log.warning("%s", scarce)
    return ""


def settle_memory() -> None:
    """Exclude all current objects from garbage collection, and enable the collector with tuned thresholds.

    Long-lived objects are examined once in each generation. Small generations cost no more in total and give short
    pauses: 3 ms for some 6,000 objects. With (10_000, 5, 2_000) the second generation had 60,000 objects and a pause of
    30 ms. A million objects, in the third generation, take half a second.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(2_000, 1, 30_000)
    gc.enable()


def _failed(report: StartReport, reason: str, code: int = EXIT_FAILED) -> int:
    log.error("cannot start: %s", reason)
    report.failed(reason)
    return code


def _engine(settings: Settings, memory: bool, accept_loss_of: Sequence[str]) -> Engine:
    if memory:
        from pulsarbox.server.memory_engine_adapter import SharedMemoryEngine

        return SharedMemoryEngine()
    return disk_engine(settings, accept_loss_of)


async def _serve(
    settings: Settings, engine: Engine, began: float, report: StartReport, memory: bool, log_file: Path | None
) -> int:
    """Run the server from startup to shutdown."""
    ending = install_signal_handlers(None if log_file is None else log_file_of(settings, log_file))
    serving = Serving(settings, engine, memory=memory, on_shutdown=ending.ask)
    running = await serving.open()
    watch = PluginWatcher(serving.broker.plugins)
    watch.begin()
    log.info("serving %s after %.0f ms", running.broker_urls, (time.monotonic() - began) * 1000)
    await serving.open_http()
    settle_memory()
    log.info(
        # Tools that start Pulsar wait for its log line: "messaging service is ready".
        "messaging service is ready: pulsarbox %s, %s, %s, data in %s, ready after %.0f ms",
        __version__,
        running.broker_urls,
        running.web_urls,
        "memory only" if memory else settings.dataDirectory,
        (time.monotonic() - began) * 1000,
    )
    entry = _memory_entry(running) if memory else None
    report.serving(running)
    if not memory:
        await measure_disk(Path(settings.dataDirectory))
    reason = await ending.reason
    log.info("stopping (%s): refusing new connections, completing requests in progress", reason)
    asked = time.monotonic()
    await serving.close()
    watch.stop()
    if entry is not None:
        entry.close()
    now = time.monotonic()
    log.info("stopped (%s) after %.0f ms, having run for %.0f s", reason, (now - asked) * 1000, now - began)
    return 0


def _memory_entry(running: RuntimeFile) -> "MemoryEntry | None":
    """Create the entry for `pulsarbox status --memory`; None, without failing, if no directory is suitable."""
    from pulsarbox.server.process.memory_box_entry import MemoryEntry

    try:
        entry = MemoryEntry()
        write(entry.path, running)
    except OSError as error:
        log.info("cannot register this box for `pulsarbox status --memory`: %s", error)
        return None
    return entry


async def measure_disk(data: Path) -> None:
    """Log a warning if the disk is slow. Runs beside the loop after startup, so startup does not wait for it."""
    try:
        times = await asyncio.get_running_loop().run_in_executor(None, sync_times, data, _SYNCS)
    except OSError as error:
        log.debug("cannot measure the speed of the disk: %s", error)
        return
    warning = slow(times, str(data))
    if warning:
        log.warning("%s", warning)
