"""The records of a data directory as JSON lines, for inspection and for salvaging damaged data."""

import base64
import json
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from pulsarbox.errors import EntryDamaged, PersistenceError
from pulsarbox.protocol.ack_sets import indexes_of
from pulsarbox.protocol.commands import MAGIC
from pulsarbox.storage.delayed_index import chunk_entries, unpack_chunk
from pulsarbox.storage.format import (
    ACKED_HEADER,
    ACKED_RANGE,
    BATCH_ACKED_HEADER,
    COMPACTED_PREFIX,
    DELETED,
    ENTRY_HEADER,
    FORGOTTEN,
    IN_VIEW,
    MARK_DELETE_HEADER,
    META,
    META_HEADER,
    PACKED,
    REDELIVERED_HEADER,
    REDELIVERY,
    RESET,
    SEQUENCE_HEADER,
    EntryField,
    EntryFlag,
    RecordKind,
)
from pulsarbox.storage.inspection.box import Box, OpenEnvironment, Vanished, number_of, read_tables
from pulsarbox.storage.inspection.child import ChildEnded, Line, run
from pulsarbox.storage.inspection.compressed import unpacking
from pulsarbox.storage.inspection.holdings import Holdings
from pulsarbox.storage.inspection.scan import RecordAt, batches, records
from pulsarbox.storage.inspection.tail import Tail
from pulsarbox.storage.lmdb.meta_environment import unpack_row as unpack_meta_row
from pulsarbox.storage.record import NotNow, Unpacker, check_batch, compressed_as, unpack_entry
from pulsarbox.storage.transactions import TxnId

KINDS: Final = {
    "entry": RecordKind.ENTRY,
    "mark_delete": RecordKind.MARK_DELETE,
    "acked": RecordKind.ACKED,
    "batch_acked": RecordKind.BATCH_ACKED,
    "meta": RecordKind.META,
    "redelivered": RecordKind.REDELIVERED,
    "sequence": RecordKind.SEQUENCE,
}
ROWS: Final = "rows"
_NAMES: Final = {number: name for name, number in KINDS.items()}
_FLAGS: Final = {bit: name.lower() for name, bit in vars(EntryFlag).items() if isinstance(bit, int)}
_ENDINGS_MAX: Final = 100
_CHECKED: Final = EntryFlag.CHECKSUM | EntryFlag.OWN_CHECKSUM

Document = dict[str, Any]


def records_of(path: Path, filters: Document, complain: Callable[[str], None]) -> Iterator[Document]:
    """Yield the records that match the filters; ``complain`` is called for unreadable ones. Raises PersistenceError.

    If a child crashes in the log of a volume, the next one resumes there batch by batch and skips the crashing batches,
    up to a limit; if it crashes elsewhere, the next one leaves that part out.
    """
    box = Box(path)
    volume = filters.get("volume")
    if volume is not None and volume not in box.volumes():
        known = ", ".join(box.volumes()) or "none"
        raise PersistenceError(f"{path} has no volume {volume}; its volumes are {known}")
    left: int = -1 if filters.get("limit") is None else filters["limit"]
    course = _Course(set(box.volumes()))
    while left and not course.over:
        try:
            for line in run("dump", path, {**filters, **course.options()}):
                if line[0] == "record":
                    yield line[1]
                    left -= 1
                    if not left:
                        return
                elif line[0] == "done":
                    course.done.append(line[1])
                elif line[0] == "complaint":
                    complain(line[1])
        except ChildEnded as error:
            complain(course.after(error))
        else:
            return


class _Course:
    """Progress of a dump across children; the next child skips the parts on which one has crashed."""

    def __init__(self, volumes: set[str]) -> None:
        self.volumes = volumes
        self.done: list[str] = []
        self.skip: list[str] = []
        self.starts: dict[str, int] = {}
        self.endings: dict[str, int] = {}
        self.over = False

    def options(self) -> Document:
        """Return the options for the next child."""
        return {"skip": self.skip, "done": self.done, "starts": self.starts}

    def after(self, error: ChildEnded) -> str:
        """Work around the cause of a child's crash; return a message for the user."""
        where, number = error.where, error.number
        self.endings[where] = self.endings.get(where, 0) + 1
        if number and where in self.volumes and self.endings[where] <= _ENDINGS_MAX:
            # The first crash was somewhere from this batch on, the second in this batch.
            exact = where in self.starts
            self.starts[where] = number + 1 if exact else number
            what = f"batch {number}" if exact else f"a batch from {number} on"
            return f"{where}, {what} cannot be read: {error.reason}"
        self.over = not where or where in self.skip
        self.skip.append(where)
        return (
            f"{where or 'the directory'} cannot be read{f' from batch {number} on' if number else ''}: {error.reason}"
        )


