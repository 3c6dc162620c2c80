"""One connection to a replica: the handshake, then requests. Everything before authentication is bounded."""

import contextlib
import logging
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from pulsarbox import __version__
from pulsarbox.errors import PersistenceError
from pulsarbox.server.process.log_setup import Sparing, and_more
from pulsarbox.server.replica.channel import Channel
from pulsarbox.server.replica.replica_session import ReplicaSession
from pulsarbox.storage.ensemble.remote.frames import (
    FRAME_MAX,
    HANDSHAKE_MAX,
    FrameError,
    FrameKind,
    WireDecoder,
    WireFrame,
    encode,
)
from pulsarbox.storage.ensemble.remote.handshake import (
    NONCE_BYTES,
    HandshakeError,
    box_proof,
    challenge,
    peer_nonce,
    proves,
    refused,
    replica_proof,
)
from pulsarbox.storage.ensemble.remote.wire_values import encode_error

log = logging.getLogger(__name__)

HANDSHAKE_SECONDS: Final = 5.0
SILENCE_SECONDS: Final = 15.0
"""A connection without heartbeats for so long is ended."""
SEND_SECONDS: Final = 30.0
"""Limit of sending one answer."""
_WRONG_SECONDS: Final = 1.0
"""Pause before a wrong secret is refused."""
_refusals: Final = Sparing()


class DirectoryGrant(Protocol):
    """Gives out the directory to one box at a time."""

    def describe(self) -> dict[str, Any]:
        """Return the directory. Raises PersistenceError."""

    def open(self, connection: "ReplicaConnection", fields: Mapping[str, Any]) -> tuple[ReplicaSession, dict[str, Any]]:
        """Return a new session, and what the box learns of the directory. Raises PersistenceError."""


