"""The reader: the thread that fetches entries from the disk, many a request, so that no page fault meets the loop."""

import threading
from collections.abc import Callable
from queue import SimpleQueue

from pulsarbox.storage.engine import Engine, ReadRequest
from pulsarbox.storage.record import Entry

ReadDone = Callable[[int, list[Entry], Exception | None], None]


class Reader:
    """Carries out what ``submit`` is given, in order, and says so through ``done`` in its own thread."""

    def __init__(self, engine: Engine, done: ReadDone) -> None:
        self._engine = engine
        self._done = done
        self._requests: SimpleQueue[ReadRequest | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="reader", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def submit(self, request: ReadRequest) -> None:
        """Fetch entries."""
        self._requests.put(request)

    def stop(self) -> None:
        """Finish what is asked for, then end the thread."""
        self._requests.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (request := self._requests.get()) is not None:
            entries: list[Entry] = []
            error: Exception | None = None
            try:
                entries = self._engine.read(request)
            except Exception as failure:
                error = failure
            self._done(request.token, entries, error)
