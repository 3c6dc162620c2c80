"""Clients that publish, acknowledge, begin and end transactions, with duplicate, late and missing ends; and a sink
driver that commits epochs repeatedly.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, Final

from pulsarbox.broker.security.principal import Principal
from pulsarbox.clock import Now
from pulsarbox.errors import PulsarBoxError
from pulsarbox.protocol.PulsarApi_pb2 import MessageIdData, ServerError, Subscription, TxnAction
from pulsarbox.storage.catalog import epoch_key
from pulsarbox.storage.transactions import TxnId
from tests.simulation.actors.clients import Client
from tests.simulation.actors.consumers import EXCLUSIVE, FAILOVER, KEY_SHARED, SHARED, SimulatedConsumer
from tests.simulation.actors.producers import Sending, SimulatedProducer
from tests.simulation.box import SimulatedBox
from tests.simulation.model.history import Violation
from tests.simulation.model.pledges import COMMITTED, OPEN
from tests.simulation.rules.once_checker import TRANSACTING
from tests.simulation.world import World

if TYPE_CHECKING:
    from tests.simulation.model.model import Model

LONGEST_SECONDS: Final = 15
"""Longest transaction timeout in seconds, short enough that all transactions end within a run."""
SINKS: Final = ("public/default/one", "public/default/two")


class Bank:
    """Transactions known to clients. Clients do not learn that another client has ended one."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.known: list[TxnId] = []
        self.rate = random.choice((0.4, 0.8, 1.0))
        """Share of operations that use a transaction."""

    def choose(self) -> TxnId | None:
        """Return a known transaction, None, or rarely an ID that was never assigned."""
        random = self.random
        if not self.known or random.random() >= self.rate:
            return None
        if random.random() < 0.01:
            return TxnId(0, random.randrange(1, 10**6))
        return random.choice(self.known[-4:])


def bits(txn: TxnId) -> dict[str, int]:
    """Return the ID fields of a transaction command."""
    return {"txnid_most_bits": txn.most, "txnid_least_bits": txn.least}


class Teller(Client):
    """A client that begins and ends transactions."""

    pace = 0.08

    def __init__(self, world: World, box: SimulatedBox, name: str, bank: Bank, topics: tuple[str, ...]) -> None:
        super().__init__(world, box, name)
        self._bank = bank
        self._topics = topics
        self._asked: dict[int, tuple[TxnId, int]] = {}
        """END_TXN requests without a response."""
        self._unheard: list[tuple[TxnId, int]] = []
        """END_TXN requests to resend because the connection was lost before the response."""
        self._most = world.random.choice((1, 3, 8))
        self.again = 0

    def connected(self) -> None:
        """See Client."""
        self.request("TC_CLIENT_CONNECT_REQUEST", tc_id=0)

    def lost(self) -> None:
        """See Client."""
        self._unheard += self._asked.values()
        self._asked.clear()

    def act(self) -> None:
        """See Client."""
        random, known = self.world.random, self._bank.known
        if self._unheard:
            self.again += 1
            self._end(*self._unheard.pop())
        elif self.calm:
            if known:
                self._end(known[0], TxnAction.COMMIT)
        elif len(known) < self._most and random.random() < 0.6:
            timeout = random.choice((200, 2_000, 2_000, 10_000, 0))
            self.request("NEW_TXN", txn_ttl_seconds=timeout, tc_id=0)
        elif known:
            self._go_on(random.choice(known), random.random())

    def _go_on(self, txn: TxnId, chance: float) -> None:
        topic = self.world.random.choice(self._topics)
        if chance < 0.2:
            self.request("ADD_PARTITION_TO_TXN", partitions=[topic], **bits(txn))
        elif chance < 0.4:
            named = [Subscription(topic=topic, subscription="sub-1")]
            self.request("ADD_SUBSCRIPTION_TO_TXN", subscription=named, **bits(txn))
        elif chance < 0.65:
            self._end(txn, TxnAction.COMMIT)
        elif chance < 0.8:
            self._end(txn, TxnAction.ABORT)
        elif chance < 0.84:
            self._end(txn, TxnAction.COMMIT)
            self._end(txn, self.world.random.choice((TxnAction.COMMIT, TxnAction.ABORT)))
        elif chance < 0.86:
            self._end(TxnId(0, self.world.random.randrange(10**6)), TxnAction.COMMIT)
        elif chance < 0.88 and len(self._bank.known) > 1:
            self._bank.known.remove(txn)  # abandoned: the timeout aborts it

    def _end(self, txn: TxnId, action: int) -> None:
        self._asked[self.request("END_TXN", txn_action=action, **bits(txn))] = txn, action

    def on(self, name: str, body: Any, payload: bytes) -> None:
        """See Client."""
        if name == "NEW_TXN_RESPONSE" and not body.HasField("error"):
            self._bank.known.append(TxnId(body.txnid_most_bits, body.txnid_least_bits))
        elif name == "END_TXN_RESPONSE":
            ended = self._asked.pop(body.request_id, None)
            if ended is not None and ended[0] in self._bank.known:
                self._bank.known.remove(ended[0])
            if ended is not None and not self.calm and self.world.chance(0.05):
                self._end(*ended)  # send a duplicate
            elif ended is not None and self.world.chance(0.1):
                self._bank.known.insert(0, ended[0])  # other clients still use it


