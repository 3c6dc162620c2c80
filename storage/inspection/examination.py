"""The checks of one environment, run in a child process: every page is readable, and every record is valid."""

import json
import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pulsarbox.errors import EntryDamaged, PersistenceError
from pulsarbox.storage.entry_index import IndexSegment, unpack_row
from pulsarbox.storage.format import (
    ENTRY_HEADER,
    INDEX_KEY,
    META,
    META_HEADER,
    PACKED,
    EntryField,
    EntryFlag,
    RecordKind,
)
from pulsarbox.storage.inspection.box import Box, OpenEnvironment, number_of, read_tables
from pulsarbox.storage.inspection.child import Line
from pulsarbox.storage.inspection.compressed import unpacking
from pulsarbox.storage.inspection.findings import Finding, damage, warning
from pulsarbox.storage.inspection.holdings import Holdings
from pulsarbox.storage.inspection.scan import StoredEntries, batches, entry_ids, records
from pulsarbox.storage.inspection.transaction_check import RESTORE, Flagged
from pulsarbox.storage.inspection.transactions import KINDS as TRANSACTIONS
from pulsarbox.storage.lmdb.directory import RESTORE_BACKUP
from pulsarbox.storage.lmdb.meta_environment import unpack_row as unpack_meta_row
from pulsarbox.storage.record import NotNow, Unpacker, check_batch, unpack_entry, unpack_record
from pulsarbox.storage.transactions import TxnId

_FORWARDED = {"topic", "ledger", "cursor", "owner", "packagedata", "partitions", *TRANSACTIONS}


def examine_meta(path: Path, options: dict[str, Any]) -> Iterator[Line]:
    """Check the meta environment; yield its tables, and the rows needed for cross-checks."""
    box = Box(path)
    yield ["at", META, 0]
    holdings = Holdings()
    with box.open(META, growing=True) as env, env.snapshot():
        for stored_key, stored_value in env.rows(b"rows"):
            try:
                key, value = unpack_meta_row(stored_key, stored_value)
                holdings.apply(key, value)
                if key.partition(b"/")[0].decode() in _FORWARDED:
                    yield ["row", key.decode(), value.decode()]
            except (PersistenceError, ValueError, struct.error) as error:
                yield damage("meta, table rows", str(error), RESTORE).line()
        for table in env.tables() - {b"rows"}:
            for _ in env.rows(table):
                pass
        tables = read_tables(env)
    for cursor_id in sorted(holdings.acks):
        yield ["acks", cursor_id]
    for topic_id, producers in holdings.producers.items():
        yield ["producers", topic_id, len(producers)]
    yield ["mark", tables.mark, tables.sealed]
    for stretch in tables.stretches:
        yield ["stretch", *stretch]
    for number, content in tables.contents.items():
        yield ["content", number, *content]
    for ledger_id in tables.dropped:
        yield ["dropped", ledger_id]


def examine_volume(path: Path, options: dict[str, Any]) -> Iterator[Line]:
    """Check one volume; yield its contents, and the rows that its log writes after the mark."""
    box = Box(path)
    name: str = options["name"]
    yield ["at", name, 0]
    with unpacking(box, options) as unpacker, box.open(name, growing=not options["sealed"]) as env:
        first, last = env.extent()
        indexed = env.indexed
        examination = _Examination(name, env, options, unpacker)
        if last:
            yield from examination.log(first, last)
        yield ["at", f"{name}, index", 0]
        yield from examination.index(indexed, last)
        for ledger_id, stored in examination.held.ledgers.items():
            for run in stored:
                yield ["run", ledger_id, run.first, run.entries, run.bytes]
        for flagged in examination.flagged:
            yield ["flagged", *flagged[:3], *flagged.txn, flagged.covered]
        if options["sealed"] and indexed < last:
            what = f"is sealed, but its index ends at batch {indexed} and its log at {last}"
            yield damage(name, what, RESTORE).line()
        yield ["volume", first, last, indexed, env.size, examination.entries, examination.batches]


