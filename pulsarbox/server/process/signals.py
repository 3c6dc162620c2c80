"""The signals of a process that is a box: which of them end it, and which tells it of a new log file."""

import asyncio
import logging
import signal

from pulsarbox.server.process.log_file import LogFile

log = logging.getLogger(__name__)


class Ending:
    """Whether the process is to end, and why."""

    def __init__(self) -> None:
        self.reason: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def ask(self, reason: str) -> None:
        """End it; the first reason counts."""
        if not self.reason.done():
            self.reason.set_result(reason)


def heed(file: LogFile | None) -> Ending:
    """Heed signals from now on. What is given back has the reason once the process is to end.

    SIGTERM and SIGINT end it. SIGHUP opens the log ``file`` again; without one it means that the terminal is gone, and
    ends the process in order, unless it was ignored when the process began (nohup).
    """
    loop = asyncio.get_running_loop()
    ending = Ending()
    loop.add_signal_handler(signal.SIGTERM, ending.ask, "SIGTERM")
    loop.add_signal_handler(signal.SIGINT, ending.ask, "SIGINT")
    if file is not None:
        loop.add_signal_handler(signal.SIGHUP, _reopen, file)
    elif signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, ending.ask, "SIGHUP, the terminal is gone")
    return ending


def _reopen(file: LogFile) -> None:
    try:
        file.reopen()
    except OSError as error:
        log.warning("SIGHUP: the log cannot be opened again, it goes on where it was: %s", error)
    else:
        log.info("SIGHUP: the log is opened again")