def dump(path: Path, options: Document) -> Iterator[Line]:
    """Dump in a child process; ``skip`` crashed an earlier child, ``done`` is finished."""
    yield from _Dump(Box(path), options).lines()


class _Dump:
    def __init__(self, box: Box, options: Document) -> None:
        self.box = box
        self.skip: set[str] = set(options["skip"])
        self.done: set[str] = set(options["done"])
        self.starts: dict[str, int] = options["starts"]
        self.kind: str | None = options.get("kind")
        self.topic: str | None = options.get("topic")
        self.ledger: int | None = options.get("ledger")
        self.entries: list[int] | None = options.get("entries")
        self.volume: str | None = options.get("volume")
        self.body: bool = options.get("body", False)
        self.holdings = Holdings()
        self.options = options
        self.unpacker: Unpacker | None = None
        self.names: dict[bytes, str] = {}
        self.mark = 0
        self.sealed: set[int] = set()

    def lines(self) -> Iterator[Line]:
        """Yield everything requested: rows of the checkpoint, or records of the volumes."""
        rows = self.kind == ROWS
        yield ["at", META, 0]
        if META not in self.skip:
            try:
                yield from self._meta(rows and META not in self.done)
            except PersistenceError as error:
                yield ["complaint", f"{META}: {error}"]
        if rows:
            yield ["done", META]
            return
        names = [name for name in self.box.volumes() if self.volume in (None, name)]
        yield from self._tail()
        if self.topic is not None and self.topic not in self.holdings.topics.values():
            if self.topic not in self.holdings.owners.values():
                yield [
                    "complaint",
                    f"topic {self.topic} not found: `pulsarbox storage dump --kind rows` lists the topics",
                ]
                return
        with ExitStack() as stack:
            if META not in self.skip:
                self.unpacker = stack.enter_context(unpacking(self.box, self.options))
            yield from self._volumes(names)

    def _volumes(self, names: list[str]) -> Iterator[Line]:
        for name in names:
            if name in self.skip or name in self.done:
                continue
            yield ["at", name, 0]
            try:
                with self.box.open(name, growing=number_of(name) not in self.sealed) as env:
                    yield from self._volume(env, name)
            except Vanished:
                yield ["complaint", f"{name} was packed or removed during the dump: dump again to see its contents"]
            except PersistenceError as error:
                yield ["complaint", str(error)]
            yield ["done", name]

    def _meta(self, show: bool) -> Iterator[Line]:
        with self.box.open(META, growing=True) as env, env.snapshot():
            tables = read_tables(env)
            self.mark, self.sealed = tables.mark, set(tables.contents)
            self.names = {tag: name for (tag, _), name in tables.needs.items()}
            for stored_key, stored_value in env.rows(b"rows"):
                key, value = unpack_meta_row(stored_key, stored_value)
                try:
                    self.holdings.apply(key, value)
                except PersistenceError as error:
                    yield ["complaint", str(error)]
                if show:
                    yield ["record", {"kind": "row", **_row(key, value)}]

    def _tail(self) -> Iterator[Line]:
        """Read the rows written since the checkpoint, for the names of newer topics."""
        for name in self.box.volumes():
            number = number_of(name)
            if number in self.sealed or number >= PACKED or f"{name}, rows" in self.skip:
                continue
            yield ["at", f"{name}, rows", 0]
            try:
                with self.box.open(name, growing=True) as env:
                    tail = Tail(self.mark, everything=False)
                    yield from tail.read(env, f"{name}, rows")
                    tail.apply_to(self.holdings)
            except PersistenceError:
                continue  # reported when its records are read

    def _volume(self, env: OpenEnvironment, name: str) -> Iterator[Line]:
        first, last = env.extent()
        start = self.starts.get(name, 0)
        if not start:
            start = first
            try:
                for chunk in batches(env, first, last):
                    for position, value in chunk:
                        yield from self._batch(name, position, value)
                    start = chunk[-1][0] + 1
                    yield ["at", name, start]
                return
            except PersistenceError:
                pass
        failed = False
        for position in range(start, last + 1):
            yield ["at", name, position]
            try:
                one = env.batch(position)
            except PersistenceError as error:
                if not failed:
                    yield ["complaint", f"{name}, batch {position} and possibly later ones cannot be read: {error}"]
                failed = True
                continue
            failed = False
            if one is not None:
                yield from self._batch(name, position, one)

    def _batch(self, name: str, position: int, value: bytes) -> Iterator[Line]:
        try:
            check_batch(value)
        except PersistenceError as error:
            yield ["complaint", f"{name}, batch {position}: {error}; shown as far as it is readable"]
        try:
            for record in records(value):
                document = self._document(value, record)
                if document is not None:
                    yield ["record", {"volume": name, "position": position, **document}]
        except (PersistenceError, struct.error, ValueError) as error:
            yield ["complaint", f"{name}, batch {position}: {error}"]

    def _document(self, value: bytes, record: RecordAt) -> Document | None:
        name = _NAMES.get(record.kind, f"kind {record.kind}")
        if self.kind is not None and name != self.kind:
            return None
        if record.kind == RecordKind.ENTRY:
            return self._entry(value, record)
        if self.entries is not None:
            return None
        document = {"kind": name, **_other(value, record)}
        if self.ledger is not None and not _speaks_of(document, self.ledger):
            return None
        cursor = self.holdings.cursors.get(document.get("cursor", -1))
        topic = "" if cursor is None else self.holdings.name_of(cursor[0])
        if cursor is not None:
            document |= {"topic": topic, "subscription": cursor[1]}
        if record.kind == RecordKind.SEQUENCE:
            topic = self.holdings.name_of(document["topic_id"])
            document |= {"topic": topic or None}
        if self.topic is not None and topic != self.topic:
            return None
        return document

    def _entry(self, value: bytes, record: RecordAt) -> Document | None:
        header = ENTRY_HEADER.unpack_from(value, record.offset)
        flags, ledger_id, entry_id = (
            header[EntryField.FLAGS], header[EntryField.LEDGER_ID], header[EntryField.ENTRY_ID]
        )  # fmt: skip
        if self.ledger is not None and ledger_id != self.ledger:
            return None
        if self.entries is not None and not self.entries[0] <= entry_id <= self.entries[1]:
            return None
        topic = self.holdings.topic_of(ledger_id)
        if self.topic is not None and topic != self.topic:
            return None
        start = record.offset + record.header_size
        body = value[start : start + record.body_size]
        compressed = compressed_as(value, record.offset)
        reason = ""
        try:
            body = unpack_entry(value, record.offset, unpacker=self.unpacker).body
            whole = True
        except EntryDamaged:
            whole = False
        except NotNow as error:
            whole, reason = True, str(error)
        document: Document = {
            "kind": "entry",
            "ledger": ledger_id,
            "entry": entry_id,
            "topic": topic or None,
            "flags": [flag for bit, flag in _FLAGS.items() if flags & bit],
            "messages": header[EntryField.NUM_MESSAGES],
            "publish_time": header[EntryField.PUBLISH_TIME],
            "append_time": header[EntryField.APPEND_TIME],
            "deliver_at": header[EntryField.DELIVER_AT] or None,
            "key_hash": header[EntryField.KEY_HASH] if flags & EntryFlag.KEY else None,
            "size": record.body_size if compressed is None else compressed.size,
            "checksum": ("ok" if whole else "wrong") if flags & _CHECKED and not reason else "none",
        }
        if not whole:
            document["damaged"] = True
        if flags & EntryFlag.TRANSACTION:
            txn = TxnId(header[EntryField.TXN_MOST], header[EntryField.TXN_LEAST])
            document["transaction"] = f"{txn.most}:{txn.least}"
            document["state"] = self.holdings.transactions.state_of(txn, ledger_id, entry_id)
        if compressed is not None:
            document["compressed"] = {
                "codec": self.names.get(compressed.tag, compressed.tag.decode("latin-1")),
                "size": record.body_size,
                "dictionary": compressed.dictionary or None,
            } | ({"not_unpacked": reason} if reason else {})
        if ledger_id in self.holdings.compacted and not reason:
            document["published_as"] = COMPACTED_PREFIX.unpack_from(body)[:2]
        if self.body:
            document |= _body(body, flags)
        return document


