"""Topics of a stopped box, from its data directory: what a running box answers about positions, segments and schemas.

The rows of the checkpoint and the log after it are replayed in memory, as at a start. Nothing is written.
"""

import contextlib
from base64 import b64decode
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any, Final, TypeVar, cast

from pulsarbox.broker.topic.visible_segments import Segments, VisibleSegment, begin_of, end_of
from pulsarbox.cli.connect.admin_client import short
from pulsarbox.errors import PersistenceError, TopicNotFound
from pulsarbox.names import TopicName, parse_topic
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.spark.access.mapped_reader import close_all
from pulsarbox.spark.connect.broker_api import Service, TopicBounds
from pulsarbox.spark.connect.schema_registry import NEWEST
from pulsarbox.spark.topic_segments import Reach, ReadPosition
from pulsarbox.storage.catalog import partitions_key, topic_key
from pulsarbox.storage.engine import Recovery
from pulsarbox.storage.format import META, PACKED
from pulsarbox.storage.inspection.box import Box, number_of
from pulsarbox.storage.inspection.scan import batches
from pulsarbox.storage.lmdb.meta_environment import MetaEnvironment, MetaRows
from pulsarbox.storage.record import Position
from pulsarbox.storage.recovery import Store, StoredTopic

_PAGE: Final = 500
_VERSION_BYTES: Final = 8
_NOWHERE: Final = "pulsar://localhost:1"
"""Service URL of a box that is not there."""
_T = TypeVar("_T")


def reach_of(path: Path, *, skip: bool) -> Reach:
    """Return how to read the messages of a stopped box: in place. ``skip``: leave out lost ones."""
    return Reach(_NOWHERE, data_dir=str(path), access="mmap", fail_on_data_loss=not skip)


class _OneEnvironment:
    """The environment of rows, opened read-only."""

    def __init__(self, meta: MetaEnvironment) -> None:
        self._meta = meta

    @contextlib.contextmanager
    def using(self, number: int) -> Iterator[MetaEnvironment]:
        """See Pool."""
        yield self._meta


class StoppedBox(Service):
    """Answers of a stopped box. A context manager; messages can be read once it is closed."""

    def __init__(self, reach: Reach) -> None:
        """Read the directory of ``reach``. Raises PersistenceError if a box runs on it, or it cannot be read."""
        super().__init__(reach)
        close_all()  # LMDB permits opening an environment once per process
        path = Path(reach.data_dir)
        box = Box(path)
        if box.live:
            raise PersistenceError(f"a box runs on {path}: query it without --data-dir, or try again")
        self._instance = box.identity.instance
        self._meta = MetaEnvironment(path / META, readonly=True)
        try:
            self._store = _replayed(box, self._meta)
        except BaseException:
            self._meta.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._meta.close()

    def topics(self, namespace: str) -> list[str]:
        """See Service."""
        prefix, after, found = f"persistent://{namespace}/", "", []
        key: str | None = after
        while key is not None:
            keys, key = self._store.catalog.page(topic_key(prefix), key, _PAGE)
            found += [each.partition("/")[2] for each in keys]
        return sorted(found)

    def partitions(self, topic: str) -> list[str]:
        """See Service."""
        name = parse_topic(topic)
        row = self._store.catalog.get(partitions_key(str(name))) if name.partition_index < 0 else None
        return [str(name.partition(at)) for at in range(row["partitions"])] if row else [str(name)]

    def bounds(self, topic: str) -> TopicBounds:
        """See Service."""
        stored = self._stored(topic)
        (begin, before), (end, total) = begin_of(stored), end_of(stored)
        return TopicBounds(ReadPosition(*begin[:2]), ReadPosition(*end[:2]), before, total)

    def instance(self, topic: str) -> str:
        """See Service."""
        return self._instance

    def schemas(self, topic: TopicName) -> dict[bytes, Schema | None]:
        """Return all schemas of a topic by version, and the newest one."""
        found: dict[bytes, Schema | None] = {NEWEST: None}
        prefix = f"schema/{topic.base}/"
        key: str | None = ""
        while key is not None:
            keys, key = self._store.catalog.page(prefix, key, _PAGE)
            for each in keys:
                row = self._store.catalog.get(each)
                number = int(each.rpartition("/")[2], 16)
                found[NEWEST] = found[number.to_bytes(_VERSION_BYTES, "big")] = _schema(row)
        return found

    def _stored(self, topic: str) -> StoredTopic:
        stored = self._store.topic(topic)
        if stored is None:
            raise TopicNotFound(f"no topic '{short(topic)}'")
        return stored

    def _of_box(self, topic: str, ask: Any) -> Any:
        return ask(parse_topic(topic))

    def _all_segments(
        self, name: TopicName, start: ReadPosition, end: ReadPosition
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        stored = self._stored(str(name))
        rows: list[dict[str, Any]] = []
        at: Position | None = Position(*start[:2])
        while at is not None:
            found = Segments(stored, self._store.catalog, _NOT_ENDED, at, Position(*end[:2]))
            for _ in found.steps():
                pass
            rows += [_row(each) for each in found.found]
            at = found.next
        bounds = self.bounds(str(name))
        places = {"earliest": _text(bounds.earliest), "end": _text(bounds.end)}
        return {"instance": self._instance, "before": bounds.before, "total": bounds.total, **places}, rows


_NOT_ENDED: Final = cast("Any", SimpleNamespace(ended=False))
"""Whether the topic is terminated affects only when its last ledger was closed, which no query needs."""


def _replayed(box: Box, meta: MetaEnvironment) -> Store:
    mark = meta.marks()[0]
    log: list[bytes] = []
    for name in box.volumes():
        if number_of(name) < PACKED:
            log += _behind(box, name, mark)
    rows = MetaRows(_OneEnvironment(meta), lambda error: PersistenceError(str(error)))
    return Store(Recovery(rows, iter(log), mark + len(log) + 1))


def _behind(box: Box, name: str, mark: int) -> list[bytes]:
    """Return the batches of a volume after the checkpoint; the box bounds how many there are."""
    with box.open(name, growing=False) as env:
        _, last = env.extent()
        return [value for chunk in batches(env, mark + 1, last) for _, value in chunk] if last > mark else []


def _row(each: VisibleSegment) -> dict[str, Any]:
    return {
        "ledger": each.ledger_id,
        "first": each.first,
        "last": each.end - 1,
        "messages": each.messages,
        "bytes": each.bytes,
        "hidden": each.hidden,
        "before": each.whole.before,
        "after": each.whole.after,
        "volumes": [],
    }


def _text(place: ReadPosition) -> str:
    return f"{place.ledger}:{place.entry}"


def _schema(row: Mapping[str, Any] | None) -> Schema | None:
    if row is None or "deleted" in row:
        return None
    schema = Schema(name=row["name"], schema_data=b64decode(row["data"]), type=row["type"])
    for key, value in row["properties"].items():
        schema.properties.add(key=key, value=value)
    return schema
