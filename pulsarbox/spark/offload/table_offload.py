"""Offloading of ledgers into an Iceberg table, exactly once.

Each commit adds whole ledgers in one snapshot, whose properties contain the position after them for each topic and
partition. The next run reads these and continues there. Commits of a topic are numbered epochs of
``lakehouse.epoch_commit``, so of two offloads only one adds a ledger. The box retains the ledgers until they are
committed.
"""

import copy
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import OFFLOAD_SUBSCRIPTION
from pulsarbox.spark.connect.broker_api import Service
from pulsarbox.spark.connect.connections import admin_of
from pulsarbox.spark.connect.schema_registry import Registry
from pulsarbox.spark.connect.target import reach
from pulsarbox.spark.decode.entry_decoder import messages
from pulsarbox.spark.lakehouse.catalogs import opened, table_for
from pulsarbox.spark.lakehouse.data_files import WriterEpoch, for_tasks, write
from pulsarbox.spark.lakehouse.epoch_commit import LAST, commit
from pulsarbox.spark.lakehouse.sink_options import TableOptions
from pulsarbox.spark.lakehouse.table_place import TableError
from pulsarbox.spark.offload import columns
from pulsarbox.spark.offload.box_ledgers import accepted, beginning, due_of
from pulsarbox.spark.offload.ledgers import ReadableLedger
from pulsarbox.spark.offload.manifest import OffloadError
from pulsarbox.spark.offload.offloading import Offload, OffloadCount, OffloadRequest, released
from pulsarbox.spark.offload.progress import LedgerProgress
from pulsarbox.spark.offload.table_progress import PartitionProgress, Progress, encode, encode_positions, ranges
from pulsarbox.spark.offload.table_state import (
    COLUMNS,
    LOSSES,
    PROGRESS,
    RANGES,
    ROWS,
    WRITER,
    RowsMissing,
    TableState,
    accept,
    held_since,
    state_of,
    unchecked_state_of,
)
from pulsarbox.spark.offload.writing import OffloadStopped, batch_of, tables_for, wanted, with_more
from pulsarbox.spark.options import READ, parse
from pulsarbox.spark.topic_segments import Lost, ReadPosition

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table


class TableOffload(Offload):
    """Offloader of topics into a table."""

    def __init__(self, asked: OffloadRequest, table: TableOptions, *more: Any, **named: Any) -> None:
        """See Offload. ``table``: the table, created if missing; columns that it lacks are added."""
        self.options = table._replace(merge_schema=True, file_bytes=asked.file_bytes or table.file_bytes)
        self._empty: dict[str, TableState] = {}
        super().__init__(asked, *more, **named)

    def _identity(self) -> str:
        return ""  # the table's, once it exists

    def target_of(self, topic: str) -> str:
        """Return the name of the table, for messages."""
        return f"table {self.options.place}"

    def resumed(self, topic: str, found: TableState) -> TableState:
        """Return the state of a topic, by the table and by what was read since its last snapshot."""
        kept = self._empty.get(topic)
        return kept if kept is not None and kept.epoch == found.epoch else found

    def keep(self, topic: str, state: TableState) -> None:
        """Remember ledgers without rows, which add no snapshot."""
        self._empty[topic] = state

    def _topic(self, service: Service, topic: str, partitions: Sequence[str], count: OffloadCount) -> None:
        schema = columns.of_topic(topic, dict(self.asked.box))
        written = json.dumps(schema.jsonValue())
        registry = Registry(self.reach)
        registry.newest(topic)
        try:
            with opened(self.options) as catalog:
                tables = tables_for(written, registry)
                tables.close()
                table = table_for(catalog, self.options, with_more(tables.arrow, written))
                self.subscription = OFFLOAD_SUBSCRIPTION + table_id(table)
                _TopicOffload(self, service, catalog, topic, written, registry, count).run(partitions)
        except (PulsarBoxError, OSError, ValueError, OffloadStopped):
            raise
        except Exception as error:  # of the catalog or the storage, as pyiceberg raises them
            raise TableError(f"table {self.options.place}: {type(error).__name__}: {error}") from error
        finally:
            registry.close()


