"""Routing by key alone; messages without a key are routed as with an empty key, and so stay in order."""

from typing import ClassVar

from pulsarbox.plugins.contracts import Choose, Producing, Unrouted


class ByKey:
    """For topics on which every message should have a key."""

    api: ClassVar = 1
    name: ClassVar = "key"

    def open(self, producing: Producing) -> Choose:
        """See Routing."""
        hash32 = producing.hash32

        def choose(message: Unrouted, partitions: int) -> int:
            return hash32(message.key or b"") % partitions

        return choose