class TransactingProducer(SimulatedProducer):
    """Publishes with and without transactions."""

    def __init__(self, world: World, box: SimulatedBox, number: int, topic: str, bank: Bank) -> None:
        name = f"{TRANSACTING}-{number}-{topic[-1]}"
        super().__init__(world, box, name, topic, named=True, padding=world.random.choice((0, 10, 200)))
        self.chunking = 0.0
        self._bank = bank

    def _next(self, size: int, chunk: int = 0, chunks: int = 0) -> Sending:
        sending = super()._next(size, chunk, chunks)
        self._unsettled[-1] = sending = sending._replace(txn=self._bank.choose())
        return sending

    def on(self, name: str, body: Any, payload: bytes) -> None:
        """See Client. Drop a message rejected because its transaction has ended."""
        if name == "SEND_ERROR" and body.error == ServerError.NotAllowedError:
            self._unsettled = type(self._unsettled)(
                each for each in self._unsettled if each.sequence_id != body.sequence_id
            )
        super().on(name, body, payload)


class TransactingConsumer(SimulatedConsumer):
    """Acknowledges with and without transactions."""

    def __init__(
        self, world: World, box: SimulatedBox, name: str, topic: str, sub: tuple[str, int], bank: Bank
    ) -> None:
        super().__init__(world, box, name, topic, *sub)
        self._bank = bank

    def _ack(self, ids: list[MessageIdData], ack_type: int) -> None:
        txn = None if self.calm else self._bank.choose()
        if txn is None:
            super()._ack(ids, ack_type)
        else:
            self.request("ACK", consumer_id=1, ack_type=ack_type, message_id=ids, **bits(txn))


