"""The link to a replica over a socket: requests with numbers, answers in any order, and heartbeats."""

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from queue import Empty, SimpleQueue
from typing import Any, Final

from pulsarbox.errors import PersistenceError
from pulsarbox.server.replica.channel import Channel
from pulsarbox.storage.ensemble.remote.frames import FrameKind, WireDecoder, WireFrame, encode
from pulsarbox.storage.ensemble.remote.link import Part, ReplicaReply
from pulsarbox.storage.ensemble.remote.wire_values import decode_error

PING_SECONDS: Final = 1.0
"""Interval of heartbeats."""
_NUMBERS: Final = 1 << 32
_Answer = WireFrame | Exception


class ReplicaLink:
    """A Link. Two threads: one receives, the other sends what could not be sent at once, and heartbeats."""

    def __init__(self, name: str, channel: Channel, decoder: WireDecoder, silence_seconds: float) -> None:
        """``name`` is the address; ``decoder`` may hold bytes received after the handshake."""
        self._name = name
        self._channel = channel
        self._decoder = decoder
        self._silence_seconds = silence_seconds
        self._numbers = itertools.count(1)
        self._pending: dict[int, Callable[[_Answer], None]] = {}
        self._changing = threading.Lock()
        self._backlog: deque[memoryview] = deque()
        self._has_backlog = threading.Event()
        self._why = ""
        self._sender = threading.Thread(target=self._send_rest, name="replica sender", daemon=True)
        self._receiver = threading.Thread(target=self._receive, name="replica receiver", daemon=True)
        self._sender.start()
        self._receiver.start()

    @property
    def is_up(self) -> bool:
        """See Link."""
        return not self._why

    @property
    def why(self) -> str:
        """See Link."""
        return self._why

    def call(self, operation: str, fields: Mapping[str, Any], body: bytes, seconds: float) -> ReplicaReply:
        """See Link."""
        answers: SimpleQueue[_Answer] = SimpleQueue()
        self._request(operation, fields, body, answers.put)
        return self._reply(operation, self._answer(operation, answers, seconds))

    def upload(self, operation: str, fields: Mapping[str, Any], parts: Iterable[Part], seconds: float) -> ReplicaReply:
        """See Link."""
        answers: SimpleQueue[_Answer] = SimpleQueue()
        number = self._request(operation, fields, b"", answers.put)
        try:
            for part in parts:
                answer = self._answer(operation, answers, seconds)
                if not _is_continue(answer):
                    return self._reply(operation, answer)
                self._send(WireFrame(FrameKind.PART, number, *part))
        except BaseException:
            self._send(WireFrame(FrameKind.ABORT, number, {}))
            self._pending.pop(number, None)
            raise
        answer = self._answer(operation, answers, seconds)
        if _is_continue(answer):
            self._send(WireFrame(FrameKind.END, number, {}))
            answer = self._answer(operation, answers, seconds)
        return self._reply(operation, answer)

    def post(
        self, operation: str, fields: Mapping[str, Any], body: bytes, done: Callable[[Exception | None], None]
    ) -> None:
        """See Link."""
        self._request(operation, fields, body, lambda answer: done(self._error(answer)))

    def close(self) -> None:
        """See Link."""
        self._fail("it was closed")
        if threading.current_thread() not in (self._sender, self._receiver):
            self._receiver.join()

    def abandon(self) -> None:
        """See Link."""
        self._channel.close()

    # Requests

    def _request(self, operation: str, fields: Mapping[str, Any], body: bytes, done: Callable[[_Answer], None]) -> int:
        """Send a request; ``done`` is called with each answer, or with the error of the link."""
        number = next(self._numbers) % _NUMBERS
        try:
            data = encode(WireFrame(FrameKind.REQUEST, number, {"do": operation, **fields}, body))
        except PersistenceError as error:
            done(error)
            return number
        why = ""
        with self._changing:
            is_up = self.is_up
            if is_up:
                self._pending[number] = done
                why = self._queue(data)
        if why:
            self._fail(why)
        if not is_up:
            done(PersistenceError(self._down()))
        return number

    def _send(self, frame: WireFrame) -> None:
        """Send a further frame of a request. Raises PersistenceError if it is too large."""
        data = encode(frame)
        with self._changing:
            why = "" if self._why else self._queue(data)
        if why:
            self._fail(why)

    def _queue(self, data: list[bytes]) -> str:
        """Send at once what can be sent, and queue the rest; return the error of the link. Holds the lock."""
        parts = deque([memoryview(part) for part in data])
        try:
            while parts and not self._backlog:
                parts[0] = parts[0][self._channel.try_send(parts[0]) :]
                if parts[0]:
                    break
                parts.popleft()
        except OSError as error:
            return error.strerror or str(error)
        if parts:
            self._backlog += parts
            self._has_backlog.set()
        return ""

    def _answer(self, operation: str, answers: "SimpleQueue[_Answer]", seconds: float) -> _Answer:
        try:
            return answers.get(timeout=seconds)
        except Empty:
            self._fail(f"it has not completed {operation} in {seconds:g} s")
            return PersistenceError(self._down())

    def _reply(self, operation: str, answer: _Answer) -> ReplicaReply:
        error = self._error(answer)
        if error is not None:
            raise error
        assert isinstance(answer, WireFrame)
        return ReplicaReply(answer.fields, answer.body)

    def _error(self, answer: _Answer) -> Exception | None:
        if isinstance(answer, Exception):
            return answer
        if answer.kind != FrameKind.ERROR:
            return None
        error = decode_error(answer.fields, answer.body)
        if type(error) is PersistenceError:
            return PersistenceError(f"{self._name}: {error}")
        return error

    # Threads

    def _receive(self) -> None:
        try:
            for frame in self._decoder.feed(b""):
                self._take(frame)
            while not self._why:
                data = self._channel.receive(self._silence_seconds)
                if not data:
                    self._fail("the replica has closed the connection")
                    return
                for frame in self._decoder.feed(data):
                    self._take(frame)
        except TimeoutError:
            self._fail(f"the replica has not answered for {self._silence_seconds:g} s")
        except (OSError, PersistenceError) as error:
            self._fail((error.strerror if isinstance(error, OSError) else "") or str(error))
        except BaseException as error:
            self._fail(f"unexpected error: {error!r}")
            raise
        finally:
            self._sender.join()
            self._channel.close()

    def _take(self, frame: WireFrame) -> None:
        if frame.kind == FrameKind.REFUSED:
            self._fail(str(frame.fields.get("reason", ""))[:200])
        elif frame.kind == FrameKind.CONTINUE:
            done = self._pending.get(frame.number)
            if done is not None:
                done(frame)
        elif frame.kind in (FrameKind.REPLY, FrameKind.ERROR):
            done = self._pending.pop(frame.number, None)
            if done is not None:
                done(frame)

    def _send_rest(self) -> None:
        next_ping = time.monotonic()
        while not self._why:
            if time.monotonic() >= next_ping:
                next_ping = time.monotonic() + PING_SECONDS
                self._send(WireFrame(FrameKind.PING, 0, {}))
            if not self._has_backlog.wait(max(0.0, next_ping - time.monotonic())):
                continue
            if self._channel.wait_writable(PING_SECONDS):
                self._send_backlog()

    def _send_backlog(self) -> None:
        why = ""
        with self._changing:
            backlog = self._backlog
            try:
                while backlog:
                    backlog[0] = backlog[0][self._channel.try_send(backlog[0]) :]
                    if backlog[0]:
                        break
                    backlog.popleft()
                else:
                    self._has_backlog.clear()
            except OSError as error:
                why = error.strerror or str(error)
        if why:
            self._fail(why)

    def _fail(self, why: str) -> None:
        """End the link, and all requests with the reason."""
        with self._changing:
            if self._why:
                return
            self._why = why or "the connection was lost"
            pending, self._pending = self._pending, {}
            self._has_backlog.set()
        self._channel.shut_down()
        error = PersistenceError(self._down())
        for done in pending.values():
            done(error)

    def _down(self) -> str:
        return f"{self._name} is not connected: {self._why}"


def _is_continue(answer: _Answer) -> bool:
    return isinstance(answer, WireFrame) and answer.kind == FrameKind.CONTINUE