class _Examination:
    def __init__(self, name: str, env: OpenEnvironment, options: dict[str, Any], unpacker: Unpacker | None) -> None:
        self.unpacker = unpacker
        self.not_unpacked = False
        self.name = name
        self.env = env
        self.packed = number_of(name) >= PACKED
        self.mark: int = options["mark"]
        self.quick: bool = options["quick"]
        self.held = StoredEntries()
        self.entries = 0
        self.batches = 0
        self.segments: dict[int, list[IndexSegment]] = {}
        self.bad: dict[int, str] = {}
        self.lost: dict[int, list[tuple[int, int, int]]] = {}
        self.flagged: list[Flagged] = []

    def log(self, first: int, last: int) -> Iterator[Line]:
        """Check every batch of the log."""
        expected = first
        yield ["at", self.name, first]
        for chunk in batches(self.env, first, last):
            for position, value in chunk:
                if position != expected and not self.packed:
                    missing = f"batches {expected} to {position - 1} are missing"
                    yield damage(f"{self.name}, batch {expected}", missing, RESTORE).line()
                expected = position + 1
                self.batches += 1
                try:
                    check_batch(value)
                    found = list(self._batch(position, value))
                except (PersistenceError, struct.error, UnicodeDecodeError) as error:
                    self.bad[position] = str(error)
                    continue
                yield from found
            yield ["at", self.name, expected]

    def index(self, indexed: int, last: int) -> Iterator[Line]:
        """Check every row of the index, then its completeness; finally report the damaged batches."""
        covered: dict[int, list[tuple[int, int]]] = {}
        for key, row in self.env.rows(b"index"):
            try:
                ledger_id, first = INDEX_KEY.unpack(key)
                wrong = ""
                for segment in unpack_row(first, row, first):
                    wrong = wrong or self._leads_astray(ledger_id, segment, last)
                    ranges = covered.setdefault(ledger_id, [])
                    _extend(ranges, segment.first_entry, len(segment.offsets))
            except (PersistenceError, struct.error) as error:
                yield damage(f"{self.name}, index", f"a row is damaged: {error}", RESTORE).line()
                continue
            if wrong:
                where = f"{self.name}, index of ledger {ledger_id}"
                yield damage(where, wrong, RESTORE, ledger_id, first).line()
        for ledger_id, segments in self.segments.items():
            for segment in segments:
                if segment.position <= indexed and not _within(covered.get(ledger_id, []), segment):
                    what = (
                        f"entry {segment.first_entry} of batch {segment.position} is in the log, but not in the index"
                    )
                    where = f"{self.name}, index of ledger {ledger_id}"
                    yield damage(where, what, RESTORE, ledger_id, segment.first_entry).line()
                    break
        yield from self._bad_batches()

    def _batch(self, position: int, value: bytes) -> Iterator[Line]:
        runs: dict[int, IndexSegment] = {}
        for record in records(value):
            if record.kind == RecordKind.ENTRY:
                ledger_id, entry_id = entry_ids(value, record.offset)
                self.entries += 1
                self.held.add(ledger_id, entry_id, record.size)
                run = runs.get(ledger_id)
                if run is None or run.first_entry + len(run.offsets) != entry_id:
                    run = runs[ledger_id] = IndexSegment(position, entry_id, array("I"))
                    self.segments.setdefault(ledger_id, []).append(run)
                run.offsets.append(record.offset)
                if record.flags & EntryFlag.TRANSACTION:
                    self._in_transaction(position, ledger_id, entry_id, ENTRY_HEADER.unpack_from(value, record.offset))
                if not self.quick:
                    yield from self._entry(position, value, record.offset)
            elif record.kind == RecordKind.META:
                yield from self._row(position, value[record.offset : record.offset + record.size])
            elif record.kind == RecordKind.SEQUENCE:
                unpack_record(value, record.offset)

    def _in_transaction(self, position: int, ledger_id: int, entry_id: int, header: tuple[Any, ...]) -> None:
        if not header[EntryField.TXN_MOST] and not header[EntryField.TXN_LEAST]:
            return  # a copy from another data directory
        txn = TxnId(header[EntryField.TXN_MOST], header[EntryField.TXN_LEAST])
        flagged = Flagged(ledger_id, entry_id, entry_id, txn, position <= self.mark)
        last = self.flagged[-1] if self.flagged else flagged
        if flagged == last._replace(first=last.last + 1, last=last.last + 1):
            self.flagged[-1] = last._replace(last=entry_id)
        else:
            self.flagged.append(flagged)

    def _entry(self, position: int, value: bytes, offset: int) -> Iterator[Line]:
        try:
            unpack_entry(value, offset, unpacker=self.unpacker)
        except NotNow as error:
            if not self.not_unpacked:
                self.not_unpacked = True
                advice = "install it, or name its directory with --plugins-dir"
                yield warning(self.name, f"compressed entries are not verified: {error}", advice).line()
        except EntryDamaged as error:
            where = f"{self.name}, batch {position}, entry {error.ledger_id}:{error.first}"
            yield damage(
                where,
                f"{error.reason}: consumers do not receive this entry",
                f"save its bytes with `pulsarbox storage dump DIR --ledger {error.ledger_id}"
                f" --entry {error.first} --body`, or {RESTORE_BACKUP}",
                error.ledger_id,
                error.first,
            ).line()

    def _row(self, position: int, record: bytes) -> Iterator[Line]:
        _, flags, header_size, _, key_size, _ = META_HEADER.unpack_from(record)
        key, value = record[header_size : header_size + key_size], record[header_size + key_size :]
        try:
            text = None if flags & 1 else value.decode()
            if text is not None:
                json.loads(text)
            if position > self.mark:
                yield ["replay", position, key.decode(), text]
        except ValueError as error:
            where = f"{self.name}, batch {position}"
            yield damage(where, f"it holds the row {key!r}, which is damaged: {error}", RESTORE).line()

    def _leads_astray(self, ledger_id: int, segment: IndexSegment, last: int) -> str:
        """Return why a row of the index is wrong; empty if it is correct."""
        position, first, offsets = segment
        if position > last:  # written since the log was read
            return ""
        if position in self.bad:
            self.lost.setdefault(position, []).append((ledger_id, first, len(offsets)))
            return ""
        known = self.segments.get(ledger_id, [])
        at = bisect_right(known, first, key=lambda one: one.first_entry) - 1
        if at >= 0 and known[at].position == position:
            begin = first - known[at].first_entry
            if known[at].offsets[begin : begin + len(offsets)] == offsets:
                return ""
        return f"it points to batch {position} for entry {first}, which is not there"

    def _bad_batches(self) -> Iterator[Line]:
        for position, reason in self.bad.items():
            lost = self.lost.get(position, [])
            some = ", ".join(f"{ledger}:{first}-{first + count - 1}" for ledger, first, count in lost[:5])
            more = f" and those of {len(lost) - 5} more ledgers" if len(lost) > 5 else ""
            held = f"entries {some}{more} are lost" if lost else "its contents are unknown"
            where = f"{self.name}, batch {position}"
            finding: Finding = damage(where, f"{reason}; {held}", RESTORE)
            if lost:
                finding = finding._replace(ledger=lost[0][0], entry=lost[0][1])
            yield finding.line()
            yield ["bad", position]
            for ledger_id, first, count in lost:
                yield ["lost", ledger_id, first, count]


def _extend(ranges: list[tuple[int, int]], first: int, count: int) -> None:
    """Add entries to ranges of first and end; they arrive in order."""
    if ranges and ranges[-1][0] <= first <= ranges[-1][1]:
        ranges[-1] = (ranges[-1][0], max(ranges[-1][1], first + count))
    else:
        ranges.append((first, first + count))


def _within(ranges: list[tuple[int, int]], segment: IndexSegment) -> bool:
    at = bisect_right(ranges, segment.first_entry, key=lambda one: one[0]) - 1
    return at >= 0 and segment.first_entry + len(segment.offsets) <= ranges[at][1]