def table_id(table: "Table") -> str:
    """Return the ID of a table that distinguishes its subscriptions."""
    return table.metadata.table_uuid.hex[:8]


class _TopicOffload:
    """Offloader of one topic with all its partitions."""

    def __init__(
        self,
        whole: TableOffload,
        service: Service,
        catalog: "Catalog",
        topic: str,
        written: str,
        registry: Registry,
        count: OffloadCount,
    ) -> None:
        self._whole = whole
        self._asked = whole.asked
        self._service = service
        self._catalog = catalog
        self._topic = topic
        self._columns = written
        self._registry = registry
        self._count = count
        self._name = whole.options.place.name
        self._progress: Progress = {}
        """Position after the ledgers that were read."""
        self._lost: list[str] = []

    def run(self, partitions: Sequence[str]) -> None:
        """Commit what is due, in snapshots of whole ledgers. Raises OffloadError, and errors of reads and storage."""
        table = self._catalog.load_table(self._name)
        state = self._whole.resumed(self._topic, self._state(table))
        epoch, self._progress, self._lost = state.epoch, state.progress, list(state.lost)
        self._hold(table)
        for partition in partitions:
            self._begin(partition)
        left = self._due(partitions)
        while True:
            before = copy.deepcopy(self._progress)
            group = _LedgerGroup(self, left, self._whole.options.file_bytes)
            of = WriterEpoch(WRITER + self._topic, epoch + 1)
            files = write(for_tasks(table, self._whole.options.file_bytes), of, group.batches())
            self._whole.step("table written")
            if not files:
                self._whole.keep(self._topic, TableState(epoch, self._progress, tuple(self._lost)))
                return
            self._commit(of, files, before, group)
            epoch = of.epoch
            table = self._catalog.load_table(self._name)
            self._hold(table)

    def _state(self, table: "Table") -> TableState:
        """Return the state by the table, or by its properties if missing rows are accepted. Raises RowsMissing,
        OffloadError."""
        try:
            return state_of(table, self._topic)
        except RowsMissing as error:
            if not self._asked.accept_loss:
                raise
            state = unchecked_state_of(table, self._topic)._replace(lost=(error.lost,))
            accept(table, self._topic)
            self._whole.report(error.lost)
            return state

    def _hold(self, table: "Table") -> None:
        """Hold each partition at what is not in the table, or only since ``grace_ms``, and report what is in it."""
        places = held_since(table, self._topic, round(time.time() * 1000) - self._asked.grace_ms)
        for partition, each in self._progress.items():
            self._whole.hold_at(partition, places.get(partition, each.begin.place))
            self._whole.report_offloaded(partition, each.begin.place, each.next.place)

    def _begin(self, partition: str) -> None:
        if partition not in self._progress:
            self._whole.hold_all(partition)
            first, instance = beginning(self._service, partition)
            self._progress[partition] = PartitionProgress(instance, first, first)
        if self._asked.roll_ms is not None:
            self._service.close_ledger(partition, self._asked.roll_ms)

    def _due(self, partitions: Sequence[str]) -> "Iterator[tuple[str, ReadableLedger]]":
        """Yield the ledgers to offload. The group adds each to the progress before it requests the next one."""
        for partition in partitions:
            while True:
                known = self._progress[partition]
                found = due_of(self._service, partition, known, self._whole.target_of(self._topic), self._asked.before)
                if found.stretches:
                    size = sum(each.segment.bytes for each in found.stretches)
                    self._whole.progress.begin("offloading", partition, size)
                for stretch in found.stretches:
                    yield partition, stretch
                if found.gap is None:
                    break
                self._lost.append(accepted(partition, found.gap, accept=self._asked.accept_loss))
                self._whole.report(self._lost[-1])
                self._progress[partition].skip(found.gap)

    def read(self, partition: str, stretch: ReadableLedger) -> "Iterator[pa.RecordBatch]":
        """Yield the rows of a ledger, then add it to the progress."""
        unfinished: list[ReadPosition] = []
        yield from self._rows(stretch, unfinished)
        self._progress[partition].add(stretch.segment.ledger, stretch.entries, stretch.after, unfinished)
        self._whole.step("table ledger")

    def _rows(self, stretch: ReadableLedger, unfinished: list[ReadPosition]) -> "Iterator[pa.RecordBatch]":
        """Yield the rows of a ledger. Raises DataLost for missing or damaged entries unless accepted."""
        tables = tables_for(self._columns, self._registry)
        schema = with_more(tables.arrow, self._columns)
        tell = self._tell if self._asked.accept_loss else None
        progress = LedgerProgress(self._whole.progress, stretch.segment)
        try:
            for some in messages(stretch.segment, wanted(tables), self._whole.reach, lost=tell, unfinished=unfinished):
                if self._whole.stopped():
                    raise OffloadStopped
                batch = batch_of(some, tables, schema)
                progress.add(batch.num_rows)
                yield batch
            progress.end()
        finally:
            tables.close()

    def _tell(self, lost: Lost) -> None:
        self._lost.append(str(lost))

    def _commit(self, of: WriterEpoch, files: Sequence[Any], before: Progress, group: "_LedgerGroup") -> None:
        told = {
            PROGRESS: encode(self._progress),
            RANGES: ranges(before, self._progress),
            ROWS: encode_positions(group.last_rows),
            COLUMNS: self._columns,
        }
        if self._lost:
            told[LOSSES] = json.dumps(self._lost)
        rows = sum(each.record_count for each in files)
        if rows != group.rows:
            raise OffloadError(
                f"{self._whole.target_of(self._topic)}: new files have {rows} rows, expected {group.rows}"
            )
        if not commit(self._catalog, self._name, of, files, told):
            raise OffloadError(
                f"{self._whole.target_of(self._topic)} is being written by another offload: stop one of them"
            )
        self._whole.step("table committed")
        self._lost = []
        size = sum(each.file_size_in_bytes for each in files)
        self._count.ledgers += group.ledgers
        self._count.rows += rows
        self._count.bytes += size
        self._whole.progress.finished(
            f"{self._topic}: snapshot with {group.ledgers} ledgers, {rows:,} rows, {size / 1e6:,.1f} MB"
        )


