"""Routing to the partition with the smallest backlog, so that slow consumers get less; keyed messages go by key."""

from typing import ClassVar

from pulsarbox.plugins.contracts import Choose, Producing, Unrouted


class LeastBacklog:
    """Ties go to the least recently chosen partition. Messages sent since the last backlog update count as waiting."""

    api: ClassVar = 1
    name: ClassVar = "least-backlog"

    def open(self, producing: Producing) -> Choose:
        """See Routing."""
        hash32, backlogs = producing.hash32, producing.backlogs
        waiting: list[int] = []
        told: list[int] = []
        batch = -1
        chosen = 0

        def choose(message: Unrouted, partitions: int) -> int:
            nonlocal waiting, told, batch, chosen
            if message.key is not None:
                return hash32(message.key) % partitions
            if message.batch != batch or chosen >= partitions:
                batch = message.batch
                now = list(backlogs())[:partitions]
                now += [0] * (partitions - len(now))
                if now != told:
                    waiting, told = list(now), now
                after = chosen + 1
                chosen = min(range(partitions), key=lambda each: (waiting[each], (each - after) % partitions))
            waiting[chosen] += 1
            return chosen

        return choose
