"""Who may produce on a topic: names, access modes, and the topic's epoch (PIP-68).

Shared producers stand beside each other. One that wants the topic for itself gets it when nobody is there
(Exclusive), when its turn comes (WaitForExclusive), or at once, by fencing out all others (ExclusiveWithFencing). Each
time the topic is given to one alone its epoch grows by one, durably, before that one is told. A producer that comes
back names the epoch it was given: if the topic has moved on, somebody else had it in between, and it stays out.
"""

from collections.abc import Iterator
from typing import Protocol

from pulsarbox.broker.core import Core
from pulsarbox.broker.opening import closed_early
from pulsarbox.broker.topic.deduplication import Deduplication
from pulsarbox.broker.topic.producer import Producer
from pulsarbox.clock import Now
from pulsarbox.errors import NamingError, ProducerBusy, ProducerFenced, PulsarBoxError, ServiceNotReady
from pulsarbox.names import TopicName
from pulsarbox.protocol.PulsarApi_pb2 import ProducerAccessMode
from pulsarbox.storage.catalog import topic_key


class Claim(Protocol):
    """A producer that wants to produce, and whoever is to hear what becomes of it."""

    producer: Producer

    def admitted(self, now: Now) -> None:
        """It may produce as soon as the rows written so far, the topic's epoch among them, are durable."""

    def queued(self, now: Now) -> None:
        """It waits until the topic is free."""

    def refused(self, error: PulsarBoxError, now: Now) -> None:
        """It may not, as turns out after it was made to wait."""


