"""Consumers and readers that acknowledge, request redelivery, seek, unsubscribe, close, or vanish."""

from __future__ import annotations

from typing import Any

from pulsarbox.protocol.ack_sets import bits_of, words_of
from pulsarbox.protocol.PulsarApi_pb2 import CommandAck, CommandSubscribe, KeySharedMeta, KeySharedMode, MessageIdData
from pulsarbox.storage.record import Position
from tests.simulation.actors.clients import Client
from tests.simulation.box import SimulatedBox
from tests.simulation.model.views import MessageKey, Policy, message_keys, position_of
from tests.simulation.world import World

EXCLUSIVE, FAILOVER = CommandSubscribe.Exclusive, CommandSubscribe.Failover
SHARED, KEY_SHARED = CommandSubscribe.Shared, CommandSubscribe.Key_Shared
SIDE_BY_SIDE = (SHARED, KEY_SHARED)
SLOTS = 65536


class SimulatedConsumer(Client):
    """One consumer of one subscription."""

    durable = True
    gives_back = 0.0
    """Factor that raises the rate of full redelivery requests relative to acknowledgements."""

    def __init__(
        self, world: World, box: SimulatedBox, name: str, topic: str, subscription: str, sub_type: int
    ) -> None:
        super().__init__(world, box, name)
        self.topic = topic
        self.subscription = subscription
        self.type = sub_type
        self.consumer_name = name
        self.open = False
        self.inbox: dict[Position, tuple[int, int]] = {}
        """Unacknowledged entries: message count, and a bit per remaining message."""
        self.past: list[Position] = []
        """Entries received before, used for seeks and for unexpected acknowledgements."""
        self._window = world.random.choice((1, 5, 20, 100))
        self._used = 0
        self._stingy = sub_type in SIDE_BY_SIDE and world.chance(0.3)
        """Whether permits are requested at random times rather than on receipt, which delays the consumer's own
        entries.
        """
        self._calm_acts = 0
        self._opening = 0
        self._priority = world.random.choice((0, 0, 1, 2))
        self._earliest = world.chance(0.7)
        self._restless = world.random.choice((0.0, 0.0, 0.05, 0.2)) if sub_type in SIDE_BY_SIDE else 0.0
        """Chance of closing instead of acknowledging, which moves its unacknowledged entries and its keys."""

    def connected(self) -> None:
        """See Client."""
        self._subscribe()

    def lost(self) -> None:
        """See Client."""
        self.open = False
        self._opening = 0
        self.inbox.clear()

    def _subscribe(self) -> None:
        if self.world.monotonic < self.refused_until:
            return
        if self.ready and not self.open and not self._opening:
            earliest = CommandSubscribe.Earliest if self._earliest else CommandSubscribe.Latest
            self._opening = self.request(
                "SUBSCRIBE",
                topic=self.topic,
                subscription=self.subscription,
                subType=self.type,
                consumer_id=1,
                consumer_name=self.consumer_name,
                priority_level=self._priority,
                durable=self.durable,
                initialPosition=earliest,
                **self._start(),
            )
            if not self.calm and self.world.chance(0.05):  # close it and retry before the response
                self.request("CLOSE_CONSUMER", consumer_id=1)
                self._opening = 0
                if self.world.chance(0.8):
                    self._subscribe()

    def _start(self) -> dict[str, Any]:
        return {}

    # Inbound commands

    def on(self, name: str, body: Any, payload: bytes) -> None:
        """See Client."""
        if name in ("SUCCESS", "ERROR") and body.request_id == self._opening:
            self._opening = 0
            if name == "SUCCESS":
                self.open = True
                self.inbox.clear()
                self._used = 0
                self.send("FLOW", consumer_id=1, messagePermits=self._window)
            elif self.calm:
                self.refused_until = self.world.monotonic + 2
            else:
                self.refused()
        elif name == "CLOSE_CONSUMER":
            self.open = False
            self._opening = 0
            self.inbox.clear()
        elif name == "MESSAGE" and self.open:
            self._message(body, payload)

    def _message(self, body: Any, payload: bytes) -> None:
        position = position_of(body.message_id)
        keys = message_keys(payload)
        left = bits_of(body.ack_set) or (1 << len(keys)) - 1
        self.inbox[position] = (len(keys), left)
        if not self.past or position > self.past[-1]:
            self.past.append(position)
        self._used += left.bit_count()
        self.took(position, keys)
        if self.calm or not self._stingy:
            self._ask_for_more()

    def _ask_for_more(self) -> None:
        if self._used * 2 >= self._window:
            self.send("FLOW", consumer_id=1, messagePermits=self._used)
            self._used = 0

    def took(self, position: Position, keys: list[MessageKey]) -> None:
        """Process a received entry."""

    # Steps

    def act(self) -> None:
        """See Client."""
        if not self.open:
            self._subscribe()
            return
        if not self.calm and self.world.chance(self._restless):
            self.close()
            return
        if self.calm or self.world.chance(0.3):
            self._ask_for_more()
        chance = self.world.random.random()
        self._calm_acts += self.calm
        if self._calm_acts == 20:  # retry: a failed read may have dropped unanswered acknowledgements
            self.inbox.clear()
            self.send("REDELIVER_UNACKNOWLEDGED_MESSAGES", consumer_id=1)
        elif self.calm or chance < 0.8 - self.gives_back:
            self._acknowledge()
        else:
            self._something_else(chance)

    def _something_else(self, chance: float) -> None:
        if chance < 0.84:
            self._redeliver()
        elif chance < 0.86 and self.past:
            self._seek()
        elif chance < 0.868:
            self.request("UNSUBSCRIBE", consumer_id=1)
        elif chance < 0.89:
            self.close()
        elif chance < 0.9:
            self.give_up()
        elif chance < 0.92:
            self.request("GET_LAST_MESSAGE_ID", consumer_id=1)
        elif chance < 0.93:
            self.request("CONSUMER_STATS", consumer_id=1)
        elif chance < 0.95 and self.past:
            past = self.past[-5:] if self.world.chance(0.5) else self.past  # maybe redelivered elsewhere
            self._ack([self._id(self.world.random.choice(past), 0)], CommandAck.Individual)

    def close(self) -> None:
        """Close the consumer, but not the connection."""
        self.open = False
        self.inbox.clear()
        self.request("CLOSE_CONSUMER", consumer_id=1)

    def _acknowledge(self) -> None:
        random = self.world.random
        if not self.inbox:
            return
        if self.type not in SIDE_BY_SIDE and not self.calm and random.random() < 0.4:
            position = random.choice(list(self.inbox))
            left = self._some_left(position)
            self._ack([self._id(position, left)], CommandAck.Cumulative)
            for each in [p for p in self.inbox if p < position]:
                del self.inbox[each]
            self._left(position, left)
            return
        count = len(self.inbox) if self.calm else random.choice((1, 1, 2, 5))
        chosen = random.sample(list(self.inbox), min(count, len(self.inbox)))
        ids = []
        for position in chosen:
            left = 0 if self.calm else self._some_left(position)
            ids.append(self._id(position, left))
            self._left(position, left)
        self._ack(ids, CommandAck.Individual)

    def _some_left(self, position: Position) -> int:
        count, left = self.inbox[position]
        if count == 1 or self.world.chance(0.6):
            return 0
        return left & self.world.random.getrandbits(count)

    def _left(self, position: Position, left: int) -> None:
        if left:
            self.inbox[position] = (self.inbox[position][0], left)
        else:
            self.inbox.pop(position, None)

    def _id(self, position: Position, left: int) -> MessageIdData:
        words = words_of(left) if left else ()
        return MessageIdData(ledgerId=position.ledger_id, entryId=position.entry_id, ack_set=words)

    def _ack(self, ids: list[MessageIdData], ack_type: int) -> None:
        if self.calm or self.world.chance(0.5):
            self.request("ACK", consumer_id=1, ack_type=ack_type, message_id=ids)
        else:
            self.send("ACK", consumer_id=1, ack_type=ack_type, message_id=ids)

    def _redeliver(self) -> None:
        ids = []
        if self.type in SIDE_BY_SIDE and self.inbox and self.world.chance(0.7):
            chosen = self.world.random.sample(list(self.inbox), min(3, len(self.inbox)))
            ids = [self._id(position, 0) for position in chosen]
            for position in chosen:
                del self.inbox[position]
        else:
            self.inbox.clear()
        self.send("REDELIVER_UNACKNOWLEDGED_MESSAGES", consumer_id=1, message_ids=ids)

    def _seek(self) -> None:
        random = self.world.random
        how = random.random()
        if how < 0.3:
            self.request("SEEK", consumer_id=1, message_publish_time=self.world.real.wall - random.randrange(3000))
        elif how < 0.4:
            edge = random.choice((MessageIdData(ledgerId=2**64 - 1, entryId=2**64 - 1), _LATEST))
            self.request("SEEK", consumer_id=1, message_id=edge)
        else:
            self.request("SEEK", consumer_id=1, message_id=self._id(random.choice(self.past), 0))


