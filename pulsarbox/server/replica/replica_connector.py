"""Connecting to a replica: TCP, TLS if configured, and the handshake."""

import contextlib
import os
import socket
import ssl
import time
from pathlib import Path
from typing import Final

from pulsarbox import __version__
from pulsarbox.config.replica_address import ReplicaAddress, parse_address
from pulsarbox.errors import PersistenceError
from pulsarbox.server.replica.channel import Channel
from pulsarbox.server.replica.replica_link import ReplicaLink
from pulsarbox.storage.ensemble.remote.frames import FRAME_MAX, HANDSHAKE_MAX, FrameKind, WireDecoder, WireFrame, encode
from pulsarbox.storage.ensemble.remote.handshake import (
    NONCE_BYTES,
    HandshakeError,
    box_proof,
    checked_secret,
    hello,
    peer_nonce,
    proves,
    replica_proof,
)

CONNECT_SECONDS: Final = 3.0
"""Limit of connecting to one address."""
HANDSHAKE_SECONDS: Final = 5.0


def secret_in(path: Path) -> bytes:
    """Return the secret in a file. Raises ValueError."""
    try:
        with path.open("rb") as file:
            content = file.read(1 << 16)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    return checked_secret(content, str(path))


class ReplicaConnector:
    """Opens links to replicas."""

    def __init__(self, secret_file: Path, trusted: Path | None, silence_seconds: float) -> None:
        """``trusted`` has the certificate authorities for TLS; those of the system if None.

        A link ends if nothing is received for ``silence_seconds``.
        """
        self._secret_file = secret_file
        self._trusted = trusted
        self._silence_seconds = silence_seconds

    def connect(self, name: str) -> ReplicaLink:
        """Return a link to the replica at an address. Raises PersistenceError."""
        address = parse_address(name)
        try:
            secret = secret_in(self._secret_file)
            channel = Channel(self._connected(address))
        except ssl.SSLError as error:
            raise PersistenceError(f"{name} cannot be reached with TLS: {error}") from error
        except (OSError, ValueError) as error:
            raise PersistenceError(f"{name} cannot be reached: {_reason(error)}") from error
        try:
            decoder = _shake_hands(channel, secret)
        except (OSError, PersistenceError) as error:
            channel.close()
            raise PersistenceError(f"{name} cannot be used: {_reason(error)}") from error
        decoder.limit = FRAME_MAX
        return ReplicaLink(name, channel, decoder, self._silence_seconds)

    def _connected(self, address: ReplicaAddress) -> socket.socket:
        connected = socket.create_connection((address.host, address.port), CONNECT_SECONDS)
        try:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connected.settimeout(HANDSHAKE_SECONDS)
            return self._with_tls(connected, address.host) if address.is_tls else connected
        except BaseException:
            connected.close()
            raise

    def _with_tls(self, connected: socket.socket, host: str) -> socket.socket:
        context = ssl.create_default_context(cafile=self._trusted)
        return context.wrap_socket(connected, server_hostname=host)


def _shake_hands(channel: Channel, secret: bytes) -> WireDecoder:
    """Prove to each other that both sides know the secret. Raises HandshakeError, FrameError, OSError."""
    deadline = time.monotonic() + HANDSHAKE_SECONDS
    decoder = WireDecoder(HANDSHAKE_MAX)
    nonce = os.urandom(NONCE_BYTES)
    _send(channel, hello(nonce, __version__), deadline)
    theirs = peer_nonce(_frame(channel, decoder, deadline), FrameKind.CHALLENGE, __version__)
    _send(channel, WireFrame(FrameKind.PROOF, 0, {"proof": box_proof(secret, nonce, theirs)}), deadline)
    welcome = _frame(channel, decoder, deadline)
    if welcome.kind == FrameKind.REFUSED:
        raise HandshakeError(str(welcome.fields.get("reason", "the connection was refused"))[:200])
    if not proves(welcome, FrameKind.WELCOME, replica_proof(secret, nonce, theirs)):
        raise HandshakeError("the other side does not know the secret in ensembleReplicaSecretFile")
    return decoder


def _send(channel: Channel, frame: WireFrame, deadline: float) -> None:
    with contextlib.suppress(ConnectionError):  # a refusal that was sent before is read next
        channel.send(encode(frame, HANDSHAKE_MAX), deadline - time.monotonic())


def _frame(channel: Channel, decoder: WireDecoder, deadline: float) -> WireFrame:
    """Return the next frame; the peer sends only one at a time."""
    while True:
        data = channel.receive(deadline - time.monotonic())
        if not data:
            raise HandshakeError("the connection was closed during the handshake")
        frames = decoder.feed(data)
        if frames:
            return frames[0]


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return (error.strerror if isinstance(error, OSError) else "") or str(error)