def _other(value: bytes, record: RecordAt) -> Document:
    """Return the fields of a record other than an entry."""
    offset, kind = record.offset, record.kind
    body = value[offset + record.header_size : offset + record.size]
    if kind == RecordKind.MARK_DELETE:
        cursor, ledger, entry, messages, size = MARK_DELETE_HEADER.unpack_from(value, offset)[4:]
        reset = bool(record.flags & RESET)
        return {
            "cursor": cursor,
            "ledger": ledger,
            "entry": entry,
            "messages_before": messages,
            "bytes_before": size,
            "reset": reset,
        }
    if kind == RecordKind.ACKED:
        ranges = [{"ledger": one[0], "first": one[1], "last": one[2]} for one in ACKED_RANGE.iter_unpack(body)]
        acked = {"cursor": ACKED_HEADER.unpack_from(value, offset)[4], "ranges": ranges}
        return acked | ({"in_view": True} if record.flags & IN_VIEW else {})
    if kind == RecordKind.BATCH_ACKED:
        cursor, ledger, entry, messages, _ = BATCH_ACKED_HEADER.unpack_from(value, offset)[4:]
        bits = int.from_bytes(body, "big")
        left = [index for index in indexes_of(bits) if index < messages]
        return {"cursor": cursor, "ledger": ledger, "entry": entry, "messages": messages, "unacknowledged": left}
    if kind == RecordKind.META:
        key_size = META_HEADER.unpack_from(value, offset)[4]
        return _row(body[:key_size], None if record.flags & DELETED else body[key_size:])
    if kind == RecordKind.REDELIVERED:
        again = [{"ledger": one[0], "entry": one[1], "count": one[2]} for one in REDELIVERY.iter_unpack(body)]
        return {"cursor": REDELIVERED_HEADER.unpack_from(value, offset)[4], "entries": again}
    if kind == RecordKind.SEQUENCE:
        topic_id, highest, published = SEQUENCE_HEADER.unpack_from(value, offset)[4:]
        known = {"highest": highest, "published": published} if not record.flags & FORGOTTEN else {"forgotten": True}
        return {"topic_id": topic_id, "producer": body.decode(errors="backslashreplace"), **known}
    return {"size": record.body_size}


