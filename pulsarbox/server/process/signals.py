"""Signal handling of the daemon: shutdown, and reopening of the log file."""

import asyncio
import logging
import signal

from pulsarbox.server.process.log_file import LogFile

log = logging.getLogger(__name__)


class ProcessEnd:
    """The request to end the process, with its reason."""

    def __init__(self) -> None:
        self.reason: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def ask(self, reason: str) -> None:
        """Request the end of the process; the first reason counts."""
        if not self.reason.done():
            self.reason.set_result(reason)


def install_signal_handlers(file: LogFile | None) -> ProcessEnd:
    """Install the signal handlers; return the future shutdown request.

    SIGTERM and SIGINT end the process. SIGHUP reopens the log ``file``; without a file it means that the terminal is
    closed, and ends the process gracefully, unless it was ignored at startup (nohup).
    """
    loop = asyncio.get_running_loop()
    ending = ProcessEnd()
    loop.add_signal_handler(signal.SIGTERM, ending.ask, "SIGTERM")
    loop.add_signal_handler(signal.SIGINT, ending.ask, "SIGINT")
    if file is not None:
        loop.add_signal_handler(signal.SIGHUP, _reopen, file)
    elif signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, ending.ask, "SIGHUP, the terminal was closed")
    return ending


def _reopen(file: LogFile) -> None:
    try:
        file.reopen()
    except OSError as error:
        log.warning("SIGHUP: cannot reopen the log, still writing to the previous file: %s", error)
    else:
        log.info("SIGHUP: log reopened")
