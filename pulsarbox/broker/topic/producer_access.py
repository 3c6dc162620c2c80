"""Producer access to a topic: names, access modes and the topic epoch (PIP-68).

A topic has any number of Shared producers or one exclusive producer. An exclusive producer is admitted if there is no
other (Exclusive), when the topic becomes free (WaitForExclusive), or at once by fencing out all others
(ExclusiveWithFencing). Each exclusive producer increments the topic epoch, durably, before its client gets the reply.
A reconnecting producer sends its epoch: a higher one means another producer had the topic since, so it is rejected.
"""

from collections.abc import Iterator
from typing import Protocol

from pulsarbox.broker.connection.pending_opening import closed_early
from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.topic.deduplication import Deduplication
from pulsarbox.broker.topic.producer import AttachedProducer
from pulsarbox.clock import Now
from pulsarbox.errors import NamingError, ProducerBusy, ProducerFenced, PulsarBoxError, ServiceNotReady
from pulsarbox.names import TopicName
from pulsarbox.protocol.PulsarApi_pb2 import ProducerAccessMode
from pulsarbox.storage.catalog import Catalog, topic_key


class ProducerClaim(Protocol):
    """A producer's request for access, and the callbacks for its outcome."""

    producer: AttachedProducer

    def admitted(self, now: Now) -> None:
        """The producer may publish once all rows written so far, such as the topic epoch, are durable."""

    def queued(self, now: Now) -> None:
        """The producer waits until the topic is free."""

    def refused(self, error: PulsarBoxError, now: Now) -> None:
        """The producer was rejected after it had to wait."""