def _speaks_of(document: Document, ledger_id: int) -> bool:
    parts = [document, *document.get("ranges", []), *document.get("entries", [])]
    return any(part.get("ledger") == ledger_id for part in parts)


def _row(key: bytes, value: bytes | None) -> Document:
    document: Document = {"key": key.decode(errors="backslashreplace")}
    if value is None:
        return document | {"deleted": True}
    if key.startswith(b"delayed/"):
        return document | _delayed(value)
    try:
        return document | {"value": json.loads(value)}
    except ValueError:  # acknowledgements are records, not JSON
        return document | {"size": len(value), "base64": base64.b64encode(value).decode()}


def _delayed(row: bytes) -> Document:
    try:
        chunk = unpack_chunk(row, chunk_entries(row))
    except ValueError:
        return {"size": len(row), "base64": base64.b64encode(row).decode()}
    return {"due": [list(each) for each in chunk.rows()]}


def _body(body: bytes, flags: int) -> Document:
    """Return the bytes as sent, and the payload after the metadata as text if it is printable."""
    document: Document = {"body": base64.b64encode(body).decode()}
    at = 6 if body[:2] == MAGIC else 0
    if len(body) < at + 4 or flags & (EntryFlag.ENCRYPTED | EntryFlag.BATCH):
        return document
    start = at + 4 + int.from_bytes(body[at : at + 4], "big")
    if start > len(body):
        return document
    try:
        text = body[start:].decode()
    except UnicodeDecodeError:
        return document
    if all(letter.isprintable() or letter in "\n\r\t" for letter in text):
        document["text"] = text
    return document