class ReplicaConnection:
    """Runs in a thread of its own until the peer, the replica or the network ends it."""

    def __init__(self, accepted: socket.socket, peer: str, secret: bytes, opening: DirectoryGrant) -> None:
        self._accepted = accepted
        self.peer = peer
        self._secret = secret
        self._opening = opening
        self.is_authenticated = False
        self.is_alive = True
        """Whether it can still receive requests."""
        self.last_received = time.monotonic()
        self._channel: Channel | None = None
        self._session: ReplicaSession | None = None
        self._is_opening = False
        self._ending = threading.Lock()

    def run(self, context: ssl.SSLContext | None, ended: Callable[["ReplicaConnection"], None]) -> None:
        """Serve the connection; ``context`` is for TLS. Calls ``ended`` at the end."""
        try:
            self._serve(context)
        except (TimeoutError, OSError, PersistenceError) as error:
            self._report(error)
        except Exception:
            log.exception("the connection of %s failed", self.peer)
        finally:
            self.end()
            if self._session is not None:
                self._session.end()
            ended(self)

    def end(self) -> None:
        """End the connection; its thread returns soon."""
        with self._ending:
            self.is_alive = False
            if self._channel is not None:
                self._channel.shut_down()
            else:
                with contextlib.suppress(OSError):
                    self._accepted.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        """Close the socket; called after the thread and the session have ended."""
        if self._channel is not None:
            self._channel.close()
        self._accepted.close()

    def send(self, frame: WireFrame) -> None:
        """Send a frame. Raises OSError; a peer that does not receive is disconnected."""
        assert self._channel is not None
        try:
            data = encode(frame)
        except FrameError as error:
            data = encode(WireFrame(FrameKind.ERROR, frame.number, encode_error(error)[0]))
        try:
            self._channel.send(data, SEND_SECONDS)
        except (OSError, ValueError):
            self.end()
            raise OSError("the connection was lost") from None

    def _serve(self, context: ssl.SSLContext | None) -> None:
        deadline = time.monotonic() + HANDSHAKE_SECONDS
        self._accepted.settimeout(HANDSHAKE_SECONDS)
        connected = self._accepted
        if context is not None:
            connected = context.wrap_socket(connected, server_side=True)
        with self._ending:
            if not self.is_alive:
                return
            self._channel = Channel(connected)
        decoder = WireDecoder(HANDSHAKE_MAX)
        try:
            self._shake_hands(self._channel, decoder, deadline)
        except (HandshakeError, FrameError) as error:
            self._channel.send(encode(refused(str(error))), 1.0)
            raise
        self.is_authenticated = True
        decoder.limit = FRAME_MAX
        self._receive(self._channel, decoder)

    def _shake_hands(self, channel: Channel, decoder: WireDecoder, deadline: float) -> None:
        """Raises HandshakeError, FrameError, TimeoutError, OSError."""
        theirs = peer_nonce(_frame(channel, decoder, deadline), FrameKind.HELLO, __version__)
        nonce = os.urandom(NONCE_BYTES)
        channel.send(encode(challenge(nonce, __version__)), deadline - time.monotonic())
        proof = _frame(channel, decoder, deadline)
        if not proves(proof, FrameKind.PROOF, box_proof(self._secret, theirs, nonce)):
            time.sleep(_WRONG_SECONDS)
            raise HandshakeError("the secret is wrong: box and replica must have the same")
        welcome = {"proof": replica_proof(self._secret, theirs, nonce)}
        channel.send(encode(WireFrame(FrameKind.WELCOME, 0, welcome)), 1.0)

    def _receive(self, channel: Channel, decoder: WireDecoder) -> None:
        while self.is_alive:
            data = channel.receive(SILENCE_SECONDS)
            if not data:
                return
            self.last_received = time.monotonic()
            for frame in decoder.feed(data):
                self._take(frame)

    def _take(self, frame: WireFrame) -> None:
        if frame.kind == FrameKind.PING:
            self.send(WireFrame(FrameKind.PONG, 0, {}))
        elif frame.kind == FrameKind.REQUEST and frame.fields.get("do") == "describe":
            self._answer(frame, self._opening.describe)
        elif frame.kind == FrameKind.REQUEST and frame.fields.get("do") == "open":
            self._begin_open(frame)
        elif self._session is not None:
            self._session.receive(frame)
        elif frame.kind == FrameKind.REQUEST:
            raise FrameError("a request before the directory was opened")

    def _begin_open(self, frame: WireFrame) -> None:
        """Open the directory beside this thread, which answers heartbeats: after a crash, that can take long."""
        if self._is_opening:
            raise FrameError("the directory was opened before")
        self._is_opening = True
        work = threading.Thread(
            target=self._answer, args=(frame, lambda: self._open(frame.fields)), name="replica open", daemon=True
        )
        work.start()

    def _answer(self, frame: WireFrame, work: Callable[[], dict[str, Any]]) -> None:
        try:
            answer = WireFrame(FrameKind.REPLY, frame.number, work())
        except PersistenceError as error:
            answer = WireFrame(FrameKind.ERROR, frame.number, *encode_error(error))
        with contextlib.suppress(OSError):  # the connection ends, which its own thread notices
            self.send(answer)

    def _open(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        self._session, found = self._opening.open(self, fields)
        return found

    def _report(self, error: Exception) -> None:
        """Log why a connection ended; strangers cannot fill the log."""
        why = "it was silent for too long" if isinstance(error, TimeoutError) else str(error) or repr(error)
        if self.is_authenticated:
            log.warning("the connection of %s ended: %s", self.peer, why)
        elif (suppressed := _refusals.due()) is not None:
            log.warning("the connection of %s was refused: %s%s", self.peer, why, and_more(suppressed))


def _frame(channel: Channel, decoder: WireDecoder, deadline: float) -> WireFrame:
    """Return the next frame; the peer sends only one at a time. Raises FrameError, TimeoutError, OSError."""
    while True:
        data = channel.receive(deadline - time.monotonic())
        if not data:
            raise HandshakeError("the connection was closed during the handshake")
        frames = decoder.feed(data)
        if len(frames) > 1:
            raise FrameError("unexpected frames during the handshake")
        if frames:
            return frames[0]
