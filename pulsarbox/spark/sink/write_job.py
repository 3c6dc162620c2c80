"""Write jobs: how tasks send rows, and how staged rows are published or aborted. Does not import pyspark.

Spark numbers the epochs of a stream. A batch write is epoch 0 of a separate sink: that of its job, or one deleted right
after publishing. Parts of a job are epochs of one sink, by their numbers.
"""

import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pulsarbox.client.admin import Admin
from pulsarbox.client.client import Client
from pulsarbox.client.partition_producer import BATCH_MESSAGES
from pulsarbox.client.partition_producer import Options as Producing
from pulsarbox.client.routing import PartitionRouter
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic
from pulsarbox.plugins.compression.wire import CODECS
from pulsarbox.plugins.registry import PluginError
from pulsarbox.spark.connect.connections import admin_of, client_of
from pulsarbox.spark.options import OptionError, SparkOptions
from pulsarbox.spark.sink import staging
from pulsarbox.spark.sink.epoch_client import JOB, Sink, SinkEpochs, SinkError
from pulsarbox.spark.sink.row_encoder import RAW, Encoding, RowShape, Taker
from pulsarbox.spark.topic_segments import Reach
from pulsarbox.spark.worker_gc import settle

if TYPE_CHECKING:
    from pyarrow import RecordBatch

STREAM_STAGE_MS: Final = 600_000
_KNOWN_MOST: Final = 100


class Attempt:
    """One attempt of a task, as identified by Spark."""

    __slots__ = ("epoch", "partition", "sink")

    def __init__(self, sink: Sink, epoch: int, partition: int) -> None:
        self.sink = sink
        self.epoch = epoch
        self.partition = partition


@dataclass(frozen=True, slots=True)
class WriteAttempt:
    """Result of an attempt, sent to the driver."""

    sink: Sink
    epoch: int
    partition: int
    transactions: tuple[str, ...] = ()
    """Transactions with its staged rows; empty without rows and with other deliveries."""
    known: bool = False
    """Whether the epoch was already published."""
    rows: int = 0


_knowing: set[tuple[Reach, str]] = set()
"""Boxes and namespaces whose support for epochs was checked in this process. Spark plans successive micro-batches in
the same process, and each would wait for the check."""
_looked_at: set[tuple[Reach, str]] = set()
"""Topics whose retention was checked in this process."""