class _LedgerGroup:
    """Consecutive ledgers of one commit: as many as fill a file."""

    def __init__(self, whole: _TopicOffload, due: "Iterator[tuple[str, ReadableLedger]]", limit: int) -> None:
        self._whole = whole
        self._due = due
        self._limit = limit
        self.ledgers = 0
        self.rows = 0
        self.last_rows: dict[str, ReadPosition] = {}
        """By partition."""

    def batches(self) -> "Iterator[pa.RecordBatch]":
        """Yield the rows of the ledgers."""
        size = 0
        for partition, stretch in self._due:
            for batch in self._whole.read(partition, stretch):
                size += batch.nbytes
                self.rows += batch.num_rows
                if batch.num_rows:
                    self.last_rows[partition] = _last_row(batch)
                yield batch
            self.ledgers += 1
            if size >= self._limit:
                return


def _last_row(batch: pa.RecordBatch) -> ReadPosition:
    """Return the position of the last row."""
    ledger, entry = (batch.column(name)[-1].as_py() for name in ("__ledgerId", "__entryId"))
    return ReadPosition(ledger, entry)


def release_table(table: TableOptions, box: Mapping[str, str], is_wanted: Callable[[str], bool]) -> list[str]:
    """Delete the subscriptions that hold topics for a table; return the topics that had one.

    Raises TableError, OptionError and the broker's errors.
    """
    from pyiceberg.exceptions import NoSuchTableError

    with opened(table) as catalog:
        try:
            found = catalog.load_table(table.place.name)
        except NoSuchTableError:
            raise TableError(f"table {table.place} does not exist") from None
        prefix = LAST + WRITER
        topics = [name.removeprefix(prefix) for name in found.properties if name.startswith(prefix)]
        states = {topic: unchecked_state_of(found, topic) for topic in topics if is_wanted(topic)}
    held = []
    for topic, state in states.items():
        with admin_of(reach(parse({**box, "topic": topic}, READ))) as admin:
            held += [each for each in state.progress if released(admin, each, OFFLOAD_SUBSCRIPTION + table_id(found))]
    return held
