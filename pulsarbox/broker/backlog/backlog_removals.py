"""Count of the topics that are expiring or evicting messages right now, read by read."""


class BacklogRemovals:
    """The operations in progress."""

    __slots__ = ("running",)

    def __init__(self) -> None:
        self.running = 0

    def began(self) -> None:
        """Count an operation that has started."""
        self.running += 1

    def ended(self) -> None:
        """Count an operation that has ended."""
        self.running -= 1
