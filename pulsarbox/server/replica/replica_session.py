"""The session of one box on a replica: its requests run in a thread for each lane, and space is reclaimed in another.

A session ends with its connection, or when another box takes the directory: then no request of it begins any longer.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from functools import partial
from queue import Empty, SimpleQueue
from typing import Final

from pulsarbox.errors import PersistenceError
from pulsarbox.server.process.log_setup import Sparing, and_more
from pulsarbox.storage.ensemble.lmdb_member import LmdbMember
from pulsarbox.storage.ensemble.member import MemberContent
from pulsarbox.storage.ensemble.remote.frames import FrameError, FrameKind, WireFrame
from pulsarbox.storage.ensemble.remote.link import Part
from pulsarbox.storage.ensemble.remote.replica_requests import UPLOADS, Lane, ReplicaRequests, lane_of
from pulsarbox.storage.ensemble.remote.wire_values import encode_error, text

log = logging.getLogger(__name__)

QUEUED_MAX: Final = 64 << 20
"""Bytes of requests that wait for their lane, beside the last one."""
REQUEST_BYTES: Final = 1 << 12
"""What a request counts beside its body."""
PARTS_MAX: Final = 2
"""Parts of a request that were not asked for: a box sends one at a time."""
STOP_SECONDS: Final = 10.0
"""How long the requests in progress may take when a session ends."""
PART_SECONDS: Final = 60.0
"""How long a request waits for its next part."""
_RECLAIMING: Final = frozenset({"checkpoint", "replace_rows", "adopt", "forget"})
"""Operations after which there may be space to reclaim."""


class ReplicaSession:
    """Requests on an open member. ``receive`` is called by the thread of the connection."""

    def __init__(
        self, member: LmdbMember, content: MemberContent, requests: ReplicaRequests, send: Callable[[WireFrame], None]
    ) -> None:
        """``send`` sends an answer; called from several threads."""
        self._member = member
        self.content = content
        self._requests = requests
        self._send = send
        self._closing = threading.Event()
        self._lanes: dict[str, SimpleQueue[WireFrame | None]] = {}
        self._threads: list[threading.Thread] = []
        self._uploads: dict[int, SimpleQueue[WireFrame]] = {}
        self._queued = 0
        self._changed = threading.Condition()
        self._reclaim_due = threading.Event()
        self._sparing = Sparing()
        for lane in (Lane.LOG, Lane.TABLES, Lane.READS, Lane.STATE):
            tasks: SimpleQueue[WireFrame | None] = SimpleQueue()
            self._lanes[lane] = tasks
            self._start(lane, partial(self._run, tasks))
        self._start("space", self._reclaim)

    def _start(self, name: str, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, name=f"replica {name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def receive(self, frame: WireFrame) -> None:
        """Queue a request, or a part of one; wait while too much is queued. Raises FrameError."""
        if frame.kind == FrameKind.REQUEST:
            operation = text(frame.fields, "do")
            lane = self._lanes[lane_of(operation)]
            if operation in UPLOADS:
                self._uploads[frame.number] = SimpleQueue()
            self._admit(len(frame.body) + REQUEST_BYTES)
            lane.put(frame)
        elif frame.kind in (FrameKind.PART, FrameKind.END, FrameKind.ABORT):
            parts = self._uploads.get(frame.number)
            if parts is not None:  # not if the request has failed before its end
                if parts.qsize() >= PARTS_MAX:
                    raise FrameError("parts that were not asked for")
                parts.put(frame)
        else:
            raise FrameError(f"unexpected frame of kind {frame.kind}")

    def _admit(self, size: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._queued < QUEUED_MAX or self._closing.is_set())
            self._queued += size

    def close(self) -> bool:
        """End the session and close the member; False if a request does not end, so that the member stays open."""
        is_ended = self.end()
        if is_ended:
            self._member.close()
        return is_ended

    def end(self) -> bool:
        """Begin no further request, and wait for those in progress; False if one does not end."""
        self._closing.set()
        with self._changed:
            self._changed.notify_all()
        self._reclaim_due.set()
        self._member.engine.reclaimer.stop()
        for tasks in self._lanes.values():
            tasks.put(None)
        for thread in self._threads:
            thread.join(STOP_SECONDS)
        return not any(thread.is_alive() for thread in self._threads)

    # Lanes

    def _run(self, tasks: "SimpleQueue[WireFrame | None]") -> None:
        while (frame := tasks.get()) is not None and not self._closing.is_set():
            answer = self._answer(frame)
            self._uploads.pop(frame.number, None)
            with self._changed:
                self._queued -= len(frame.body) + REQUEST_BYTES
                self._changed.notify_all()
            with contextlib.suppress(OSError):  # the connection ends, which its own thread notices
                self._send(answer)

    def _answer(self, frame: WireFrame) -> WireFrame:
        operation = text(frame.fields, "do")
        parts = self._parts(frame.number) if operation in UPLOADS else iter([(frame.fields, frame.body)])
        try:
            reply = self._requests.answer(operation, frame.fields, parts)
        except (PersistenceError, ValueError) as error:
            return self._error(frame.number, operation, error)
        except Exception as error:
            log.exception("%s failed", operation)
            return self._error(frame.number, operation, PersistenceError(f"{operation} failed: {error!r}"))
        if operation in _RECLAIMING:
            self._reclaim_due.set()
        return WireFrame(FrameKind.REPLY, frame.number, reply.fields, reply.body)

    def _error(self, number: int, operation: str, error: Exception) -> WireFrame:
        suppressed = self._sparing.due() if operation == "commit" else None
        if suppressed is not None:
            log.error("%s failed: %s%s", operation, error, and_more(suppressed))
        fields, body = encode_error(error)
        return WireFrame(FrameKind.ERROR, number, fields, body)

    def _parts(self, number: int) -> Iterator[Part]:
        """Yield the parts of a request; the next one is requested once the former was used."""
        parts = self._uploads[number]
        while True:
            self._send(WireFrame(FrameKind.CONTINUE, number, {}))
            frame = self._part(parts)
            if frame.kind == FrameKind.END:
                return
            if frame.kind == FrameKind.ABORT:
                raise PersistenceError("the box has ended the request before its last part")
            yield frame.fields, frame.body

    def _part(self, parts: "SimpleQueue[WireFrame]") -> WireFrame:
        waited = 0.0
        while not self._closing.is_set() and waited < PART_SECONDS:
            try:
                return parts.get(timeout=0.5)
            except Empty:
                waited += 0.5
        raise PersistenceError("the connection ended before the last part of the request")

    def _reclaim(self) -> None:
        """Reclaim space after the requests that may have freed some."""
        while self._reclaim_due.wait() and not self._closing.is_set():
            self._reclaim_due.clear()
            try:
                while not self._closing.is_set() and self._member.reclaim() is not None:
                    pass
            except PersistenceError as error:
                log.error("disk space cannot be reclaimed: %s", error)
