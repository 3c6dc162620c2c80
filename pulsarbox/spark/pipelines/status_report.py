"""Periodic status reports of a runner to the box, every two seconds. Failures do not affect the run.

After a rejection, the reporter retries less often, and the runner reports it once.
"""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from pulsarbox.client.admin import Admin, AdminRefused
from pulsarbox.errors import AuthenticationError, PulsarBoxError
from pulsarbox.spark.connect.connections import admin_of
from pulsarbox.spark.connect.target import reach
from pulsarbox.spark.options import WRITE, parse

EVERY_SECONDS: Final = 2.0
_ANSWER_SECONDS: Final = 5.0
REFUSED_SECONDS: Final = 20.0
_MAY_NOT: Final = (401, 403)
"""Statuses of missing permissions: retried, as tokens are renewed and permissions granted."""
_NOT_HERE: Final = (404, 405)
"""Statuses of Apache Pulsar: not retried."""


def admin_for(box: Mapping[str, str], seconds: float = _ANSWER_SECONDS) -> Admin:
    """Return an Admin API client for the broker that the format's options name. Raises OptionError."""
    return admin_of(reach(parse(box, WRITE)), seconds)


class Reporter:
    """Reporter that runs while the context is active, and reports once more at its end."""

    def __init__(
        self,
        admin: Admin,
        name: str,
        master: str,
        rows: Callable[[], list[dict[str, Any]]],
        say: Callable[[str], None] = lambda text: None,
        ui: str | None = None,
    ) -> None:
        """Prepare the reports; ``rows`` returns the queries' progress. A separate thread calls it and ``say``. ``ui``:
        the address of Spark's web pages."""
        self._admin = admin
        self._name = name
        self._rows = rows
        self._around = {
            "master": master,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "startedAt": round(time.time() * 1000),
            "ui": ui,
        }
        self._over = threading.Event()
        self._listens = True
        self._say = say
        self._refused = ""
        """The last rejection; empty after a success."""
        self._thread = threading.Thread(target=self._report_periodically, name="pulsarbox reports", daemon=True)

    def __enter__(self) -> "Reporter":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(2 * _ANSWER_SECONDS)
        with contextlib.suppress(PulsarBoxError):
            self._admin.close()

    def _report_periodically(self) -> None:
        while True:
            is_over = self._over.is_set()
            self._report()
            if is_over or not self._listens:
                return
            self._over.wait(REFUSED_SECONDS if self._refused else EVERY_SECONDS)

    def _report(self) -> None:
        try:
            self._admin.report_pipeline(self._name, {**self._around, "queries": self._rows()})
        except AdminRefused as error:
            self._listens = error.status not in _NOT_HERE
            if error.status in _MAY_NOT:
                self._was_refused(str(error))
        except AuthenticationError as error:  # e.g. an unreadable token file, possibly temporary
            self._was_refused(str(error))
        except PulsarBoxError:
            return  # possibly temporary
        else:
            self._refused = ""

    def _was_refused(self, why: str) -> None:
        if not self._refused:
            self._say(f"`pulsarbox pipeline list` does not show this run: the box rejects its reports ({why})")
        self._refused = why
