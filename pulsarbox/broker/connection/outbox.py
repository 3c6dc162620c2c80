"""The outbox of a connection: the core's only way to send to a client."""


class Outbox:
    """Bytes for one client, gathered until the shell takes them, once a turn.

    ``full`` is the backpressure: it stops the dispatcher. It is set when more than ``limit`` bytes are waiting, or by
    the shell, which also clears it and calls ``cnx.writable``. Replies are always accepted.
    """

    __slots__ = ("_waiting", "blocked", "close_reason", "full", "limit", "parts", "size")

    def __init__(self, waiting: "list[Outbox]", limit: int) -> None:
        self._waiting = waiting
        self.limit = limit
        self.parts: list[bytes] = []
        self.size = 0
        self.full = False
        self.blocked = False
        """Set by the shell while the transport accepts no more bytes."""
        self.close_reason: str | None = None
        """Why to close the connection once everything is sent; None while it stays open."""

    def send(self, data: bytes) -> None:
        """Queue one frame."""
        parts = self.parts
        if not parts:
            self._waiting.append(self)
        parts.append(data)
        self.size += len(data)

    def send_parts(self, parts: list[bytes], size: int) -> None:
        """Queue frames in pieces, ``size`` bytes altogether."""
        if not self.parts:
            self._waiting.append(self)
        self.parts += parts
        self.size += size
        if self.size > self.limit:
            self.full = True

    def close(self, reason: str) -> None:
        """Close the connection after everything queued so far is sent."""
        if self.close_reason is None:
            self.close_reason = reason
            if not self.parts:
                self._waiting.append(self)

    def take(self) -> bytes:
        """Remove and return all queued bytes."""
        data = self.parts[0] if len(self.parts) == 1 else b"".join(self.parts)
        self.parts.clear()
        self.size = 0
        self.full = self.blocked
        return data