class Producers:
    """The producers of one topic, and the claims that wait for access."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self.epoch: int | None = None
        """Incremented for each exclusive producer; None if the topic never had one."""
        self.has_chunks = False
        """Whether producers have sent chunks of larger messages since the topic was loaded."""
        self._present: dict[str, AttachedProducer] = {}
        self._holder: AttachedProducer | None = None
        """The exclusive producer."""
        self._waiting: dict[AttachedProducer, ProducerClaim] = {}
        """Claims that wait for the topic to become free, in order of arrival."""
        self._checking: dict[AttachedProducer, ProducerClaim] = {}
        """Claims to a name in use, while the broker checks whether its owner's connection is alive."""

    def __iter__(self) -> Iterator[AttachedProducer]:
        """Iterate over the admitted producers."""
        return iter(list(self._present.values()))

    def __len__(self) -> int:
        """Return the number of admitted producers."""
        return len(self._present)

    def __contains__(self, who: object) -> bool:
        """Return whether a producer, given itself or by name, is admitted."""
        return who in self._present or (isinstance(who, AttachedProducer) and self._present.get(who.name) is who)

    @property
    def waiting(self) -> int:
        """The number of producers that wait for the topic to become free."""
        return len(self._waiting)

    @property
    def claims(self) -> list[ProducerClaim]:
        """The claims that wait for the topic or for their name to become free."""
        return [*self._waiting.values(), *self._checking.values()]

    @property
    def unused(self) -> bool:
        """Whether the topic has neither producers nor waiting claims."""
        return not (self._present or self._waiting or self._checking)

    def add(self, claim: ProducerClaim, now: Now) -> None:
        """Admit a producer or queue it; the claim's callback runs before this returns or later.

        Raises ProducerFenced, ProducerBusy; NamingError if its connection already has a producer of that name.
        """
        producer = claim.producer
        mode = producer.access.mode
        if mode == ProducerAccessMode.Shared:
            self._add_shared(claim, now)
        elif mode == ProducerAccessMode.ExclusiveWithFencing:
            # Check before fencing: a producer that was fenced out itself must not fence its successor.
            self._check_epoch(producer)
            self._fence_all(now)
            self._admit_exclusive(claim, now)
        elif mode == ProducerAccessMode.WaitForExclusive:
            self._check_epoch(producer)
            if self._present:
                self._waiting[producer] = claim
                claim.queued(now)
            else:
                self._admit_exclusive(claim, now)
        else:
            if self._holder is not None or self._waiting:
                raise ProducerFenced(self._exclusive_text())
            if self._present:
                raise ProducerFenced("Topic has existing shared producers")
            self._check_epoch(producer)
            self._admit_exclusive(claim, now)

    def remove(self, producer: AttachedProducer, now: Now, why: PulsarBoxError | None = None) -> None:
        """Remove a producer, or refuse its claim if it still waits. The next waiting producer may get the topic.

        ``why``: the error for a waiting claim, by default that its client has closed the producer.
        """
        claim = self._waiting.pop(producer, None) or self._checking.pop(producer, None)
        if claim is not None:
            claim.refused(why or closed_early("producer"), now)
        if self._present.get(producer.name) is not producer:
            return
        del self._present[producer.name]
        self._producer_removed(producer, now)
        if self._holder is producer:
            self._holder = None
        while self._waiting and not self._present:
            claim = self._waiting.pop(next(iter(self._waiting)))
            try:
                self._check_epoch(claim.producer)
            except ProducerFenced as error:
                claim.refused(error, now)
            else:
                self._admit_exclusive(claim, now)

    def close(self, now: Now, refusal: PulsarBoxError | None = None) -> None:
        """Disconnect all producers, and reject waiting claims with ``refusal`` or an error that lets clients retry."""
        claims = self.claims
        self._waiting.clear()
        self._checking.clear()
        for claim in claims:
            claim.refused(refusal or ServiceNotReady("Topic is temporarily unavailable"), now)
        for producer in self:
            producer.disconnect(now)

    def _add_shared(self, claim: ProducerClaim, now: Now) -> None:
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

    def _checked(self, claim: ProducerClaim, error: PulsarBoxError | None, now: Now) -> None:
        """Continue a claim to a name in use. ``error`` is set if the owner is alive; a dead owner has been removed."""
        if self._checking.pop(claim.producer, None) is None:
            return  # the claim was withdrawn meanwhile
        if error is None:
            try:
                self.add(claim, now)
            except PulsarBoxError as raised:
                error = raised
        if error is not None:
            claim.refused(error, now)

    def _admit(self, claim: ProducerClaim, now: Now) -> None:
        self._before_admission(now)
        self._present[claim.producer.name] = claim.producer
        claim.admitted(now)

    def _admit_exclusive(self, claim: ProducerClaim, now: Now) -> None:
        """Admit an exclusive producer. A reconnecting one keeps its epoch."""
        producer = claim.producer
        epoch = producer.access.topic_epoch
        if epoch is None:
            epoch = 0 if self.epoch is None else self.epoch + 1
        if epoch != self.epoch:
            self.epoch = epoch
            self._store_epoch(epoch)
        self._holder = producer
        self._admit(claim, now)

    def _store_epoch(self, epoch: int) -> None:
        """Store a changed epoch."""

    def _before_admission(self, now: Now) -> None:
        """Hook: a producer is about to be admitted."""

    def _producer_removed(self, producer: AttachedProducer, now: Now) -> None:
        """Hook: an admitted producer was removed."""

    def _fence_all(self, now: Now) -> None:
        claims, present = list(self._waiting.values()), list(self)
        # Clear all before any callback: the first removal would otherwise admit a waiting producer.
        self._waiting.clear()
        self._present.clear()
        self._holder = None
        for claim in claims:
            claim.refused(ProducerFenced("Fenced out"), now)
        for producer in present:
            self._producer_removed(producer, now)
            producer.fence(ProducerFenced("Fenced out"), now)

    def _check_epoch(self, producer: AttachedProducer) -> None:
        had = producer.access.topic_epoch
        if had is not None and self.epoch is not None and had < self.epoch:
            raise ProducerFenced(f"Topic epoch has already moved. Current epoch: {self.epoch}, Producer epoch: {had}")

    def _exclusive_text(self) -> str:
        name = "null" if self._holder is None else self._holder.name
        return f"Topic has an existing exclusive producer: {name}"


class StoredProducers(Producers):
    """The producers of a persistent topic, whose row stores the epoch across restarts."""

    def __init__(self, catalog: Catalog, commits: GroupCommit, name: TopicName) -> None:
        super().__init__(str(name))
        self._catalog = catalog
        self._commits = commits
        self.deduplication: Deduplication | None = None
        self._key = topic_key(str(name))
        self.epoch = (catalog.get(self._key) or {}).get("epoch")

    def _store_epoch(self, epoch: int) -> None:
        row = self._catalog.get(self._key)
        assert row is not None, f"{self._topic} has a producer but no row"
        self._commits.put_row(self._key, row | {"epoch": epoch})

    def _before_admission(self, now: Now) -> None:
        if self.deduplication is not None:
            self.deduplication.joining(now)

    def _producer_removed(self, producer: AttachedProducer, now: Now) -> None:
        if self.deduplication is not None:
            self.deduplication.left(producer, now)
