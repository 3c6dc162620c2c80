"""A link to a replica in the same thread: every frame is encoded, decoded and answered at once."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pulsarbox.errors import PersistenceError
from pulsarbox.storage.ensemble.keeping.directories import Space
from pulsarbox.storage.ensemble.member import Member, MemberContent
from pulsarbox.storage.ensemble.membership_json import membership_fields
from pulsarbox.storage.ensemble.memory_member import MemberDisk, MemoryMember
from pulsarbox.storage.ensemble.remote.frames import FRAME_MAX, FrameKind, WireDecoder, WireFrame, encode
from pulsarbox.storage.ensemble.remote.link import Part, ReplicaReply
from pulsarbox.storage.ensemble.remote.replica_requests import UPLOADS, ReplicaNotes, ReplicaRequests
from pulsarbox.storage.ensemble.remote.wire_values import decode_error, encode_error, text


class MemoryNotes(ReplicaNotes):
    """Notes in a dict."""

    def __init__(self) -> None:
        self.notes: dict[str, bytes] = {}

    def space(self) -> Space:
        return Space(1, 2)

    def read(self, note: str) -> bytes:
        return self.notes.get(note, b"")

    def write(self, note: str, content: bytes) -> None:
        self.notes[note] = content


def sent(frame: WireFrame) -> WireFrame:
    """Return a frame as the other side receives it."""
    (received,) = WireDecoder(FRAME_MAX).feed(b"".join(encode(frame)))
    return received


class FakeLink:
    """A Link to a member."""

    def __init__(self, member: Member) -> None:
        self.why = ""
        self.calls: list[str] = []
        self._member = member
        self._requests: ReplicaRequests | None = None

    @property
    def is_up(self) -> bool:
        return not self.why

    def call(self, operation: str, fields: Mapping[str, Any], body: bytes, seconds: float) -> ReplicaReply:
        return self._exchange(operation, fields, body, ())

    def upload(self, operation: str, fields: Mapping[str, Any], parts: Iterable[Part], seconds: float) -> ReplicaReply:
        return self._exchange(operation, fields, b"", parts)

    def post(
        self, operation: str, fields: Mapping[str, Any], body: bytes, done: Callable[[Exception | None], None]
    ) -> None:
        try:
            self._exchange(operation, fields, body, ())
        except (PersistenceError, ValueError) as error:
            done(error)
        else:
            done(None)

    def close(self) -> None:
        if not self.why:
            self.why = "it was closed"
            self._member.close()

    def abandon(self) -> None:
        """Do nothing."""

    def _exchange(self, operation: str, fields: Mapping[str, Any], body: bytes, parts: Iterable[Part]) -> ReplicaReply:
        if self.why:
            raise PersistenceError(self.why)
        self.calls.append(operation)
        request = sent(WireFrame(FrameKind.REQUEST, 7, {"do": operation, **fields}, body))
        all_parts = _sent(parts) if operation in UPLOADS else iter([(request.fields, request.body)])
        try:
            reply = self._answer(request, all_parts)
        except (PersistenceError, ValueError) as error:
            answer = sent(WireFrame(FrameKind.ERROR, 7, *encode_error(error)))
            raise decode_error(answer.fields, answer.body) from error
        answer = sent(WireFrame(FrameKind.REPLY, 7, reply.fields, reply.body))
        return ReplicaReply(answer.fields, answer.body)

    def _answer(self, request: WireFrame, parts: Iterator[Part]) -> ReplicaReply:
        operation = text(request.fields, "do")
        if operation != "open":
            assert self._requests is not None
            return self._requests.answer(operation, request.fields, parts)
        content = self._member.open()
        self._requests = ReplicaRequests(self._member, content.rows, MemoryNotes())
        return ReplicaReply(opened(content), b"")


class Described(FakeLink):
    """A link that describes its directory, also before it is opened."""

    def __init__(self, disk: MemberDisk) -> None:
        self.disk = disk
        super().__init__(MemoryMember(disk))

    def call(self, operation: str, fields: Mapping[str, Any], body: bytes, seconds: float) -> ReplicaReply:
        if operation != "describe":
            return super().call(operation, fields, body, seconds)
        disk = self.disk
        known = None if disk.membership is None else membership_fields(disk.membership)
        return ReplicaReply({"membership": known, "box": disk.box}, b"")


def _sent(parts: Iterable[Part]) -> Iterator[Part]:
    for fields, body in parts:
        frame = sent(WireFrame(FrameKind.PART, 7, fields, body))
        yield frame.fields, frame.body


def opened(content: MemberContent) -> dict[str, Any]:
    """Return what a box learns of a directory in memory."""
    known = None if content.membership is None else membership_fields(content.membership)
    return {
        "membership": known,
        "mark": content.mark,
        "newest": content.newest,
        "box": content.box,
        "machine": "there",
        "device": 5,
        "deviceElsewhere": 1 << 40,
    }