class Producers:
    """The producers of one topic, and those that wait to be."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self.epoch: int | None = None
        """Grows each time the topic is given to one producer alone; None while that has never happened."""
        self.has_chunks = False
        """Whether producers have sent chunks of larger messages since the topic came into memory."""
        self._present: dict[str, Producer] = {}
        self._holder: Producer | None = None
        """The one that has the topic for itself."""
        self._waiting: dict[Producer, Claim] = {}
        """Those that wait for the topic to be free, in the order in which they came."""
        self._checking: dict[Producer, Claim] = {}
        """Those that want a name whose owner's connection may be dead."""

    def __iter__(self) -> Iterator[Producer]:
        """The producers that are in."""
        return iter(list(self._present.values()))

    def __len__(self) -> int:
        """The number of those that are in."""
        return len(self._present)

    def __contains__(self, who: object) -> bool:
        """Whether a producer is in, or one of that name."""
        return who in self._present or (isinstance(who, Producer) and self._present.get(who.name) is who)

    @property
    def waiting(self) -> int:
        """The number of those that wait for the topic to be free."""
        return len(self._waiting)

    @property
    def claims(self) -> list[Claim]:
        """Of those that wait for the topic to be free, or for their name."""
        return [*self._waiting.values(), *self._checking.values()]

    @property
    def unused(self) -> bool:
        """Whether nobody is in and nobody wants to be."""
        return not (self._present or self._waiting or self._checking)

    def add(self, claim: Claim, now: Now) -> None:
        """Let a producer in, or make it wait; the claim hears of it, before this returns or later.

        Raises ProducerFenced, ProducerBusy; NamingError where a connection has the name twice.
        """
        producer = claim.producer
        mode = producer.access.mode
        if mode == ProducerAccessMode.Shared:
            self._add_shared(claim, now)
        elif mode == ProducerAccessMode.ExclusiveWithFencing:
            # Before anybody is fenced out: one that was fenced itself must not do it to its successor.
            self._check_epoch(producer)
            self._fence_all(now)
            self._give(claim, now)
        elif mode == ProducerAccessMode.WaitForExclusive:
            self._check_epoch(producer)
            if self._present:
                self._waiting[producer] = claim
                claim.queued(now)
            else:
                self._give(claim, now)
        else:
            if self._holder is not None or self._waiting:
                raise ProducerFenced(self._exclusive_text())
            if self._present:
                raise ProducerFenced("Topic has existing shared producers")
            self._check_epoch(producer)
            self._give(claim, now)

    def remove(self, producer: Producer, now: Now, why: PulsarBoxError | None = None) -> None:
        """Remove a producer, or refuse its claim if it still waits. The next waiting producer may get the topic.

        ``why``: the reason for which a claim is refused, by default that its client has closed the producer.
        """
        claim = self._waiting.pop(producer, None) or self._checking.pop(producer, None)
        if claim is not None:
            claim.refused(why or closed_early("producer"), now)
        if self._present.get(producer.name) is not producer:
            return
        del self._present[producer.name]
        self._went(producer, now)
        if self._holder is producer:
            self._holder = None
        while self._waiting and not self._present:
            claim = self._waiting.pop(next(iter(self._waiting)))
            try:
                self._check_epoch(claim.producer)
            except ProducerFenced as error:
                claim.refused(error, now)
            else:
                self._give(claim, now)

    def close(self, now: Now, refusal: PulsarBoxError | None = None) -> None:
        """The topic closes: its producers are told to come back, those that wait get ``refusal`` (or: try again)."""
        claims = self.claims
        self._waiting.clear()
        self._checking.clear()
        for claim in claims:
            claim.refused(refusal or ServiceNotReady("Topic is temporarily unavailable"), now)
        for producer in self:
            producer.disconnect(now)

    def _add_shared(self, claim: Claim, now: Now) -> None:
        if self._holder is not None or self._waiting:
            raise ProducerBusy(self._exclusive_text())
        producer = claim.producer
        other = self._present.get(producer.name)
        if other is None:
            self._admit(claim, now)
        else:
            error = NamingError(f"Producer with name '{producer.name}' is already connected to topic '{self._topic}'")
            if other.cnx is producer.cnx:
                raise error
            self._checking[producer] = claim
            other.cnx.check_alive(now, lambda alive, when: self._checked(claim, error if alive else None, when))

    def _checked(self, claim: Claim, error: PulsarBoxError | None, now: Now) -> None:
        """It is known whether the owner of a name is alive; of a dead one nothing is left."""
        if self._checking.pop(claim.producer, None) is None:
            return  # it does not want to come in any more
        if error is None:
            try:
                self.add(claim, now)
            except PulsarBoxError as raised:
                error = raised
        if error is not None:
            claim.refused(error, now)

    def _admit(self, claim: Claim, now: Now) -> None:
        self._comes(now)
        self._present[claim.producer.name] = claim.producer
        claim.admitted(now)

    def _give(self, claim: Claim, now: Now) -> None:
        """Give the topic to one alone. A producer that comes back has the epoch that it had."""
        producer = claim.producer
        epoch = producer.access.topic_epoch
        if epoch is None:
            epoch = 0 if self.epoch is None else self.epoch + 1
        if epoch != self.epoch:
            self.epoch = epoch
            self._keep_epoch(epoch)
        self._holder = producer
        self._admit(claim, now)

    def _keep_epoch(self, epoch: int) -> None:
        """The epoch has changed."""

    def _comes(self, now: Now) -> None:
        """A producer is about to be in."""

    def _went(self, producer: Producer, now: Now) -> None:
        """A producer that was in is so no longer."""

    def _fence_all(self, now: Now) -> None:
        claims, present = list(self._waiting.values()), list(self)
        # All at once, before anybody hears of it: else the first to go would make room for one that waits.
        self._waiting.clear()
        self._present.clear()
        self._holder = None
        for claim in claims:
            claim.refused(ProducerFenced("Fenced out"), now)
        for producer in present:
            self._went(producer, now)
            producer.fence(ProducerFenced("Fenced out"), now)

    def _check_epoch(self, producer: Producer) -> None:
        had = producer.access.topic_epoch
        if had is not None and self.epoch is not None and had < self.epoch:
            raise ProducerFenced(f"Topic epoch has already moved. Current epoch: {self.epoch}, Producer epoch: {had}")

    def _exclusive_text(self) -> str:
        name = "null" if self._holder is None else self._holder.name
        return f"Topic has an existing exclusive producer: {name}"


class StoredProducers(Producers):
    """Producers of a topic that is stored: its epoch stands in the topic's row, over restarts too."""

    def __init__(self, core: Core, name: TopicName) -> None:
        super().__init__(str(name))
        self._core = core
        self.deduplication: Deduplication | None = None
        self._key = topic_key(str(name))
        self.epoch = (core.catalog.get(self._key) or {}).get("epoch")

    def _keep_epoch(self, epoch: int) -> None:
        row = self._core.catalog.get(self._key)
        assert row is not None, f"{self._topic} has a producer and no row"
        self._core.commits.put_row(self._key, row | {"epoch": epoch})

    def _comes(self, now: Now) -> None:
        if self.deduplication is not None:
            self.deduplication.joining(now)

    def _went(self, producer: Producer, now: Now) -> None:
        if self.deduplication is not None:
            self.deduplication.left(producer, now)
