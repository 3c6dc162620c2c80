"""One partition for all messages of a producer that have no key, by the key where there is one."""

from typing import ClassVar

from pulsarbox.plugins.contracts import Choose, Producing, Unrouted


class Single:
    """Order of all that has no key. Source: Pulsar's SinglePartition, which takes a partition by chance.

    Option ``partition``: which one it is. Without it the topic's name decides, so that producers agree.
    """

    api: ClassVar = 1
    name: ClassVar = "single"

    def open(self, producing: Producing) -> Choose:
        """See Routing."""
        hash32 = producing.hash32
        told = producing.options.get("partition")
        if told is not None and not (told.isascii() and told.isdigit()):
            raise ValueError(f"partition is a number from 0, not {told!r}")
        of_all = hash32(producing.topic.encode()) if told is None else int(told)

        def choose(message: Unrouted, partitions: int) -> int:
            key = message.key
            return (of_all if key is None else hash32(key)) % partitions

        return choose
