"""By the key alone: messages without one count as messages with an empty key, and so keep their order."""

from typing import ClassVar

from pulsarbox.plugins.contracts import Choose, Producing, Unrouted


class ByKey:
    """For topics where every message should have a key."""

    api: ClassVar = 1
    name: ClassVar = "key"

    def open(self, producing: Producing) -> Choose:
        """See Routing."""
        hash32 = producing.hash32

        def choose(message: Unrouted, partitions: int) -> int:
            return hash32(message.key or b"") % partitions

        return choose
