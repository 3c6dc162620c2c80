"""Topics as tables: their columns, the files that they were offloaded into, and their live segments.

The manifest is read before the box is asked, and live messages start behind the files. So each message is in one of
both, even while the topic is offloaded.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from pulsarbox.cli.common.exits import Failed, Misused, NotThere
from pulsarbox.cli.connect.admin_client import did_you_mean, short
from pulsarbox.cli.sql.topic_columns import TopicColumns, of_file, of_schema
from pulsarbox.errors import InvalidTopicName, PulsarBoxError, TopicNotFound
from pulsarbox.names import PERSISTENT, TopicName, parse_topic
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.spark.connect.broker_api import Range, Service, TopicBounds
from pulsarbox.spark.connect.schema_registry import NEWEST, Registry
from pulsarbox.spark.offload.history import OffloadedHistory
from pulsarbox.spark.offload.table_history import OffloadRoot, offloaded, topics_of
from pulsarbox.spark.source.offsets import FIRST, Mark
from pulsarbox.spark.topic_segments import DataLost, Lost, Reach, TopicSegment

_NO_HISTORY = OffloadedHistory({}, {}, {}, {})
HOME = "public/default"


class TopicTable(NamedTuple):
    """One topic of a query."""

    topic: TopicName
    columns: TopicColumns
    history: OffloadedHistory
    segments: list[TopicSegment]
    """Live messages."""
    schemas: Mapping[bytes, Schema | None]
    """Known schemas by version; the newest one under ``NEWEST``."""
    ends: dict[str, Mark]
    """Position after the live messages, by topic or partition."""


def lost_messages(error: DataLost) -> Failed:
    """Return the exit for messages that are gone or damaged."""
    return Failed(f"{error.lost}. Run the query again; if they stay lost, skip them with --skip-lost")


class TopicCatalog:
    """Tables of a box, of a directory with offloaded topics, or of both."""

    def __init__(
        self,
        reach: Reach | None,
        root: OffloadRoot | None,
        notify: Callable[[str], None],
        *,
        is_stopped: bool = False,
    ) -> None:
        """``reach``: None to read no live messages. ``root``: directory or table with the offloaded messages, if any.

        ``is_stopped``: no box runs on the data directory of ``reach``.
        """
        self.reach = reach
        self._is_stopped = is_stopped
        self._root = root
        self._notify = notify
        self._told: set[str] = set()

    def names(self) -> list[str]:
        """Return the topics of the default namespace, and of others that were offloaded. Raises the broker's errors."""
        found = {parse_topic(name).base for name in self._live_names(HOME)}
        if self._root is not None:
            found |= set(topics_of(self._root))
        return sorted(short(name) for name in found if not name.local.startswith("__"))

    def table(self, name: str, since: Mapping[str, Mark] | None = None) -> TopicTable:
        """Return the table of a topic by its short or full name. ``since``: only live messages from these positions.

        Raises NotThere, Misused, Failed, OffloadError, and the broker's errors.
        """
        try:
            return self._table(_parsed(name), since)
        except DataLost as error:
            raise lost_messages(error) from None

    def _table(self, topic: TopicName, since: Mapping[str, Mark] | None) -> TopicTable:
        history = _NO_HISTORY
        if self._root is not None and since is None:
            history = offloaded(self._root, [str(topic.base)], [str(topic)])
        if self.reach is None:
            return self._offloaded(topic, history)
        with self._open() as service:
            bounds = self._bounds(service, topic)
            if not bounds:
                return self._gone(service, topic, history)
            self._check(service, history, bounds)
            marks = history.marks if since is None else since
            ranges = [_range(each, marks.get(each, FIRST), known) for each, known in bounds.items()]
            segments = [each for some in service.many_segments(ranges) for each in some]
            schemas = self._schemas(service, topic)
        columns = of_schema(schemas[NEWEST])
        self._report(topic, columns)
        ends = {each: Mark(known.end, known.total) for each, known in bounds.items()}
        return TopicTable(topic, columns, history, segments, schemas, ends)

    def ends(self, name: str) -> dict[str, Mark]:
        """Return the position after the live messages, by topic or partition. Raises the broker's errors."""
        with self._open() as service:
            return {each: Mark(known.end, known.total) for each, known in self._bounds(service, _parsed(name)).items()}

    def _offloaded(self, topic: TopicName, history: OffloadedHistory) -> TopicTable:
        if not history.newest:
            known = [] if self._root is None else [short(each) for each in topics_of(self._root)]
            raise NotThere(
                f"topic {short(topic)} was not offloaded into {self._root}{did_you_mean(short(topic), known)}"
            )
        columns = of_file(history.schemas[history.newest]["fields"])
        self._report(topic, columns)
        return TopicTable(topic, columns, history, [], {NEWEST: None}, {})

    def _gone(self, service: Service, topic: TopicName, history: OffloadedHistory) -> TopicTable:
        if history.newest:
            self._once(f"{short(topic)} no longer exists in the box: only its offloaded messages are read")
            return self._offloaded(topic, history)
        raise NotThere(f"no topic '{short(topic)}'{did_you_mean(short(topic), self._others(service, topic))}")

    def _others(self, service: Service, topic: TopicName) -> list[str]:
        try:
            found = [parse_topic(each).base for each in service.topics(topic.namespace)]
        except PulsarBoxError:  # the hint is optional
            return []
        return sorted({short(each) for each in found})

    def _bounds(self, service: Service, topic: TopicName) -> dict[str, TopicBounds]:
        """Return the bounds of the topic, or of its partitions; empty if it does not exist."""
        try:
            return service.all_bounds(service.partitions(str(topic)))
        except TopicNotFound:
            return {}

    def _check(self, service: Service, history: OffloadedHistory, bounds: Mapping[str, TopicBounds]) -> None:
        """Raise Failed if the history is of another box, or of a deleted topic of the same name."""
        known = sorted(history.marks.keys() & bounds.keys())
        instance = service.instance(known[0]) if known else None
        for topic in known:
            if instance is not None and history.instances[topic] != instance:
                raise Failed(
                    f"{self._root} has the history of {topic} from another box (data directory "
                    f"{history.instances[topic] or 'unknown'}, this one is {instance or 'unknown'}): use --no-live to "
                    "query it, or query the box without --history"
                )
            mark, now = history.marks[topic], bounds[topic]
            if mark.place.ledger < now.earliest.ledger and 0 <= now.before < mark.seen:
                service.lost(Lost(topic, mark.place, now.earliest, "no longer exist: the topic was recreated"))

    def _open(self) -> Service:
        assert self.reach is not None
        if not self._is_stopped:
            return Service(self.reach)
        from pulsarbox.cli.sql.stopped_box import StoppedBox

        return StoppedBox(self.reach)

    def _schemas(self, service: Service, topic: TopicName) -> Mapping[bytes, Schema | None]:
        if self._is_stopped:
            from pulsarbox.cli.sql.stopped_box import StoppedBox

            assert isinstance(service, StoppedBox)
            return service.schemas(topic)
        registry = Registry(service.reach)
        try:
            return {NEWEST: registry.newest(str(topic))}
        finally:
            registry.close()

    def _live_names(self, namespace: str) -> Sequence[str]:
        if self.reach is None:
            return []
        with self._open() as service:
            return service.topics(namespace)

    def _report(self, topic: TopicName, columns: TopicColumns) -> None:
        for each in columns.omitted:
            self._once(f"{short(topic)}: {each}")

    def _once(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._notify(text)


def _range(topic: str, mark: Mark, bounds: TopicBounds) -> Range:
    return Range(topic, mark.place, bounds.end, mark.seen)


def _parsed(name: str) -> TopicName:
    try:
        topic = parse_topic(name)
    except InvalidTopicName as error:
        raise Misused(f'table "{name}": {error}. Expected a topic: orders, or "tenant/namespace/topic"') from None
    if topic.domain != PERSISTENT:
        raise Misused(f"{short(topic)}: non-persistent topics store no messages; only persistent topics can be queried")
    return topic
