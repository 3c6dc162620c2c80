"""Iceberg table that topics were offloaded into, as their history: rows of one snapshot, and the positions after it.

The snapshot is chosen once. A reader of the topic in the box continues at its positions, so each message is read once,
even while the topic is offloaded.
"""

import contextlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import TopicName, parse_topic
from pulsarbox.spark.lakehouse.catalogs import opened
from pulsarbox.spark.lakehouse.epoch_commit import LAST
from pulsarbox.spark.lakehouse.sink_options import TableOptions
from pulsarbox.spark.lakehouse.table_place import CATALOG_FILE, TableError, parse
from pulsarbox.spark.offload.history import OffloadedHistory, history_of
from pulsarbox.spark.offload.layout import topics_in
from pulsarbox.spark.offload.object_path import TABLE, ObjectPath, place_of
from pulsarbox.spark.offload.table_state import WRITER, TableState, state_of

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

_SNAPSHOT: Final = re.compile(r"(.*)@(\d{1,19})")
_ROWS: Final = "rows"
"""Name of the columns of a table, and of the columns of the topic that was offloaded last."""
_NEWEST: Final = "newest"


class OffloadedTable(NamedTuple):
    """Table with offloaded topics."""

    options: TableOptions
    snapshot: int | None = None
    """ID of the snapshot to read; None for the current one."""

    def __str__(self) -> str:
        return f"{TABLE}{self.options.place}" + ("" if self.snapshot is None else f"@{self.snapshot}")

    def topics(self) -> list[TopicName]:
        """Return the topics that were offloaded into the table, sorted; of partitioned topics, the base.

        Raises TableError.
        """
        with self._opened() as table:
            prefix = LAST + WRITER
            names = [name.removeprefix(prefix) for name in table.properties if name.startswith(prefix)]
        return [parse_topic(name) for name in sorted(names)]

    def history(self, topics: Sequence[str], named: Sequence[str] = ()) -> OffloadedHistory:
        """Return the offloaded history of some topics, limited to the ``named`` partitions and the partitions of named
        topics, if any are named. Raises TableError, OffloadError."""
        with self._opened() as table:
            snapshot = self._chosen(table)
            if snapshot is None:
                return OffloadedHistory({}, {}, {}, {})
            states = {topic: state_of(table, topic, snapshot) for topic in topics}
            return _history(table, snapshot, states, named)

    def _chosen(self, table: "Table") -> "Snapshot | None":
        if self.snapshot is None:
            return table.current_snapshot()
        found = table.snapshot_by_id(self.snapshot)
        if found is None:
            raise TableError(f"{self}: the table has no such snapshot, or it has expired")
        return found

    @contextlib.contextmanager
    def _opened(self) -> "Iterator[Table]":
        from pyiceberg.exceptions import NoSuchTableError

        place = self.options.place
        if place.warehouse and not (Path(place.warehouse) / CATALOG_FILE).is_file():
            raise TableError(f"{self}: {place.warehouse} has no {CATALOG_FILE}: expected iceberg:DIR/NAMESPACE.TABLE")
        with opened(self.options) as catalog:
            try:
                yield catalog.load_table(place.name)
            except (PulsarBoxError, OSError):
                raise
            except NoSuchTableError:
                raise TableError(f"{self}: the table does not exist") from None
            except Exception as error:  # of the catalog or the storage, as pyiceberg raises them
                raise TableError(f"{self} cannot be read: {type(error).__name__}: {error}") from error


def _history(
    table: "Table", snapshot: "Snapshot", states: Mapping[str, TableState], named: Sequence[str]
) -> OffloadedHistory:
    from pulsarbox.spark.lakehouse.table_scan import scan_of

    found = OffloadedHistory({}, {}, {}, {})
    newest = TableState(-1, {})
    for topic, state in states.items():
        for partition, each in state.progress.items():
            if not named or partition in named or topic in named:
                found.marks[partition], found.instances[partition] = each.next, each.instance
                newest = max(newest, state, key=lambda known: known.epoch)
    if not found.marks:
        return found
    scan = scan_of(table, snapshot.snapshot_id, sorted(found.marks))
    found.schemas[_ROWS] = {"type": "struct", "fields": scan.fields}
    found.schemas[_NEWEST] = json.loads(newest.columns) if newest.columns else found.schemas[_ROWS]
    if scan.tasks:
        found.files[_ROWS] = [scan]
    return found._replace(newest=_NEWEST)


OffloadRoot = Path | ObjectPath | OffloadedTable
"""Target of an offload: a directory, a folder of objects, or a table."""


def root_of(text: Any, catalog: str = "") -> OffloadRoot:
    """Return the target of an offload by its name: a directory, ``s3://BUCKET/PREFIX``, or
    ``iceberg:[DIR/]NAMESPACE.TABLE[@SNAPSHOT]``. ``catalog``: that of a table without a directory.

    Raises StorageError, TableError.
    """
    if isinstance(text, OffloadedTable):
        return text
    if not str(text).startswith(TABLE):
        if catalog:
            raise TableError(f"catalog {catalog}: {text} is not a table; expected iceberg:NAMESPACE.TABLE")
        return place_of(text)
    name, snapshot = str(text).removeprefix(TABLE), None
    if dated := _SNAPSHOT.fullmatch(name):
        name, snapshot = dated[1], int(dated[2])
    place = parse(name)
    if catalog and place.warehouse:
        raise TableError(f"catalog {catalog}: table {place} is in the catalog of its directory")
    return OffloadedTable(TableOptions(place, catalog), snapshot)


def topics_of(root: OffloadRoot) -> list[TopicName]:
    """Return the topics that were offloaded. Raises TableError."""
    return root.topics() if isinstance(root, OffloadedTable) else list(topics_in(root))


def offloaded(root: OffloadRoot, topics: Sequence[str], named: Sequence[str] = ()) -> OffloadedHistory:
    """Return the offloaded history of some topics, limited to the ``named`` partitions and the partitions of named
    topics, if any are named. Raises OffloadError, TableError."""
    if isinstance(root, OffloadedTable):
        return root.history(topics, named)
    return history_of(root, topics, named)
