"""Round robin, a batch at a time; keyed messages go by key. The default of Pulsar's clients."""

from typing import ClassVar

from pulsarbox.plugins.contracts import Choose, Producing, Unrouted


class RoundRobin:
    """Source: https://pulsar.apache.org/docs/4.2.x/concepts-messaging/#routing-modes, RoundRobinPartition."""

    api: ClassVar = 1
    name: ClassVar = "round-robin"

    def open(self, producing: Producing) -> Choose:
        """See Routing. Starts with the first partition."""
        hash32 = producing.hash32

        def choose(message: Unrouted, partitions: int) -> int:
            key = message.key
            return (message.batch if key is None else hash32(key)) % partitions

        return choose
