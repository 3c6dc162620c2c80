"""Read limits of dispatchers; dynamic."""

from typing import Final

from pulsarbox.config import Settings

RETRY_SECONDS: Final = 1.0
"""Pause after a failed read."""


class ReadLimits:
    """Limits that all dispatchers of a broker share."""

    __slots__ = ("read_bytes", "read_entries", "turn_entries")

    def __init__(self, settings: Settings) -> None:
        self.apply_settings(settings)

    def apply_settings(self, settings: Settings) -> None:
        """Apply changed settings."""
        self.read_entries = settings.dispatcherMaxReadBatchSize
        """Entries per read."""
        self.read_bytes = settings.dispatcherMaxReadSizeBytes
        """Bytes per read."""
        self.turn_entries = settings.dispatcherMaxRoundRobinBatchSize
        """Entries per turn of a consumer on a Shared subscription."""
