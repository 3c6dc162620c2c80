"""Delivery of a task's rows: staged for the commit of an epoch, or published immediately. Does not import pyspark.

A task stages in consecutive transactions. The rows of the last one are kept until the box has received them all: when a
connection is lost, it is unknown which arrived, so that transaction is left to abort and its rows are sent again in
another. So a box may crash and restart while a task stages, and memory does not grow with the task.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, Protocol

from pulsarbox.client.client import Client
from pulsarbox.client.errors import passes
from pulsarbox.client.keeping import keep
from pulsarbox.client.producer import Options, Producer
from pulsarbox.client.transaction import Transaction
from pulsarbox.client.transaction_coordinators import Coordinators
from pulsarbox.errors import InvalidTxnStatus, PulsarBoxError, TransactionNotFound
from pulsarbox.protocol.message_encoder import Outgoing
from pulsarbox.spark.connect.connections import WaitNotice
from pulsarbox.spark.sink.epoch_client import PAUSE_SECONDS, SinkEpochs, SinkError

BYTES_MAX: Final = 16 << 20
ROWS_MAX: Final = 50_000
"""Limits of a transaction and of the rows kept for it, plus one message."""

_PIECE_BYTES: Final = 4 << 20

Messages = list[Outgoing] | list[bytes]
"""Messages, or bare payloads if the messages have no metadata."""


class Sender(Protocol):
    """Sender of a task's rows."""

    known: bool
    """Whether the epoch was already published: then nothing is sent."""

    def put(self, topic: str, messages: Messages) -> None:
        """Send messages to a topic, in order."""

    def finish(self) -> list[str]:
        """Wait until the broker has received everything, and return the transactions used."""

    def abort(self) -> None:
        """Abort: end without sending more, and discard what was staged. Raises nothing."""

    def close(self) -> None:
        """Close the connections."""


class _Sending:
    """One connection to the broker, with a producer per topic."""

    def __init__(self, client: Client, options: Callable[[str], Options], subscription: str = "") -> None:
        """Prepare the connection; ``subscription`` is created in each topic to retain the messages; empty for none."""
        self.client = client
        self._subscription = subscription
        self._coordinators = Coordinators(client)
        self._options = options
        self._producers: dict[str, Producer] = {}
        self._txn: Transaction | None = None

    def enter(self, txn_id: str) -> Transaction:
        most, least = map(int, txn_id.split(":"))
        self._txn = Transaction(self.client, self._coordinators, most, least)
        for each in self._producers.values():
            each.enter(self._txn)
        return self._txn

    def send(self, topic: str, messages: Messages) -> None:
        producer = self._producers.get(topic)
        if producer is None:
            if self._subscription:
                keep(self.client, topic, self._subscription)
            producer = Producer(self.client, topic, self._options(topic), _ignore)
            producer.enter(self._txn)
            self._producers[topic] = producer
        plain = [each for each in messages if isinstance(each, bytes)]
        if plain:
            producer.send_plain(plain)
            return
        for message in messages:
            assert isinstance(message, Outgoing), "all are, or none"
            producer.send(message)

    def flush(self) -> None:
        for each in self._producers.values():
            each.flush()


class Staging:
    """Sender that stages a task's rows for an epoch."""

    def __init__(
        self,
        connected: Callable[[], Client],
        epochs: SinkEpochs,
        epoch: int,
        timeout_ms: int,
        options: Callable[[str], Options],
        seconds: float,
        subscription: str = "",
    ) -> None:
        """Prepare without connecting. ``timeout_ms``: transaction timeout. ``options``: producer options by topic.
        ``seconds``: limit on retries while the box is unavailable. ``subscription``: see ``_Sending``."""
        self._seconds = seconds
        self._subscription = subscription
        self.known = False
        """Whether the epoch was already published: then nothing is staged."""
        self._connected = connected
        self._begin: Callable[[], str | None] = partial(epochs.begin, epoch, timeout_ms)
        self._epochs = epochs
        self._options = options
        self._sending: _Sending | None = None
        self._txn: Transaction | None = None
        self._kept: list[tuple[str, Messages]] = []
        self._rows = self._bytes = 0
        self._begun: list[str] = []
        self._staged: list[str] = []

    def put(self, topic: str, messages: Messages) -> None:
        """Stage messages, at most as many as an Arrow batch holds. Raises SinkError."""
        if self.known or not messages:
            return
        for part in _pieces(messages):
            self._kept.append((topic, part))
            self._rows += len(part)
            self._bytes += sum(size_of(each) for each in part)
            self._trying(partial(self._send, [(topic, part)]))
            if self._rows >= ROWS_MAX or self._bytes >= BYTES_MAX:
                self._settle()

    def finish(self) -> list[str]:
        """See Sender. Empty if there were no rows or the epoch was already published. Raises SinkError."""
        self._settle()
        return [] if self.known else self._staged

    def abort(self) -> None:
        """See Sender. If the box is unreachable, the transactions end with the commit of the epoch, or time out."""
        self._leave()
        abort(self._connected, self._begun)

    def close(self) -> None:
        """See Sender."""
        self._leave()
        self._epochs.close()

    def _leave(self) -> None:
        sending, self._sending, self._txn = self._sending, None, None
        if sending is not None:
            sending.client.close()

    def _send(self, parts: Sequence[tuple[str, Messages]]) -> None:
        if self._sending is None:
            self._sending = _Sending(self._connected(), self._options, self._subscription)
            self._sending.client.service()  # avoids beginning a transaction per retry
        if self._txn is None:
            begun = self._begin()
            if begun is None:
                self.known = True
                self._kept.clear()
                return
            self._begun.append(begun)
            self._txn = self._sending.enter(begun)
        for topic, messages in parts:
            self._sending.send(topic, messages)
            if self._txn.failed is not None:
                raise self._txn.failed

    def _settle(self) -> None:
        """Wait until the box has received all rows kept."""
        if self._kept:
            self._trying(self._settle_once)
        if self.known:
            return
        if self._txn is not None:
            self._staged.append(self._txn.id)
            self._txn = None
        self._kept.clear()
        self._rows = self._bytes = 0

    def _settle_once(self) -> None:
        if self._txn is not None:
            self._txn.settle()

    def _trying(self, what: Callable[[], None]) -> None:
        """Run ``what``. If the box becomes unavailable, wait for it, and resend the rows kept in another transaction.

        Raises SinkError.
        """
        deadline, waiting = 0.0, WaitNotice(self._seconds)
        while True:
            try:
                if deadline:
                    self._send(self._kept)
                    self._settle_once()
                    return
                what()
                return
            except PulsarBoxError as error:
                deadline = deadline or time.monotonic() + self._seconds
                if not passes(error) or time.monotonic() + PAUSE_SECONDS > deadline:
                    raise SinkError(_in_words(error)) from error
                waiting.report(error)
            except ValueError as error:
                raise SinkError(_in_words(error)) from error
            self._leave()
            time.sleep(PAUSE_SECONDS)


