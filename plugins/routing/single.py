"""Routing of all messages without a key to a single partition; keyed messages go by key."""

from typing import ClassVar

from pulsarbox.plugins.contracts import Choose, Producing, Unrouted


class Single:
    """Keeps a producer's unkeyed messages in order. Source: Pulsar's SinglePartition, which picks a random partition.

    Option ``partition``: its index. By default it is derived from the topic's name, so that producers agree.
    """

    api: ClassVar = 1
    name: ClassVar = "single"

    def open(self, producing: Producing) -> Choose:
        """See Routing."""
        hash32 = producing.hash32
        told = producing.options.get("partition")
        if told is not None and not (told.isascii() and told.isdigit()):
            raise ValueError(f"invalid option partition={told}: expected a number from 0")
        of_all = hash32(producing.topic.encode()) if told is None else int(told)

        def choose(message: Unrouted, partitions: int) -> int:
            key = message.key
            return (of_all if key is None else hash32(key)) % partitions

        return choose
