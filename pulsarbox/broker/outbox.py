"""What a connection is to send: the core's only way out to a client."""


class Outbox:
    """Bytes for one client, gathered until the shell takes them, once a turn.

    ``full`` is the backpressure: the dispatcher stops at it. It is set when more than ``limit`` bytes wait here or
    when the shell says so; the shell clears it and calls ``cnx.writable``. Replies are always taken.
    """

    __slots__ = ("_waiting", "blocked", "close_reason", "full", "limit", "parts", "size")

    def __init__(self, waiting: "list[Outbox]", limit: int) -> None:
        self._waiting = waiting
        self.limit = limit
        self.parts: list[bytes] = []
        self.size = 0
        self.full = False
        self.blocked = False
        """The shell's own word: the transport takes no more."""
        self.close_reason: str | None = None
        """Why the connection is to be closed once everything is sent; None while it stays open."""

    def send(self, data: bytes) -> None:
        """Send one frame."""
        parts = self.parts
        if not parts:
            self._waiting.append(self)
        parts.append(data)
        self.size += len(data)

    def send_parts(self, parts: list[bytes], size: int) -> None:
        """Send frames given in pieces, ``size`` bytes altogether."""
        if not self.parts:
            self._waiting.append(self)
        self.parts += parts
        self.size += size
        if self.size > self.limit:
            self.full = True

    def close(self, reason: str) -> None:
        """Close the connection after what is sent so far."""
        if self.close_reason is None:
            self.close_reason = reason
            if not self.parts:
                self._waiting.append(self)

    def take(self) -> bytes:
        """Everything to be written now."""
        data = self.parts[0] if len(self.parts) == 1 else b"".join(self.parts)
        self.parts.clear()
        self.size = 0
        self.full = self.blocked
        return data