class Plain:
    """Sender that publishes immediately, without transactions: rows resent after a failure are duplicated unless the
    broker knows their sequence IDs."""

    def __init__(
        self, connected: Callable[[], Client], options: Callable[[str], Options], seconds: float, subscription: str = ""
    ) -> None:
        """See ``Staging``."""
        self.known = False
        self._subscription = subscription
        self._connected = connected
        self._options = options
        self._seconds = seconds
        self._sending: _Sending | None = None

    def put(self, topic: str, messages: Messages) -> None:
        """Send messages. Raises SinkError."""
        if not messages:
            return
        with _worded():
            if self._sending is None:
                self._sending = _Sending(self._first(), self._options, self._subscription)
            self._sending.send(topic, messages)

    def _first(self) -> Client:
        """Return a connected client, retrying while the broker is unavailable."""
        deadline = time.monotonic() + self._seconds
        while True:
            client = self._connected()
            try:
                client.service()
            except PulsarBoxError as error:
                client.close()
                if not passes(error) or time.monotonic() + PAUSE_SECONDS > deadline:
                    raise
            else:
                return client
            time.sleep(PAUSE_SECONDS)

    def finish(self) -> list[str]:
        """See Sender. Raises SinkError."""
        with _worded():
            if self._sending is not None:
                self._sending.flush()
        return []

    def abort(self) -> None:
        """See Sender. Sent messages stay published."""

    def close(self) -> None:
        """See Sender."""
        if self._sending is not None:
            self._sending.client.close()


def abort(connected: Callable[[], Client], txn_ids: Sequence[str]) -> None:
    """Abort transactions if the box is reachable; the others time out. Raises nothing."""
    with contextlib.suppress(PulsarBoxError, OSError), contextlib.closing(connected()) as client:
        client.service()
        sending = _Sending(client, lambda topic: Options())
        for each in txn_ids:
            try:
                sending.enter(each).abort()
            except PulsarBoxError as error:
                if passes(error):  # each of them would wait as long
                    return


def size_of(message: Outgoing | bytes) -> int:
    """Return the approximate memory use of a message in bytes."""
    if isinstance(message, bytes):
        return len(message)
    properties = sum(len(name) + len(value) for name, value in message.properties)
    return len(message.payload or b"") + len(message.key or "") + properties + 200


def _pieces(messages: Messages) -> Iterator[Messages]:
    """Split messages into pieces of a few megabytes."""
    start = size = 0
    sizes = [size_of(each) for each in messages]
    for at, own in enumerate(sizes):
        if at > start and size + own > _PIECE_BYTES:
            yield messages[start:at]
            start, size = at, 0
        size += own
    if start < len(messages):
        yield messages[start:]


@contextlib.contextmanager
def _worded() -> Iterator[None]:
    """Convert client errors to SinkError."""
    try:
        yield
    except (PulsarBoxError, ValueError) as error:
        raise SinkError(_in_words(error)) from error


def _in_words(error: Exception) -> str:
    text = str(error)
    if isinstance(error, InvalidTxnStatus | TransactionNotFound):
        return (
            f"{text}. Staging took longer than stageTimeout, or another driver has taken over: raise stageTimeout, or "
            "check for the other driver"
        )
    return text


def _ignore(partition: int, ledger: int, entry: int, messages: int, tokens: Sequence[Any]) -> None:
    pass