_LATEST = MessageIdData(ledgerId=2**63 - 1, entryId=2**63 - 1)


class SimulatedReader(SimulatedConsumer):
    """A non-durable reader: resumes after the last entry it received, and acknowledges as it reads."""

    durable = False

    def _start(self) -> dict[str, Any]:
        if not self.past:
            return {}
        return {"start_message_id": MessageIdData(ledgerId=self.past[-1].ledger_id, entryId=self.past[-1].entry_id)}


class KeySharedConsumer(SimulatedConsumer):
    """A Key_Shared consumer. Sticky hash ranges of several consumers may overlap or leave gaps."""

    def __init__(
        self,
        world: World,
        box: SimulatedBox,
        name: str,
        topic: str,
        subscription: str,
        policy: Policy,
        share: tuple[int, int],
    ) -> None:
        super().__init__(world, box, name, topic, subscription, KEY_SHARED)
        self._policy = policy
        self._share = share
        """Index and number of the equal parts of the hash range; the consumer usually requests its own part."""
        if world.chance(0.2):
            self.consumer_name = "same"

    def _start(self) -> dict[str, Any]:
        random = self.world.random
        sticky, out_of_order = self._policy
        if not self.calm and random.random() < 0.03:
            sticky = not sticky
        if not sticky and not out_of_order and random.random() < 0.5:
            return {}
        mode = KeySharedMode.STICKY if sticky else KeySharedMode.AUTO_SPLIT
        meta = KeySharedMeta(keySharedMode=mode, allowOutOfOrderDelivery=out_of_order)
        if sticky:
            number, parts = self._share
            if random.random() < 0.1:
                number, parts = random.randrange(5), 5
            first, last = SLOTS * number // parts, SLOTS * (number + 1) // parts - 1
            middle = random.choice((first, (first + last) // 2))
            meta.hashRanges.add(start=first, end=middle)
            meta.hashRanges.add(start=min(middle + random.choice((1, 1, 2000)), last), end=last)
        return {"keySharedMeta": meta}


class Keeper(SimulatedConsumer):
    """Creates a subscription and never consumes from it, which retains the whole backlog."""

    def on(self, name: str, body: Any, payload: bytes) -> None:
        """See Client."""
        if name == "SUCCESS" and body.request_id == self._opening:
            self.stopped = True
            self.give_up()
        else:
            super().on(name, body, payload)

    def act(self) -> None:
        """See Client."""
        self._subscribe()


class Returner(SimulatedConsumer):
    """Closes and resubscribes at once, on the same connection and with the same consumer ID."""

    pace = 0.1

    def act(self) -> None:
        """See Client."""
        if self.calm:
            super().act()
            return
        if self.open:
            self.close()
        self._subscribe()


class Verifier(SimulatedConsumer):
    """Reads a topic from its beginning at the end of a run."""

    pace = 0.2

    def __init__(self, world: World, box: SimulatedBox, topic: str, *, durable: bool = True) -> None:
        name = "verification" if durable else "witness"
        super().__init__(world, box, "verifier", topic, name, EXCLUSIVE)
        self.durable = durable
        self._earliest = True
        self._window = 1000
        self.entries: dict[Position, list[MessageKey]] = {}

    def act(self) -> None:
        """See Client."""
        if not self.open:
            self._subscribe()

    def took(self, position: Position, keys: list[MessageKey]) -> None:
        """See SimulatedConsumer."""
        self.entries[position] = keys
