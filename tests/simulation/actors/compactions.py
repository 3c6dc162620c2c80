"""An operator that starts and cancels compactions, readers of the compacted view, and their expected results.

The model does not track the readers' connections: the log alone determines the entries they must receive.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from pulsarbox.errors import Conflict
from pulsarbox.protocol.PulsarApi_pb2 import MessageIdData
from pulsarbox.storage.record import Position
from tests.simulation.actors.clients import Client
from tests.simulation.actors.consumers import EXCLUSIVE, FAILOVER
from tests.simulation.model.history import Violation
from tests.simulation.model.tables import Tables
from tests.simulation.model.views import message_keys, position_of

if TYPE_CHECKING:
    from tests.simulation.box import SimulatedBox
    from tests.simulation.world import World

AGAIN_SECONDS = 0.15
STEP_ENTRIES = 5
"""Entries per compaction step, small enough that a few dozen entries need several steps."""


def _check(holds: bool, *what: object) -> None:
    if not holds:
        raise Violation("compacted", " ".join(map(str, what)))


class CompactedReader(Client):
    """A reader of the compacted view and the log behind it; disconnects at random and restarts from the beginning."""

    unseen = True
    pace = 0.2

    def __init__(self, world: World, box: SimulatedBox, name: str, topic: str, tables: Tables, random: Random) -> None:
        super().__init__(world, box, name)
        self.topic = topic
        self._tables = tables
        self._random = random
        self._type = random.choice((EXCLUSIVE, FAILOVER))
        self._number = 0
        self.got: dict[Position, str | None] = {}
        """Entries received since the last start, with their keys."""

    def connected(self) -> None:
        """See Client."""
        self._number += 1
        self.got.clear()
        earliest = MessageIdData(ledgerId=2**64 - 1, entryId=2**64 - 1)
        self.request("SUBSCRIBE", topic=self.topic, subscription=f"{self.name}-{self._number}", subType=self._type,
                     consumer_id=1, durable=False, read_compacted=True, start_message_id=earliest)  # fmt: skip

    def act(self) -> None:
        """See Client."""
        if not self.calm and self._random.random() < 0.05:
            self.give_up()
        else:
            self.send("FLOW", consumer_id=1, messagePermits=1000 if self.calm else self._random.choice((1, 5, 50)))

    def on(self, name: str, body: Any, payload: bytes) -> None:
        """See Client."""
        if name in ("CLOSE_CONSUMER", "ERROR"):
            self.give_up()
        if name != "MESSAGE":
            return
        position = position_of(body.message_id)
        known = self._tables.log.get(self.topic, {}).get(position)
        _check(known is not None, self.name, "gets", position, "which was never stored")
        assert known is not None
        _check(not self._tables.hidden(self.topic, position), self.name, "gets", position, "which is not committed")
        _check(message_keys(payload) == known[1], self.name, "gets another message at", position)
        last = next(reversed(self.got), Position(-1, -1))
        _check(position > last, self.name, "gets", position, "behind", last)
        self.got[position] = known[0]


class Compactor:
    """The compaction operator. A separate random generator preserves the histories of other seeds."""

    def __init__(self, box: SimulatedBox, topics: tuple[str, ...], tables: Tables, seed: int) -> None:
        self._box = box
        self._topics = topics
        self._tables = tables
        self._random = random = Random(f"{seed} compactor")
        world = box.world
        self.readers = [
            CompactedReader(world, box, f"table-{i}", random.choice(topics), tables, random)
            for i in range(random.choice((1, 2)))
        ]
        self.done = {"compacted": 0, "compaction cancelled": 0, "compaction cut off": 0}
        self.stopped = False

    def start(self) -> None:
        """Start the readers and schedule compactions."""
        for reader in self.readers:
            reader.start()
        self._act()

    def _act(self) -> None:
        box, random = self._box, self._random
        if self.stopped:
            return
        box.world.after(random.expovariate(1 / AGAIN_SECONDS), self._act)
        topic = box.topic(random.choice(self._topics)) if box.running else None
        if topic is None:
            return
        if topic.compaction.run is not None and random.random() < 0.2:
            box.world.note("the compaction is cancelled of", topic.name)
            topic.compaction.cancel(box.world.now)
            self.done["compaction cancelled"] += 1
        else:
            self._compact(str(topic.name))
        box.turn()

    def _compact(self, name: str) -> None:
        topic = self._box.topic(name)
        if topic is None:
            return
        try:
            topic.compaction.start(self._box.world.now)
        except Conflict:
            return
        if topic.compaction.run is not None:
            topic.compaction.run.step_entries = STEP_ENTRIES
            self._box.world.note("compaction of", name)

    def crashes(self) -> None:
        """Count the compactions that a power failure is about to cut off."""
        self.done["compaction cut off"] += self._count()

    def _count(self) -> int:
        """Return the number of running compactions, and add the completed ones to ``done``."""
        if not self._box.running:
            return 0
        records = self._box.broker.compactions.records.values()
        self.done["compacted"] += sum(record.succeeded for record in records)
        return sum(
            topic is not None and topic.compaction.run is not None for topic in map(self._box.topic, self._topics)
        )

    def calm_down(self) -> None:
        """Stop compactions and readers."""
        self.stopped = True
        for reader in self.readers:
            reader.stopped = True
            reader.give_up()

    def judge(self) -> None:
        """Compact each topic a last time, and check that a reader receives exactly the latest entry of every key."""
        box, world = self._box, self._box.world
        for name in self._topics:
            reader = CompactedReader(world, box, f"witness of {name}", name, self._tables, self._random)
            reader.calm = True
            reader.start()
            world.run(until=world.monotonic + 3)
            self._compact(name)
            box.turn()
            world.run(until=world.monotonic + 20)
            topic = box.topic(name)
            assert topic is not None
            _check(topic.compaction.run is None, "liveness: the compaction comes to no end of", name)
            reader.give_up()
            world.run(until=world.monotonic + 4)
            self._compare(name, reader.got, topic.compaction.view.horizon if topic.compaction.view else None)
            reader.stopped = True
            reader.give_up()
        self._count()

    def _compare(self, name: str, got: dict[Position, str | None], horizon: Position | None) -> None:
        known = {key: at for at, key in got.items() if key is not None}
        right = self._tables.latest(name)
        wrong = {key for key in known.keys() | right.keys() if known.get(key) != right.get(key)}
        _check(
            not wrong, name, "its readers know", [(key, known.get(key), right.get(key)) for key in sorted(wrong)][:3]
        )
        if horizon is not None:
            view = {at for at in got if at <= horizon}
            wanted = set(self._tables.latest(name, horizon).values())
            _check(view == wanted, name, "its view up to", horizon, "differs:", sorted(view ^ wanted)[:3])
