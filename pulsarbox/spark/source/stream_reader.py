"""Stream reads: ``spark.readStream``, with offsets and the entries between two of them."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from pulsarbox.client.errors import passes
from pulsarbox.errors import NotFound, PulsarBoxError, TopicNotFound
from pulsarbox.spark.brief_errors import brief, brief_rows
from pulsarbox.spark.connect.broker_api import LATEST as END
from pulsarbox.spark.connect.broker_api import Range, Service, TopicBounds
from pulsarbox.spark.connect.connections import WaitNotice
from pulsarbox.spark.connect.target import reach
from pulsarbox.spark.options import LATEST, SparkOptions
from pulsarbox.spark.source import partition_plan, topic_selection
from pulsarbox.spark.source.admission_limits import Available, admitted
from pulsarbox.spark.source.batch_reader import reading
from pulsarbox.spark.source.offsets import FIRST, Mark, document, marks, starts
from pulsarbox.spark.topic_segments import BEGINNING, DataLost, Lost, TopicSegment

log = logging.getLogger(__name__)

IDLE_SECONDS: Final = 0.25
"""Time to wait for new messages in ``latestOffset``, which Spark calls again at once."""
ACKNOWLEDGE_SECONDS: Final = 1.0
"""Minimum interval between acknowledgements while micro-batches follow each other: each waits for the request."""
_POLL_SECONDS: Final = 0.02
_DISCOVER_SECONDS: Final = 1.0
_PAUSE_SECONDS: Final = 0.5
_T = TypeVar("_T")

Marks = dict[str, Mark]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reader of a stream, in a separate process for the life of a query; copies read in the workers."""

    def __init__(self, options: SparkOptions, schema: StructType) -> None:
        """Select the topics. Raises OptionError and the broker's errors."""
        self._options = options
        self._reach = reach(options)
        self._service: Service | None = None
        self._topics: list[str] = self._patiently(lambda service: topic_selection.topics(service, options))
        self._discovered = time.monotonic()
        self._reading = reading(options, schema, self._reach, self._topics)
        self._initial: Marks | None = None
        self._target: Marks | None = None
        """End of a run with AvailableNow."""
        self._acknowledged: Marks = {}
        self._acknowledged_at = float("-inf")
        self._found: Marks | None = None
        """Ends found by the latest ``latestOffset``."""
        self._bounds: dict[str, TopicBounds] = {}
        self._told: set[Mark] = set()
        self._turn = 0
        self._starts = self._options.batch_at_start
        """Whether the next micro-batch is required even without new messages."""
        self._moved = time.monotonic()
        """Time of the last progress."""
        self.stop()

    def stop(self) -> None:
        """Close the connections."""
        service, self._service = self._service, None
        if service is not None:
            service.close()

    def _patiently(self, ask: Callable[[Service], _T]) -> _T:
        """Run a request, retrying for pollTimeoutMs while the broker is unavailable."""
        deadline, waiting = time.monotonic() + self._reach.seconds, WaitNotice(self._reach.seconds)
        while True:
            if self._service is None:
                self._service = Service(self._reach)
            try:
                return ask(self._service)
            except PulsarBoxError as error:
                if not passes(error) or time.monotonic() > deadline:
                    raise
                waiting.report(error)
            self.stop()
            time.sleep(_PAUSE_SECONDS)

    # Offsets

    @brief
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the starting offset of a query without a checkpoint, the same on every call."""
        if self._initial is None:
            topic_selection.check_named(self._options, self._topics)
            self._initial = self._patiently(
                lambda service: {
                    topic: topic_selection.start(service, self._options, topic, LATEST) for topic in self._topics
                }
            )
        return document(self._initial)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the one limit that Spark knows; ``latestOffset`` enforces the others."""
        if self._options.max_entries is not None:
            return ReadMaxRows(self._options.max_entries)
        if self._options.max_bytes is not None:
            return ReadMaxBytes(self._options.max_bytes)
        return ReadAllAvailable()

    @brief
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Fix the current ends as the end of the run, in as many micro-batches as the limits require."""
        self._discover()
        self._target = self._ends()

    @brief
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the end of the next micro-batch, after a short wait if nothing is new. Everything before ``start`` is
        committed, so it is acknowledged when idle."""
        begin, count = marks(start), starts(start) + self._starts
        deadline = time.monotonic() + IDLE_SECONDS
        while True:
            found = self._next(begin, limit)
            if self._target is not None or found == begin:
                self._acknowledge(begin)
            if found != begin or self._starts or self._target is not None or time.monotonic() > deadline:
                self._starts = False
                return document(found, count)
            time.sleep(_POLL_SECONDS)

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the ends for Spark's progress. Spark calls it right after ``latestOffset``, whose result it reuses."""
        found, self._found = self._found, None
        return document(self._target or found or self._ends())

    def _next(self, begin: Marks, limit: ReadLimit) -> Marks:
        if self._target is None and time.monotonic() - self._discovered > _DISCOVER_SECONDS:
            self._discover()
        ends = self._found = self._target or self._ends()
        self._check_gone(begin, ends)
        found = {topic: self._latest(topic, begin.get(topic, FIRST), end) for topic, end in ends.items()}
        limited = (
            not isinstance(limit, ReadAllAvailable) or self._options.max_entries is None is self._options.max_bytes
        )
        options = self._options
        wants_more = options.min_entries is not None and self._target is None and limited
        if found == begin or not (wants_more or (limited and (options.max_entries or options.max_bytes))):
            return self._moving(begin, found)
        segments = self._segments(begin, found)
        available = {topic: Available(begin.get(topic, FIRST), segments[topic], end) for topic, end in found.items()}
        if wants_more and self._is_too_few(sum(each.messages for each in available.values() if each.segments)):
            return begin
        self._turn += 1
        return self._moving(begin, admitted(available, options.max_entries, options.max_bytes, self._turn))

    def _latest(self, topic: str, begin: Mark, end: Mark) -> Mark:
        """Return the end, unless it moved only because the ledger was rolled over."""
        if end.place <= begin.place:
            return begin
        is_same = end.seen == max(begin.seen, 0)
        return begin if is_same and not _is_another(begin, self._bounds[topic]) else end

    def _moving(self, begin: Marks, found: Marks) -> Marks:
        if found != begin:
            self._moved = time.monotonic()
        return found

    def _is_too_few(self, messages: int) -> bool:
        waited = (time.monotonic() - self._moved) * 1000
        return messages < (self._options.min_entries or 0) and waited < self._options.max_delay_ms

    def _discover(self) -> None:
        self._topics = self._patiently(lambda service: topic_selection.topics(service, self._options))
        self._discovered = time.monotonic()

    def _ends(self) -> Marks:
        found = self._patiently(lambda service: service.all_bounds(self._topics))
        self._bounds |= found
        return {topic: Mark(bounds.end, bounds.total) for topic, bounds in found.items()}

    def _check_gone(self, begin: Marks, ends: Marks) -> None:
        """Report topics that were deleted or recreated. Raises DataLost unless options prescribe otherwise."""
        for topic, mark in sorted(begin.items()):
            if topic not in ends:
                self._lost(Lost(topic, mark.place, END, self._why_gone(topic)))
            elif mark not in self._told and _is_another(mark, self._bounds[topic]):
                self._told.add(mark)
                earliest = self._bounds[topic].earliest
                self._lost(Lost(topic, mark.place, earliest, "no longer exist: the topic was recreated"))

    def _why_gone(self, topic: str) -> str:
        if topic_selection.is_meant(self._options, topic):
            return "no longer exist: the topic was deleted"
        return (
            "are no longer read: the checkpoint belongs to a query that read this topic, but the options do not select "
            "it. Select it again, or use a new checkpointLocation"
        )

    def _lost(self, lost: Lost) -> None:
        if self._reach.fail_on_data_loss:
            raise DataLost(lost)
        log.warning("%s: skipped", lost)

    # Reading

    @brief
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the partitions of a micro-batch, the same on every call. Raises DataLost."""
        begin, options = marks(start), self._options
        found = [each for some in self._segments(begin, marks(end)).values() for each in some]
        bounds = options.min_partitions, options.max_partition_bytes, options.parallelism
        parts = partition_plan.partitions(found, *bounds, in_place=self._reading.reach.is_in_place)
        return self._reading.parts(parts)

    def _segments(self, begin: Marks, upto: Marks) -> dict[str, list[TopicSegment]]:
        """Return the segments of each topic between two offsets."""
        starts = {topic: begin.get(topic, FIRST) for topic in upto}
        ranges = [Range(topic, starts[topic].place, end.place, starts[topic].seen) for topic, end in upto.items()]
        return dict(zip(upto, self._patiently(lambda service: service.many_segments(ranges)), strict=True))

    @brief_rows
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one partition. Runs in a worker."""
        return self._reading.batches(partition)

    # Acknowledging

    def commit(self, end: dict[str, Any]) -> None:
        """Acknowledge everything before ``end``, at most every ACKNOWLEDGE_SECONDS, since the next micro-batch waits
        for this. Spark does not call it for the last micro-batch of a run."""
        if self._target is not None or time.monotonic() - self._acknowledged_at > ACKNOWLEDGE_SECONDS:
            self._acknowledge(marks(end))

    def _acknowledge(self, upto: Mapping[str, Mark]) -> None:
        for topic, mark in upto.items() if self._options.subscription else ():
            if mark.place != BEGINNING and self._acknowledged.get(topic) != mark:
                self._acknowledge_one(topic, mark)
                self._acknowledged_at = time.monotonic()

    def _acknowledge_one(self, topic: str, mark: Mark) -> None:
        name = self._options.subscription
        try:
            self._patiently(lambda service: service.acknowledge(topic, name, mark.place))
        except (NotFound, TopicNotFound):
            return  # reading reports the missing topic
        self._acknowledged[topic] = mark

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_service": None}


def _is_another(mark: Mark, bounds: TopicBounds) -> bool:
    """Return whether the topic was recreated: the mark's ledger is gone, and fewer messages preceded the earliest one
    than the mark has seen."""
    return 0 <= bounds.before < mark.seen and mark.place.ledger < bounds.earliest.ledger
