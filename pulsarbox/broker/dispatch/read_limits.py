"""How much a dispatcher takes at a time; changed while it runs."""

from pulsarbox.config import Settings


class Bounds:
    """What all dispatchers of a broker go by."""

    __slots__ = ("read_bytes", "read_entries", "turn_entries")

    def __init__(self, settings: Settings) -> None:
        self.take(settings)

    def take(self, settings: Settings) -> None:
        """Go by these settings from now on."""
        self.read_entries = settings.dispatcherMaxReadBatchSize
        """Entries of one read."""
        self.read_bytes = settings.dispatcherMaxReadSizeBytes
        """Bytes of one read."""
        self.turn_entries = settings.dispatcherMaxRoundRobinBatchSize
        """Entries that a consumer of a Shared subscription gets before it is another one's turn."""