class Driver:
    """A sink driver that commits epochs with open transactions; it has its own random generator."""

    principal: Principal | None = None

    def __init__(self, box: SimulatedBox, model: Model, bank: Bank, seed: int) -> None:
        self._box = box
        self._model = model
        self._bank = bank
        self._random = Random(f"{seed} driver")
        self._told: dict[tuple[str, int], set[TxnId]] = {}
        """Acknowledged epochs, and the transactions that each committed."""
        self.stopped = False

    def start(self) -> None:
        """Schedule the first commit."""
        self._act()

    def _act(self) -> None:
        box, random = self._box, self._random
        if self.stopped:
            return
        box.world.after(random.expovariate(1 / 0.3), self._act)
        if not box.running:
            return
        sink = random.choice(SINKS)
        row = box.broker.epochs.last(sink)
        last = -1 if row is None else row["epoch"]
        epoch = max(0, last + random.choice((0, 0, 1, 1, 1, 2, -1)))
        known = self._bank.known[-6:]
        self._commit(sink, epoch, random.sample(known, min(len(known), random.randrange(4))))
        box.turn()

    def _commit(self, sink: str, epoch: int, txns: list[TxnId]) -> None:
        box, life, pledges = self._box, self._box.life, self._model.pledges
        views = [pledges.of(each) for each in txns]

        def told(committed: bool, now: Now) -> None:
            if not box.running or box.life != life:
                return
            pledges.counts["epoch" if committed else "epoch again"] += 1
            row = pledges.rows.get(epoch_key(sink)) or {}
            _check(row.get("epoch", -1) >= epoch, sink, epoch, "is published, and durable is", row)
            if committed:
                _check((sink, epoch) not in self._told, sink, epoch, "is published twice")
                self._told[sink, epoch] = set(txns)
                left = [each.id for each in views if each.state != COMMITTED]
                _check(not left, sink, epoch, "is published without", left)

        for view in views:
            view.asked.update((COMMITTED, "ABORTED"))
        box.world.note("epoch", sink, epoch, *txns)
        try:
            box.broker.epochs.commit(sink, epoch, txns, self, told, box.world.now)
        except PulsarBoxError as error:
            box.world.note("no epoch", error)

    def judge(self) -> None:
        """Check that the last acknowledged epochs are durable and their transactions are committed."""
        catalog, pledges = self._box.broker.catalog, self._model.pledges
        for (sink, epoch), txns in self._told.items():
            row = catalog.get(epoch_key(sink)) or {}
            _check(row.get("epoch", -1) >= epoch, sink, "is at", row, "and was at", epoch)
            wrong = [txn for txn in txns if pledges.of(txn).state != COMMITTED]
            _check(not wrong, sink, epoch, "was published, without", wrong)
        _check(all(txn.state != OPEN for txn in pledges.txns.values() if txn.ends_at), "some are open")


def _check(holds: bool, *what: object) -> None:
    if not holds:
        raise Violation("epochs", " ".join(map(str, what)))


class Transacting:
    """The additional clients and the driver of a run with transactions."""

    def __init__(self, world: World, box: SimulatedBox, model: Model, topics: tuple[str, ...]) -> None:
        random = world.random
        self.bank = Bank(Random(f"{world.seed} bank"))
        self.driver = Driver(box, model, self.bank, world.seed)
        self._model = model
        tellers = [Teller(world, box, f"teller-{i}", self.bank, topics) for i in range(random.choice((1, 2, 3)))]
        self.clients: list[Client] = [*tellers]
        for topic in topics:
            for i in range(random.choice((1, 2))):
                self.clients.append(TransactingProducer(world, box, i, topic, self.bank))
            for kind in (EXCLUSIVE, FAILOVER, SHARED, KEY_SHARED):
                for i in range(random.choice((0, 1, 1, 2)) if kind != EXCLUSIVE else random.choice((0, 1))):
                    sub = random.choice((f"txn-{kind}", f"sub-{kind}")), kind
                    name = f"taker-{topic[-1]}-{kind}-{i}"
                    self.clients.append(TransactingConsumer(world, box, name, topic, sub, self.bank))

    def start(self) -> None:
        """Start the driver."""
        self.driver.start()

    def calm_down(self) -> None:
        """Stop committing epochs; tellers commit their known transactions."""
        self.driver.stopped = True

    def judge(self) -> None:
        """See Driver."""
        self.driver.judge()

    def counts(self) -> dict[str, int]:
        """Return the number of transaction events."""
        again = sum(each.again for each in self.clients if isinstance(each, Teller))
        return self._model.pledges.counts | {"txn answer lost": again}
