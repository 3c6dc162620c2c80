"""In turn, a batch at a time; by the key where there is one: the default of Pulsar's clients."""

from typing import ClassVar

from pulsarbox.plugins.contracts import Choose, Producing, Unrouted


class RoundRobin:
    """Source: https://pulsar.apache.org/docs/4.2.x/concepts-messaging/#routing-modes, RoundRobinPartition."""

    api: ClassVar = 1
    name: ClassVar = "round-robin"

    def open(self, producing: Producing) -> Choose:
        """See Routing. It begins with the first partition."""
        hash32 = producing.hash32

        def choose(message: Unrouted, partitions: int) -> int:
            key = message.key
            return (message.batch if key is None else hash32(key)) % partitions

        return choose
