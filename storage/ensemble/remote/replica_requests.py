"""The requests of a box, applied to the member that a replica serves. Pure: the caller runs each in its lane.

Requests of one lane run one after the other in the order of their arrival, and beside those of other lanes, as the
threads of a box call the methods of a member.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.engine import Checkpoint, Rows
from pulsarbox.storage.ensemble.keeping.directories import NOTES, Space
from pulsarbox.storage.ensemble.member import Member, Piece
from pulsarbox.storage.ensemble.membership_json import membership_of
from pulsarbox.storage.ensemble.remote.frames import FrameError
from pulsarbox.storage.ensemble.remote.link import Part, ReplicaReply
from pulsarbox.storage.ensemble.remote.wire_values import (
    PART_BYTES,
    Fields,
    decode_batch,
    decode_pieces,
    decode_read,
    decode_rows,
    encode_entries,
    encode_log,
    encode_pieces,
    integer,
    integers,
    listed,
    row_portions,
    stored_rows,
    text,
)

UPLOADS: Final = frozenset({"checkpoint", "replace_rows", "adopt"})
"""Operations with parts; all others have only the body of their request."""
READ_MAX: Final = 32 << 20
"""Bytes of entries in one answer, unless a single one is larger."""
LOG_BATCHES: Final = 256
"""Batches of the log in one answer."""


class Lane:
    """The lanes of requests."""

    LOG: Final = "log"
    TABLES: Final = "tables"
    READS: Final = "reads"
    STATE: Final = "state"


class ReplicaNotes:
    """The parts of Directories that a replica serves, for its own directory."""

    def space(self) -> Space:
        """See Directories.space."""
        raise NotImplementedError

    def read(self, note: str) -> bytes:
        """See Directories.read_note."""
        raise NotImplementedError

    def write(self, note: str, content: bytes) -> None:
        """See Directories.write_note."""
        raise NotImplementedError


Parts = Iterator[Part]
_Handler = Callable[["ReplicaRequests", Fields, Parts], ReplicaReply]


def lane_of(operation: str) -> str:
    """Return the lane of an operation. Raises FrameError if there is no such operation."""
    found = _OPERATIONS.get(operation)
    if found is None:
        raise FrameError(f"unknown operation {operation[:40]!r}")
    return found[0]


class ReplicaRequests:
    """Applies requests to an open member."""

    def __init__(self, member: Member, rows: Rows, notes: ReplicaNotes) -> None:
        self._member = member
        self._rows = rows
        self._notes = notes

    def answer(self, operation: str, fields: Fields, parts: Parts) -> ReplicaReply:
        """Run a request; of operations without parts, ``parts`` has its own fields and body.

        Raises FrameError and the errors of the member.
        """
        lane_of(operation)
        return _OPERATIONS[operation][1](self, fields, parts)

    # The log

    def _commit(self, fields: Fields, parts: Parts) -> ReplicaReply:
        self._member.commit(decode_batch(fields, _body(parts)))
        return _DONE

    def _erase_from(self, fields: Fields, parts: Parts) -> ReplicaReply:
        self._member.erase_from(integer(fields, "position"))
        return _DONE

    def _batches(self, fields: Fields, parts: Parts) -> ReplicaReply:
        return ReplicaReply({}, encode_log(_portion(self._member.batches(integer(fields, "after")))))

    # Tables

    def _checkpoint(self, fields: Fields, parts: Parts) -> ReplicaReply:
        dropped = listed(fields, "dropped")
        rows = dict(row for _, body in parts for row in decode_rows(body))
        self._member.checkpoint(Checkpoint(integer(fields, "position"), rows, tuple(integers(dropped, len(dropped)))))
        return _DONE

    def _replace_rows(self, fields: Fields, parts: Parts) -> ReplicaReply:
        rows = (row for _, body in parts for row in stored_rows(body))
        self._member.replace_rows(rows, integer(fields, "mark"))
        return _DONE

    def _adopt(self, fields: Fields, parts: Parts) -> ReplicaReply:
        return ReplicaReply({"bytes": self._member.adopt(_pieces(parts))}, b"")

    def _forget(self, fields: Fields, parts: Parts) -> ReplicaReply:
        self._member.forget(*(integer(fields, name) for name in ("ledger", "first", "end")))
        return _DONE

    # Reads

    def _read(self, fields: Fields, parts: Parts) -> ReplicaReply:
        request = decode_read(fields)
        most = min(request.max_bytes, READ_MAX)
        return ReplicaReply({}, encode_entries(self._member.read(request._replace(max_bytes=most))))

    def _read_pieces(self, fields: Fields, parts: Parts) -> ReplicaReply:
        ledger_id, first, end, most = (integer(fields, name) for name in ("ledger", "first", "end", "bytes"))
        return ReplicaReply(*encode_pieces(self._member.pieces(ledger_id, first, end, min(most, READ_MAX))))

    def _ledgers(self, fields: Fields, parts: Parts) -> ReplicaReply:
        return ReplicaReply({"ledgers": self._member.ledgers()}, b"")

    def _coverage(self, fields: Fields, parts: Parts) -> ReplicaReply:
        ledger_ids = listed(fields, "ledgers")
        found = self._member.coverage(integers(ledger_ids, len(ledger_ids)))
        return ReplicaReply({"coverage": [[ledger_id, runs] for ledger_id, runs in found.items()]}, b"")

    def _row(self, fields: Fields, parts: Parts) -> ReplicaReply:
        key = _key(fields, "key")
        value = self._rows.get(key)
        return _row_reply(None if value is None else (key, value))

    def _some_rows(self, fields: Fields, parts: Parts) -> ReplicaReply:
        rows = self._rows.items(_key(fields, "prefix"), _key(fields, "after"))
        return ReplicaReply({}, next(row_portions(rows), b""))

    def _last_row(self, fields: Fields, parts: Parts) -> ReplicaReply:
        return _row_reply(self._rows.last(_key(fields, "prefix"), _key(fields, "through")))

    # State

    def _write_membership(self, fields: Fields, parts: Parts) -> ReplicaReply:
        found = fields.get("membership")
        if not isinstance(found, dict):
            raise FrameError("the membership is not a JSON object")
        self._member.write_membership(membership_of(found, "the membership of the box"))
        return _DONE

    def _check_room(self, fields: Fields, parts: Parts) -> ReplicaReply:
        self._member.check_room()
        return _DONE

    def _statistics(self, fields: Fields, parts: Parts) -> ReplicaReply:
        return ReplicaReply(self._member.statistics(), b"")

    def _space(self, fields: Fields, parts: Parts) -> ReplicaReply:
        return ReplicaReply(self._notes.space()._asdict(), b"")

    def _read_note(self, fields: Fields, parts: Parts) -> ReplicaReply:
        return ReplicaReply({}, self._notes.read(_note(fields)))

    def _write_note(self, fields: Fields, parts: Parts) -> ReplicaReply:
        self._notes.write(_note(fields), _body(parts))
        return _DONE


_DONE: Final = ReplicaReply({}, b"")
_OPERATIONS: Final[Mapping[str, tuple[str, _Handler]]] = {
    "commit": (Lane.LOG, ReplicaRequests._commit),
    "erase_from": (Lane.LOG, ReplicaRequests._erase_from),
    "checkpoint": (Lane.TABLES, ReplicaRequests._checkpoint),
    "replace_rows": (Lane.TABLES, ReplicaRequests._replace_rows),
    "adopt": (Lane.TABLES, ReplicaRequests._adopt),
    "forget": (Lane.TABLES, ReplicaRequests._forget),
    "batches": (Lane.READS, ReplicaRequests._batches),
    "read": (Lane.READS, ReplicaRequests._read),
    "pieces": (Lane.READS, ReplicaRequests._read_pieces),
    "ledgers": (Lane.READS, ReplicaRequests._ledgers),
    "coverage": (Lane.READS, ReplicaRequests._coverage),
    "row": (Lane.READS, ReplicaRequests._row),
    "rows": (Lane.READS, ReplicaRequests._some_rows),
    "last_row": (Lane.READS, ReplicaRequests._last_row),
    "write_membership": (Lane.STATE, ReplicaRequests._write_membership),
    "check_room": (Lane.STATE, ReplicaRequests._check_room),
    "statistics": (Lane.STATE, ReplicaRequests._statistics),
    "space": (Lane.STATE, ReplicaRequests._space),
    "read_note": (Lane.STATE, ReplicaRequests._read_note),
    "write_note": (Lane.STATE, ReplicaRequests._write_note),
}


def _body(parts: Parts) -> bytes:
    return next(parts)[1]


def _pieces(parts: Parts) -> Iterator[Piece]:
    for fields, body in parts:
        yield from decode_pieces(fields, body)


def _portion(batches: Iterable[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Return the first batches; those before a damaged one if there are any. Raises PersistenceError."""
    found: list[tuple[int, bytes]] = []
    size = 0
    try:
        for position, value in islice(batches, LOG_BATCHES):
            found.append((position, value))
            size += len(value)
            if size >= PART_BYTES:
                break
    except PersistenceError:
        if not found:
            raise
    return found


def _key(fields: Fields, name: str) -> bytes:
    try:
        return bytes.fromhex(text(fields, name))
    except ValueError:
        raise FrameError(f"the field {name} is not hexadecimal") from None


def _note(fields: Fields) -> str:
    note = text(fields, "note")
    if note not in NOTES:
        raise FrameError(f"unknown note {note[:40]!r}")
    return note


def _row_reply(row: tuple[bytes, bytes] | None) -> ReplicaReply:
    return ReplicaReply({}, b"".join(row_portions([] if row is None else [row])))
