"""A member of an ensemble on another machine, behind a link. Every method may wait for the network."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.engine import Checkpoint, Compressing, ReadRequest, Reclaimed
from pulsarbox.storage.ensemble.keeping.directories import Space
from pulsarbox.storage.ensemble.member import MemberContent, PackedBatch, Piece
from pulsarbox.storage.ensemble.membership import Membership
from pulsarbox.storage.ensemble.membership_json import membership_fields, membership_of
from pulsarbox.storage.ensemble.remote.link import Connect, Link, Part, ReplicaReply
from pulsarbox.storage.ensemble.remote.remote_rows import RemoteRows
from pulsarbox.storage.ensemble.remote.wire_values import (
    decode_entries,
    decode_log,
    decode_pieces,
    encode_batch,
    encode_pieces,
    encode_read,
    integer,
    integers,
    listed,
    portions,
    row_portions,
    text,
)
from pulsarbox.storage.record import Entry

SHORT_SECONDS: Final = 10.0
"""Limit of operations that a replica answers at once if its disk works."""
LONG_SECONDS: Final = 120.0
"""Limit of operations on all tables, and of opening a directory after a crash."""


class RemoteMember:
    """A Member on a replica."""

    is_remote = True

    def __init__(self, name: str, connect: Connect, claim: Callable[[], Mapping[str, Any]], machine: str) -> None:
        """``claim`` returns the fields with which this box asks for the directory; ``machine`` identifies this one."""
        self.name = name
        self.device = 0
        self.known: Membership | None = None
        """The membership that the replica has."""
        self._connect = connect
        self._claim = claim
        self._machine = machine
        self._link: Link | None = None

    def open(self) -> MemberContent:
        """See Member. Raises PersistenceError if another box that answers has the directory."""
        link = self._connect(self.name)
        try:
            found = link.call("open", self._claim(), b"", LONG_SECONDS).fields
            self.known = opened_membership(found, self.name)
            self.device = integer(found, "device" if found.get("machine") == self._machine else "deviceElsewhere")
            content = MemberContent(
                self.known, RemoteRows(link), integer(found, "mark"), integer(found, "newest"), text(found, "box")
            )
        except BaseException:
            link.close()
            raise
        self._link = link
        return content

    def batches(self, after: int) -> Iterator[tuple[int, bytes]]:
        """See Member. Fetches the log in portions."""
        while found := decode_log(self._call("batches", {"after": after}).body):
            yield from found
            after = found[-1][0]

    def write_membership(self, membership: Membership) -> None:
        """See Member."""
        self._call("write_membership", {"membership": membership_fields(membership)})
        self.known = membership

    def commit(self, batch: PackedBatch) -> None:
        """See Member."""
        fields, body = encode_batch(batch)
        self._call("commit", fields, body)

    def post(self, batch: PackedBatch, done: Callable[[Exception | None], None]) -> None:
        """Queue a batch without waiting; ``done`` is called once with the error of ``commit``, or None."""
        fields, body = encode_batch(batch)
        link = self._link
        if link is None:
            done(PersistenceError(self.absence))
        else:
            link.post("commit", fields, body, done)

    def erase_from(self, position: int) -> None:
        """See Member."""
        self._call("erase_from", {"position": position}, seconds=LONG_SECONDS)

    def read(self, request: ReadRequest) -> list[Entry]:
        """See Member."""
        return request.answer(decode_entries(self._call("read", encode_read(request)).body))

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        """See Member."""
        fields = {"position": checkpoint.position, "dropped": checkpoint.dropped}
        self._upload("checkpoint", fields, (({}, part) for part in row_portions(checkpoint.rows.items())))

    def replace_rows(self, rows: Iterable[tuple[bytes, bytes]], mark: int) -> None:
        """See Member."""
        self._upload("replace_rows", {"mark": mark}, (({}, part) for part in row_portions(rows)))

    def reclaim(self, compressing: Compressing | None = None) -> Reclaimed | None:
        """Do nothing: the replica reclaims its disk space itself, and does not compress."""
        return None

    def check_room(self) -> None:
        """See Member."""
        self._call("check_room", {})

    def is_there(self) -> bool:
        """Return whether the replica is connected."""
        return self._link is not None and self._link.is_up

    @property
    def absence(self) -> str:
        """Why it is not connected, as a sentence."""
        why = "" if self._link is None else self._link.why
        return f"{self.name} is not connected" + (f": {why}" if why else "")

    def ledgers(self) -> list[int]:
        """See Member."""
        fields = self._call("ledgers", {}, seconds=LONG_SECONDS).fields
        return integers(listed(fields, "ledgers"), len(listed(fields, "ledgers")))

    def coverage(self, ledger_ids: Sequence[int]) -> Mapping[int, list[tuple[int, int]]]:
        """See Member."""
        fields = self._call("coverage", {"ledgers": list(ledger_ids)}, seconds=LONG_SECONDS).fields
        found: dict[int, list[tuple[int, int]]] = {}
        for ledger_id, runs in listed(fields, "coverage"):
            found[ledger_id] = [(first, end) for first, end in (integers(run, 2) for run in runs)]
        return found

    def pieces(self, ledger_id: int, first: int, end: int, max_bytes: int) -> list[Piece]:
        """See Member."""
        wanted = {"ledger": ledger_id, "first": first, "end": end, "bytes": max_bytes}
        reply = self._call("pieces", wanted, seconds=LONG_SECONDS)
        return decode_pieces(reply.fields, reply.body)

    def adopt(self, pieces: Iterable[Piece]) -> int:
        """See Member."""
        return integer(self._upload("adopt", {}, map(encode_pieces, portions(pieces))).fields, "bytes")

    def forget(self, ledger_id: int, first: int, end: int) -> None:
        """See Member."""
        self._call("forget", {"ledger": ledger_id, "first": first, "end": end}, seconds=LONG_SECONDS)

    def statistics(self) -> dict[str, Any]:
        """See Member."""
        return dict(self._call("statistics", {}).fields)

    def space(self) -> Space:
        """Return the space that the directory uses, and that its disk has. Raises PersistenceError."""
        fields = self._call("space", {}).fields
        return Space(integer(fields, "used"), integer(fields, "free"))

    def read_note(self, note: str) -> bytes:
        """Return a note, see Directories. Raises PersistenceError."""
        return self._call("read_note", {"note": note}).body

    def write_note(self, note: str, content: bytes) -> None:
        """Store a note, see Directories. Raises PersistenceError."""
        self._call("write_note", {"note": note}, content)

    def release_inherited_lock(self) -> None:
        """See Member."""
        if self._link is not None:
            self._link.abandon()

    def close(self) -> None:
        """See Member."""
        if self._link is not None:
            self._link.close()

    def _call(
        self, operation: str, fields: Mapping[str, Any], body: bytes = b"", seconds: float = SHORT_SECONDS
    ) -> ReplicaReply:
        if self._link is None:
            raise PersistenceError(self.absence)
        return self._link.call(operation, fields, body, seconds)

    def _upload(self, operation: str, fields: Mapping[str, Any], parts: Iterable[Part]) -> ReplicaReply:
        if self._link is None:
            raise PersistenceError(self.absence)
        return self._link.upload(operation, fields, parts, LONG_SECONDS)


def opened_membership(fields: Mapping[str, Any], name: str) -> Membership | None:
    """Return the membership in the description of a directory, None if it is new. Raises PersistenceError."""
    found = fields.get("membership")
    return membership_of(found, name) if isinstance(found, dict) else None