@dataclass(frozen=True, slots=True)
class Sinking:
    """A write, with everything that its tasks need. Picklable."""

    options: SparkOptions
    reach: Reach
    shape: RowShape
    fields: str
    """The frame's StructType as JSON."""
    is_stream: bool
    token: str = field(default_factory=lambda: str(uuid.uuid4()))
    """Unique to each batch write."""

    @property
    def namespace(self) -> str:
        """The namespace of the sink."""
        if self.options.sink_namespace:
            return self.options.sink_namespace
        return parse_topic(self.options.topic).namespace if self.options.topic else "public/default"

    def sink_of_query(self, query: str, run: str) -> Sink:
        """Return the sink of a streaming query; ``run`` identifies its run."""
        name = self.options.sink_id or query
        return Sink(f"{self.namespace}/{name}", query, run, self.options.sink_epoch == "reset")

    def sink_of_batch(self) -> Sink:
        """Return the sink of a batch write."""
        name = self.options.job_id or self.token
        return Sink(f"{self.namespace}/{JOB}{name}", name, self.token)

    @property
    def batch_epoch(self) -> int:
        """The epoch of a batch write."""
        return self.options.job_part

    # In a task -------------------------------------------------------------------------------------------------------

    def write(self, attempt: Attempt, batches: Iterable["RecordBatch"]) -> WriteAttempt:
        """Send or stage the rows of an attempt.

        Raises SinkError; then none of them will be published, unless delivery is immediate.
        """
        connected, seconds = partial(client_of, self.reach), self.reach.seconds
        encodings = _Encodings(self, connected)
        taker = Taker(self.shape, self.options.topic, encodings, lambda: time.time_ns() // 1_000_000)
        sender = self._sender(attempt, connected, seconds)
        try:
            for batch in batches:
                for topic, messages in taker.messages(batch):
                    sender.put(topic, messages)
            transactions = sender.finish()
        except BaseException:
            sender.abort()
            raise
        finally:
            encodings.close()
            sender.close()
            settle()
        return WriteAttempt(
            attempt.sink, attempt.epoch, attempt.partition, tuple(transactions), sender.known, taker.rows
        )

    def _sender(self, attempt: Attempt, connected: Callable[[], Client], seconds: float) -> staging.Sender:
        if self.options.delivery != "exactly-once":
            return staging.Plain(connected, self._producing, seconds, self.options.keep)
        epochs = SinkEpochs(partial(admin_of, self.reach), attempt.sink, seconds)
        return staging.Staging(
            connected, epochs, attempt.epoch, self._timeout_ms, self._producing, seconds, self.options.keep
        )

    @property
    def _timeout_ms(self) -> int:
        return self.options.stage_timeout_ms or (STREAM_STAGE_MS if self.is_stream else 0)

    def _producing(self, topic: str) -> Producing:
        options = self.options
        if options.delivery != "at-least-once" and topic.startswith("non-persistent://"):
            raise SinkError(
                f"{topic}: delivery={options.delivery} requires a persistent topic: use delivery=at-least-once"
            )
        return Producing(
            None,
            CODECS[options.compression],
            options.batching != "none",
            options.batching == "mixed",
            route_of(options, self.reach, topic),
            batch_messages=options.batch_messages or BATCH_MESSAGES,
        )

    # On the driver ---------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Detect errors before any task runs. Raises SinkError, OptionError."""
        try:
            route_of(self.options, self.reach, self.options.topic).open(self.options.topic)
        except PluginError as error:
            raise OptionError(f"option router: {error}") from None
        if self.options.delivery == "exactly-once":
            self._check_knows_epochs()

    @property
    def loss_warning(self) -> str:
        """Warning that the broker would not retain the rows of ``topic``; empty if it does or if unknown.

        Checked once per process.
        """
        options, asked = self.options, (self.reach, self.options.topic)
        if options.keep or not (options.topic and self.reach.admin_url) or asked in _looked_at:
            return ""
        from pulsarbox.client.keeping import ANSWER_SECONDS, is_kept, loss_warning

        if len(_looked_at) >= _KNOWN_MOST:
            _looked_at.clear()
        _looked_at.add(asked)
        with admin_of(self.reach, ANSWER_SECONDS) as admin:
            kept = is_kept(admin, parse_topic(options.topic))
        return loss_warning(options.topic, "option keep (--keep NAME of a command)") if kept is False else ""

    def _check_knows_epochs(self) -> None:
        asked = (self.reach, self.namespace)
        if asked in _knowing:
            return
        epochs = SinkEpochs(partial(admin_of, self.reach), self.sink_of_batch(), self.reach.seconds)
        try:
            epochs.check()
        finally:
            epochs.close()
        if len(_knowing) >= _KNOWN_MOST:
            _knowing.clear()
        _knowing.add(asked)

    def commit(self, parts: Sequence[WriteAttempt]) -> bool:
        """Publish the rows staged for an epoch; return false if already published. Raises SinkError."""
        if self.options.delivery != "exactly-once":
            return True
        staged = [each for part in parts for each in part.transactions]
        if any(part.known for part in parts):
            self.abort(parts)
            return False
        if not staged and not self.options.job_id:
            return True
        first = parts[0] if parts else WriteAttempt(self.sink_of_batch(), self.batch_epoch, 0)
        epochs = SinkEpochs(partial(admin_of, self.reach), first.sink, self.reach.seconds)
        try:
            published = epochs.commit(first.epoch, staged)
            if not self.is_stream and not self.options.job_id:
                _forget(epochs)
        finally:
            epochs.close()
        return published

    def abort(self, parts: Sequence[WriteAttempt]) -> None:
        """Abort the staged transactions. Raises nothing."""
        staged = [each for part in parts for each in part.transactions]
        if staged:
            staging.abort(partial(client_of, self.reach), staged)


def _forget(epochs: SinkEpochs) -> None:
    """Delete the sink of a write without a job ID."""
    try:
        epochs.forget()
    except SinkError:
        pass  # only leaves an unused row


def route_of(options: SparkOptions, reach: Reach, topic: str) -> PartitionRouter:
    """Return the routing of rows. Raises OptionError."""
    pairs = [each.partition("=") for each in options.router_options.split(",") if each.strip()]
    if not all(mark for _, mark, _ in pairs):
        raise OptionError(f"option router.options = {options.router_options!r}: expected name=value,name=value")
    directory = Path(options.plugins_dir) if options.plugins_dir else None
    given = {name.strip(): value.strip() for name, _, value in pairs}
    if not (topic and reach.admin_url):
        return PartitionRouter(options.router, given, options.router_hashing, directory)
    from pulsarbox.client.backlogs import PartitionBacklogs

    backlogs = PartitionBacklogs(partial(_admin_in_time, reach), topic, print_on_driver)
    return PartitionRouter(options.router, given, options.router_hashing, directory, backlogs)


def _admin_in_time(reach: Reach) -> Admin:
    from pulsarbox.client.backlogs import ANSWER_SECONDS

    return admin_of(reach, ANSWER_SECONDS)


def print_on_driver(text: str) -> None:
    """Print to the driver's stderr."""
    import sys

    sys.stderr.write(f"pulsarbox: {text}\n")


class _Encodings:
    """Cache of the encodings by topic and named schema."""

    def __init__(self, sinking: Sinking, connected: Callable[[], Client]) -> None:
        self._sinking = sinking
        self._connected = connected
        self._client: Client | None = None
        self._known: dict[tuple[str, str | None], Encoding] = {}

    def __call__(self, topic: str, named: str | None = None) -> Encoding:
        """Return the encoding of a topic's values; ``named`` is the schema that the rows name."""
        if named is None and self._sinking.shape.is_raw:
            return RAW
        found = self._known.get((topic, named))
        if found is None:
            from pulsarbox.spark.sink.value_encoding import encoding_of

            try:
                self._client = self._client or self._connected()
                found = self._known[topic, named] = encoding_of(self._client, topic, self._sinking, named)
            except PulsarBoxError as error:
                raise SinkError(f"the schema of {topic}: {error}") from error
        return found

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
