"""A runner tells the box how it goes, every two seconds, beside everything else. Who does not listen is let be.

A box that refuses is told again after a while, and the runner says so, once."""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from pulsarbox.client.admin import Admin, Refused
from pulsarbox.errors import AuthenticationError, PulsarBoxError
from pulsarbox.spark.connect.connections import admin_of
from pulsarbox.spark.connect.target import reach
from pulsarbox.spark.options import WRITE, parse

EVERY_SECONDS: Final = 2.0
_ANSWER_SECONDS: Final = 5.0
REFUSED_SECONDS: Final = 20.0
_MAY_NOT: Final = (401, 403)
"""What is answered to one who may not: asked again later, as tokens are renewed and roles are granted more."""
_NOT_HERE: Final = (404, 405)
"""What is answered by Apache Pulsar, and by an older box: it is not asked again."""


def admin_for(box: Mapping[str, str], seconds: float = _ANSWER_SECONDS) -> Admin:
    """A client of the Admin API of the broker that options of the format mean. Raises OptionError."""
    return admin_of(reach(parse(box, WRITE)), seconds)


class Reporter:
    """Tells while it is entered, and once more at the end."""

    def __init__(
        self,
        admin: Admin,
        name: str,
        master: str,
        rows: Callable[[], list[dict[str, Any]]],
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        """``rows``: the queries as they stand; called on a thread of its own, as ``say`` is."""
        self._admin = admin
        self._name = name
        self._rows = rows
        self._around = {
            "master": master,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "startedAt": round(time.time() * 1000),
        }
        self._over = threading.Event()
        self._listens = True
        self._say = say
        self._refused = ""
        """What it was refused with last; empty when it was told."""
        self._thread = threading.Thread(target=self._tell_on, name="pulsarbox reports", daemon=True)

    def __enter__(self) -> "Reporter":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(2 * _ANSWER_SECONDS)
        with contextlib.suppress(PulsarBoxError):
            self._admin.close()

    def _tell_on(self) -> None:
        while True:
            is_over = self._over.is_set()
            self._tell()
            if is_over or not self._listens:
                return
            self._over.wait(REFUSED_SECONDS if self._refused else EVERY_SECONDS)

    def _tell(self) -> None:
        try:
            self._admin.tell_pipeline(self._name, {**self._around, "queries": self._rows()})
        except Refused as error:
            self._listens = error.status not in _NOT_HERE
            if error.status in _MAY_NOT:
                self._was_refused(str(error))
        except AuthenticationError as error:  # a file with a token that cannot be read, just now
            self._was_refused(str(error))
        except PulsarBoxError:
            return  # it may come back
        else:
            self._refused = ""

    def _was_refused(self, why: str) -> None:
        if not self._refused:
            self._say(f"`pulsarbox pipeline list` does not show how this goes: the box refuses it ({why})")
        self._refused = why
