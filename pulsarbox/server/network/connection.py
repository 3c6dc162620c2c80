"""One TCP connection: bytes into and out of the core, with backpressure in both directions."""

import asyncio
import os
from typing import TYPE_CHECKING, cast

from pulsarbox.broker.connection.cnx import CONNECTED
from pulsarbox.config.listeners import host_in_url, is_loopback
from pulsarbox.protocol.frames import FrameDecoder
from pulsarbox.server.network.peer_identity import common_name, is_secure
from pulsarbox.server.network.protocol_mismatch import advice, answer, detect_protocol

if TYPE_CHECKING:
    from pulsarbox.server.loop_shell import LoopShell

WRITE_HIGH = 2 << 20
"""Bytes in the transport from which a client counts as slow: its outbox is then full."""
WRITE_LOW = 512 << 10
LINGER_SECONDS = 10.0
"""Timeout in seconds for flushing a connection that the broker closes; a peer may never read the rest."""
FIRST_FRAME_MAX = 64 << 10
"""Maximum bytes of a frame before CONNECT is accepted: enough for a token, and bounds unauthenticated memory."""


class ServerConnection(asyncio.BufferedProtocol):
    """Translates between a transport and a ``ServerCnx``."""

    def __init__(self, shell: "LoopShell", listener: str = "") -> None:
        """``listener`` is the advertised listener whose port the client has connected to."""
        self._shell = shell
        self._listener = listener
        self._new = True
        """Whether CONNECT is not accepted yet."""
        self._decoder = FrameDecoder(min(FIRST_FRAME_MAX, shell.max_frame_size))
        self.outbox = shell.broker.new_outbox()
        self._paused = False
        self._abort: asyncio.TimerHandle | None = None
        """Aborts a closed connection whose peer reads nothing."""

    # Input

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept a client's connection, or refuse it by the connection limits."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transport is not a subclass
        self._transport.set_write_buffer_limits(WRITE_HIGH, WRITE_LOW)
        peer = transport.get_extra_info("peername")
        self._host = peer[0] if peer else "?"
        address = f"{peer[0]}:{peer[1]}" if peer else "?"
        shell = self._shell
        gate = shell.gate
        secure = is_secure(transport)
        # A TLS port has checked ``gate.refusal`` before the handshake.
        refusal = gate.broker_refusal(self._host, len(shell.connections))
        refusal = refusal or (None if secure else gate.refusal(self._host))
        if refusal is not None:
            gate.warn("refused", "refusing the connection of %s: %s", address, refusal)
            self._transport.abort()
            return
        gate.broker_enters(self._host)
        shell.connections[self.outbox] = self
        self.cnx = shell.broker.connected(
            self.outbox,
            address,
            shell.now(),
            reached=_reached(transport.get_extra_info("sockname")),
            listener=self._listener,
            secure=secure,
            certificate=common_name(transport),
        )

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer to read into."""
        return self._decoder.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        """Pass every complete frame of the received bytes to the core."""
        shell = self._shell
        now = shell.now()
        receive = self.cnx.receive
        for frame in self._decoder.buffer_updated(nbytes):
            receive(frame, now)
        if self._new:
            self._check_handshake()
        if self._decoder.error is not None:
            self.cnx.broken(self._decoder.error)
        if shell.broker.full or self.cnx.overdrawn:
            shell.hold(self)
        shell.after_read()

    def _check_handshake(self) -> None:
        """Lift the limits of a client whose CONNECT is accepted, or answer one that speaks another protocol."""
        shell = self._shell
        if self.cnx.state is CONNECTED:
            self._new = False
            shell.gate.known(self._host)
            self._decoder.allow(shell.max_frame_size)
        elif self._decoder.error is not None and (what := detect_protocol(self._decoder.head)):
            text = advice(what, self.cnx.secure, False, shell.protocol_urls)
            if words := answer(what, text):
                self.outbox.send(words)
            self.cnx.abort(f"the client speaks {what}: {text}")

    def connection_lost(self, exc: Exception | None) -> None:
        """Release a lost connection."""
        if self._abort is not None:
            self._abort.cancel()
        shell = self._shell
        if shell.connections.pop(self.outbox, None) is not None:
            shell.gate.broker_leaves(self._host, half_open=self._new)
            self.cnx.closed(shell.now())
            shell.kick()

    # Output

    def flush(self) -> None:
        """Write the core's output for this client at once, and resume an outbox that was full."""
        outbox = self.outbox
        if self._new and self.cnx.state is CONNECTED:  # after a password was verified
            self._check_handshake()
        was_full = outbox.full
        data = outbox.take()
        if data and not self._transport.is_closing():
            self._transport.write(data)
        if outbox.close_reason is not None:
            if self._new and not self._transport.is_closing():
                text = "closing the connection of %s before CONNECT: %s"
                self._shell.gate.warn("closed", text, self.cnx.address, outbox.close_reason)
            self._close_socket()
        elif was_full and not outbox.full:
            self.cnx.writable(self._shell.now())
            self._shell.kick()

    def _close_socket(self) -> None:
        """Close the socket once its last bytes are written.

        Release the client's producer names and exclusive subscriptions at once: other clients may wait for them.
        """
        if not self._transport.is_closing():
            self._transport.close()
            self._abort = self._shell.after(LINGER_SECONDS, self._transport.abort)
            self.cnx.closed(self._shell.now())
            self._shell.kick()

    def pause_writing(self) -> None:
        """Block the outbox: the client reads too slowly."""
        self.outbox.blocked = self.outbox.full = True

    def resume_writing(self) -> None:
        """Unblock the outbox: the client reads again."""
        self.outbox.blocked = self.outbox.full = False
        self.cnx.writable(self._shell.now())
        self._shell.kick()

    def pause_reading(self) -> None:
        """Pause reading."""
        if not self._paused and not self._transport.is_closing():
            self._paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Resume reading."""
        if self._paused and not self._transport.is_closing():
            self._paused = False
            self._transport.resume_reading()

    def forget(self) -> None:
        """Close the inherited socket in a forked child, which would outlive the parent. No other call may follow."""
        os.close(self._transport.get_extra_info("socket").fileno())

    def close(self) -> None:
        """Close after flushing."""
        self._transport.close()

    def abort(self) -> None:
        """Close immediately."""
        self._transport.abort()


def _reached(sockname: tuple[str, int] | None) -> str:
    """Return the address of a socket as another client would write it, with ``localhost`` for any loopback address."""
    if not sockname:
        return ""
    host, port = sockname[:2]
    return f"{'localhost' if is_loopback(host) else host_in_url(host)}:{port}"
