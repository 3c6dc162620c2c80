"""One run: settings, clients and faults drawn from the seed; then a quiet period, and the final checks."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from pulsarbox.broker.policies.kinds.subscribe_rate import SUBSCRIBE_RATE
from pulsarbox.config import Settings
from tests.simulation.actors.clients import Client
from tests.simulation.actors.compactions import Compactor
from tests.simulation.actors.consumers import (
    EXCLUSIVE,
    FAILOVER,
    KEY_SHARED,
    SHARED,
    Keeper,
    KeySharedConsumer,
    Returner,
    SimulatedConsumer,
    SimulatedReader,
    Verifier,
)
from tests.simulation.actors.ending import Ending
from tests.simulation.actors.exhumer import Exhumer
from tests.simulation.actors.governor import KEEPING, Governor
from tests.simulation.actors.misfits import Glutton, Mute, Vandal
from tests.simulation.actors.producers import SimulatedProducer
from tests.simulation.actors.transacting import LONGEST_SECONDS, Transacting
from tests.simulation.actors.undertaker import Buried, Undertaker
from tests.simulation.box import READ_BYTES, Limits, SimulatedBox
from tests.simulation.disk import SimulatedDisk
from tests.simulation.model.model import Model
from tests.simulation.model.views import Policy
from tests.simulation.rules.checkers import CHECKERS
from tests.simulation.world import Faults, World

TOPICS = tuple(f"persistent://public/default/{name}" for name in ("one", "two", "three-partition-1"))
ANOTHER = "public/another"
TOPICS_OF_TWO = (TOPICS[0], f"persistent://{ANOTHER}/two", TOPICS[2])
"""Topics in two namespaces of one tenant."""
DEFAULT_STEPS = 3000
RETURNING = range(90_000, 100_000)
"""Seeds for the subscribe rate limit."""
TRANSACTING = 100_000
"""The first of the seeds with transactions."""
DAY = 86_400_000


def settings_of(random: Random, *, deduplication: bool) -> Settings:
    """Return settings low enough that every limit applies."""
    return Settings(
        brokerDeduplicationEnabled=deduplication,
        brokerDeduplicationProducerInactivityTimeoutMinutes=10_000_000,  # the wall clock jumps by days
        keepAliveIntervalSeconds=5,
        connectionLivenessCheckTimeoutMillis=500,
        dispatcherMaxReadBatchSize=random.choice((2, 10, 100)),
        dispatcherMaxRoundRobinBatchSize=random.choice((1, 3, 20)),
        dispatcherMaxReadSizeBytes=READ_BYTES,
        maxUnackedMessagesPerConsumer=random.choice((0, 25)),
        maxUnackedMessagesPerSubscription=random.choice((0, 30)),
        maxUnackedMessagesPerBroker=random.choice((0, 0, 40)),
        maxUnackedMessagesPerSubscriptionOnBrokerBlocked=random.choice((0.0, 0.16, 0.5)),
        redeliveryCountOnConnectionLoss=random.random() < 0.8,
        sharedConsumerSelection=random.choice(("roundRobin", "roundRobin", "leastUnacked", "mostPermits")),
        keySharedLookAheadMsgInReplayThresholdPerConsumer=random.choice((1, 5, 2000)),
        keySharedLookAheadMsgInReplayThresholdPerSubscription=random.choice((8, 20_000)),
        subscriptionKeySharedUseConsistentHashing=random.random() < 0.7,
        subscriptionKeySharedConsistentHashingReplicaPoints=random.choice((1, 10, 100)),
        managedLedgerMaxEntriesPerLedger=random.choice((1, 7, 40, 1000)),
        managedLedgerMaxLedgerRolloverTimeMinutes=random.choice((1, 240)),
        brokerUnloadIdleTopicsAfterSeconds=random.choice((0, 1, 3)),
        activeConsumerFailoverDelayTimeMillis=200,
    )


def with_rates(settings: Settings, random: Random, *, relative: bool) -> Settings:
    """Add rate limits at every level, some of which apply; ``relative`` adds the publish rate to dispatch rates."""
    by_entry = random.random() < 0.3
    return replace(
        settings,
        dispatchThrottlingRateInMsg=random.choice((0, 0, 30)),
        dispatchThrottlingRatePerTopicInMsg=random.choice((0, 20, 40)),
        dispatchThrottlingRatePerSubscriptionInMsg=random.choice((0, 3, 10)),
        dispatchThrottlingRatePerSubscriptionInByte=random.choice((0, 0, 2_000)),
        dispatchThrottlingOnBatchMessageEnabled=by_entry,
        preciseDispatcherFlowControl=not by_entry and random.random() < 0.5,
        maxPublishRatePerTopicInMessages=random.choice((0, 5, 15)),
        brokerPublisherThrottlingMaxMessageRate=random.choice((0, 20)),
        maxThrottledPublishMbytesPerConnection=1,
        dispatchThrottlingRateRelativeToPublishRate=relative,
    )


def with_delays(settings: Settings, random: Random) -> Settings:
    """Add a random delivery tick for delayed messages, strict or not."""
    return replace(
        settings,
        delayedDeliveryTickTimeMillis=random.choice((1, 200, 1000)),
        isDelayedDeliveryDeliverAtTimeStrict=random.random() < 0.5,
    )


def with_compaction(settings: Settings, random: Random) -> Settings:
    """Add automatic compaction; the backlog of the compaction cursor is retained from the start."""
    return replace(
        settings,
        brokerServiceCompactionThresholdInBytes=random.choice((1_000, 5_000)),
        brokerServiceCompactionMonitorIntervalInSeconds=random.choice((1, 3)),
        compactionMaxKeysInMemory=random.choice((3, 1_000)),
    )


def with_compression(settings: Settings, seed: int, engine: str) -> Settings:
    """Add compression for some seeds, without a random draw; on files, with dictionaries."""
    if seed % 18 != 8 and seed % 16 != 9:
        return settings
    return replace(settings, compressionAtRest="zstd" if engine == "lmdb" else "zlib")


def without_rates(settings: Settings) -> Settings:
    """Remove all rate limits."""
    return replace(
        settings,
        dispatchThrottlingRateInMsg=0,
        dispatchThrottlingRatePerTopicInMsg=0,
        dispatchThrottlingRatePerSubscriptionInMsg=0,
        dispatchThrottlingRatePerSubscriptionInByte=0,
        maxPublishRatePerTopicInMessages=0,
        brokerPublisherThrottlingMaxMessageRate=0,
    )


def faults_of(random: Random) -> Faults:
    """Return the faults of a run; some seeds have few, others many."""
    return Faults(
        drop=random.choice((0.0, 0.001, 0.01)),
        silence=random.choice((0.0, 0.0, 0.002)),
        congestion=random.choice((0.0, 0.3)),
        commit_fails=random.choice((0.0, 0.0, 0.05)),
        read_fails=random.choice((0.0, 0.0, 0.1)),
        commit_delay=random.choice((0.001, 0.01, 0.1)),
        read_delay=random.choice((0.001, 0.02, 0.2)),
        chore_fails=random.choice((0.0, 0.0, 0.1)),
        chore_delay=random.choice((0.001, 0.05, 0.5)),
    )


class Run:
    """The history of one seed."""

    def __init__(self, seed: int, engine: str = "memory") -> None:
        self.world = world = World(seed)
        random = world.random
        self.model = Model(world)
        self.model.checkers = [checker(self.model) for checker in CHECKERS]
        cache, checkpoint = random.choice((1, 5_000, 1 << 20)), random.choice((2_000, 50_000))
        self.disk = SimulatedDisk(world, engine)
        self.governed = seed % 20 in (10, 12, 15, 16, 18) or seed in RETURNING
        """Whether operators set policies; see ``_settings_of``."""
        self.compacted = seed % 9 == 5 and not self.governed
        """Whether an operator compacts topics, in addition to automatic compaction."""
        settings = self._settings_of(seed, random, engine)
        held = 4_000 if self.limited and seed % 2 else 1 << 20  # low: producers are suspended
        self.box = self.model.box = SimulatedBox(
            world, settings, self.model, self.disk, Limits(cache, checkpoint, held)
        )
        topics = TOPICS_OF_TWO if self.governed else TOPICS
        self.topics = topics[: random.choice((1, 2, 3))]
        if seed >= TRANSACTING:
            self.topics = topics[: random.choice((1, 2, 2))]
        self.model.spares = self.governed and self.delayed
        self.clients = self._make_clients()
        self.transacting = self._transact() if seed >= TRANSACTING else None
        self.governor = self._govern(seed) if self.governed else None
        if self.governor is not None and seed in RETURNING:
            self._return(self.governor)
        self._delay(seed)
        self._crash_every = random.choice((0.0, 3.0, 8.0))
        self._faults = faults_of(random)
        if engine == "lmdb" and self._crash_every:
            self._faults.steps_of_a_life = 15.0
        self._siesta_every = random.choice((0.0, 2.0, 5.0))
        self.ending = Ending(self.box, self.model, self.topics[-1]) if seed % 11 == 8 else None
        """Also chosen without a random draw."""
        buries = seed % 7 == 4 and not self.governed
        self.undertaker = Undertaker(self.box, self.topics, seed % 2) if buries else None
        """Also chosen without a random draw."""
        self.exhumer = self._exhume(seed)
        if self.transacting is not None and seed % 3:  # crash during transaction ends
            self._crash_every = 1.0
        self.compactor = self._compact(seed) if self.compacted else None

    def _settings_of(self, seed: int, random: Random, engine: str) -> Settings:
        """Return the settings, with no additional random draws: the histories of other seeds stay the same."""
        self.deduplication = seed % 5 == 2
        settings = with_compression(settings_of(random, deduplication=self.deduplication), seed, engine)
        self.limited = seed % 5 == 3
        if self.limited:
            settings = with_rates(settings, Random(seed), relative=seed % 25 == 13)
        self.delayed = seed % 20 in (9, 11, 14, 16, 19)
        if self.delayed:
            settings = with_delays(settings, Random(seed))
        if self.governed:
            settings = replace(settings, brokerClock="virtual", brokerDeleteInactiveTopicsEnabled=False)
        if self.compacted:
            settings = with_compaction(settings, Random(seed))
        if seed >= TRANSACTING:
            settings = replace(settings, transactionMaxTimeoutSeconds=LONGEST_SECONDS)
        if seed % 4 != 3:  # messages that no subscription has covered are trimmed as in Pulsar
            settings = replace(settings, unsubscribedRetentionTimeInMinutes=0)
        return settings

    def _transact(self) -> Transacting:
        """Add clients with transactions to some of the others. No lower seed has transactions."""
        transacting, random = Transacting(self.world, self.box, self.model, self.topics), self.world.random
        others = random.choice((0.0, 0.2, 0.5))
        self.clients = [each for each in self.clients if random.random() < others] + transacting.clients
        return transacting

    def _return(self, governor: Governor) -> None:
        """Add clients that resubscribe repeatedly, and an operator that limits their rate."""
        governor.set_only(SUBSCRIBE_RATE, {"subscribeThrottlingRatePerConsumer": 1, "ratePeriodInSecond": 5})
        for number, topic in enumerate(self.topics):
            name = f"returner-{number}"
            self.clients.append(Returner(self.world, self.box, name, topic, name, SHARED))

    def _compact(self, seed: int) -> Compactor:
        """Return the compaction operator, and enable crashes that cut compactions off."""
        self._crash_every = self._crash_every or 4.0
        self._without_chunks()
        return Compactor(self.box, self.topics, self.model.tables, seed)

    def _exhume(self, seed: int) -> Exhumer | None:
        """Return an operator that replays dead letters, for some seeds; chosen without a random draw."""
        if self.undertaker is not None:
            self._make_it_rough()
        if self.undertaker is None or seed % 9 != 2:
            return None
        self._without_chunks()
        return Exhumer(self.box, self.model, self.topics, seed)

    def _without_chunks(self) -> None:
        """Disable chunking: chunks are stored and removed together, which other rules check."""
        for client in self.clients:
            if isinstance(client, SimulatedProducer):
                client.chunking = 0.0

    def _delay(self, seed: int) -> None:
        """Set the share of delayed messages of each producer, for seeds with delayed delivery."""
        for client in self.clients:
            if self.delayed and isinstance(client, SimulatedProducer):
                client.delayed = Random(f"{seed} {client.name}").choice((0.0, 0.1, 0.5, 1.0))

    def _make_it_rough(self) -> None:
        """Increase redeliveries, commit failures and crashes, which dead letters depend on."""
        self._crash_every = self._crash_every or 4.0
        self._faults.commit_fails = 0.05
        for client in self.clients:
            if isinstance(client, SimulatedConsumer):
                client.gives_back = 0.4

    def _govern(self, seed: int) -> Governor:
        """Return an operator that changes policies, and prepare the clients for them."""
        governor = Governor(self.box, self.model, self.topics, seed, delayed=self.delayed)
        self.model.book = governor.book
        self.box.namespaces = (ANOTHER,)
        random = Random(f"{seed} governed")
        large = random.random() < 0.3
        for client in self.clients:
            client.patience, client.pace = 0.5, client.pace * 4
            if isinstance(client, SimulatedProducer):
                client.live_with(large=large, deduplication=governor.deduplicates)
        return governor

    def _make_clients(self) -> list[Client]:
        random, world, box = self.world.random, self.world, self.box
        clients: list[Client] = []
        for number, topic in enumerate(self.topics):
            for i in range(random.choice((1, 2))):
                name = f"producer-{number}-{i}"
                padding = random.choice((0, 10, 300))
                clients.append(SimulatedProducer(world, box, name, topic, named=random.random() < 0.5, padding=padding))
            for kind, count in ((EXCLUSIVE, 2), (FAILOVER, 3), (SHARED, 3)):
                for i in range(random.randrange(count + 1)):
                    kind_of = kind if random.random() < 0.9 else random.choice((EXCLUSIVE, SHARED))
                    name = f"consumer-{number}-{kind}-{i}"
                    clients.append(SimulatedConsumer(world, box, name, topic, f"sub-{kind}", kind_of))
            clients += self._key_shared_consumers(number, topic)
            if random.random() < 0.5:
                clients.append(SimulatedReader(world, box, f"reader-{number}", topic, f"reader-{number}", EXCLUSIVE))
            if random.random() < 0.5:
                clients.append(Keeper(world, box, f"keeper-{number}", topic, "keeper", EXCLUSIVE))
        misfits = [misfit for misfit in (Vandal, Glutton) if random.random() < 0.4]
        clients += [misfit(world, box, misfit.__name__.lower(), self.topics[0]) for misfit in misfits]
        if random.random() < 0.3:
            clients.append(Mute(world, box, "mute"))
        return clients

    def _key_shared_consumers(self, number: int, topic: str) -> list[Client]:
        random, world, box = self.world.random, self.world, self.box
        sub = f"sub-{KEY_SHARED}"
        policy = Policy(sticky=random.random() < 0.25, out_of_order=random.random() < 0.25)
        count = random.choice((0, 1, 2, 3, 4, 5))
        clients: list[Client] = []
        for i in range(count):
            name = f"consumer-{number}-{KEY_SHARED}-{i}"
            if random.random() < 0.05:
                clients.append(SimulatedConsumer(world, box, name, topic, sub, random.choice((FAILOVER, SHARED))))
            else:
                clients.append(KeySharedConsumer(world, box, name, topic, sub, policy, (i, count)))
        return clients

    def run(self, steps: int = DEFAULT_STEPS) -> None:
        """Run the history and the final checks. Raises Violation."""
        try:
            self._run(steps)
        finally:
            self.disk.close()

    def counts(self) -> dict[str, int]:
        """Return the number of occurrences of each simulated feature."""
        return (
            self.disk.done
            | {
                "unload": self.model.unloads,
                "trim": self.model.trims,
                "hole": self.model.holes,
                "life": self.box.life,
                "duplicate": self.model.duplicates,
                "delayed": self.model.delayed_deliveries,
                "buried": sum(len(graves) for graves in self.model.letters.graves.values()),
                "ended": 0 if self.ending is None else self.ending.told,
                "let go": self.model.let_go,
                "subscription expired": self.model.expired_subscriptions,
                "producer held": self.model.held,
                "producer refused": self.model.refusals,
            }
            | ({} if self.governor is None else self.governor.done)
            | ({} if self.compactor is None else self.compactor.done)
            | ({} if self.exhumer is None else self.exhumer.counts())
            | ({} if self.transacting is None else self.transacting.counts())
        )

    def _run(self, steps: int) -> None:
        world = self.world
        self.box.start()
        world.faults = self._faults
        for client in self.clients:
            client.start()
        self._crash_later()
        self._jump_later()
        self._rest_later()
        if self.governor is not None:
            self.governor.start()
        if self.undertaker is not None:
            self.undertaker.look()
        for operator in (self.compactor, self.exhumer, self.transacting):
            if operator is not None:
                operator.start()
        if self.ending is not None:
            world.after(Random(world.seed).choice((0.2, 0.7, 1.5)), self.ending.ask)
        world.run(events=steps)
        self._calm_down()
        self._verify()

    def _crash_later(self) -> None:
        if self._crash_every:
            self.world.after(self.world.soon(self._crash_every), self._crash)

    def _crash(self) -> None:
        if self._crash_every:
            if self.compactor is not None:
                self.compactor.crashes()
            self.box.crash(self.world.soon(0.3))
            self._crash_later()

    def _rest_later(self) -> None:
        if self._siesta_every:
            self.world.after(self.world.soon(self._siesta_every), self._rest)

    def _rest(self) -> None:
        """Disconnect all clients of a topic for a while."""
        if self._siesta_every:
            topic, seconds = self.world.random.choice(self.topics), self.world.random.choice((1.0, 4.0, 8.0))
            self.world.note("a siesta on", topic)
            for client in self.clients:
                if getattr(client, "topic", "") == topic:
                    client.go_away(seconds)
            self._rest_later()

    def _jump_later(self) -> None:
        if self.governor is not None:
            return  # the operator advances the clock
        self.world.after(self.world.soon(5.0), self._jump)

    def _jump(self) -> None:
        jump = self.world.random.choice((-3_000, 50, 100_000, 864_000_000))
        self.world.note("the wall clock jumps by", jump)
        self.world.wall_offset += jump
        if self._crash_every:
            self._jump_later()

    def _calm_down(self) -> None:
        world = self.world
        world.note("calm")
        self._crash_every = self._siesta_every = 0.0
        if self.ending is not None:
            self.ending.stopped = True
        world.faults = Faults()
        self._calm_clients()
        if self.governor is not None:
            self.governor.stopped = True
        for operator in (self.compactor, self.exhumer, self.transacting):
            if operator is not None:
                operator.calm_down()
        world.run(until=world.monotonic + 20)
        if self.limited:
            self.box.change(without_rates(self.box.settings))
        if self.governor is not None:
            self._read_what_is_retained(self.governor)
        world.run(until=world.monotonic + 20)
        world.wall_offset += DAY  # let all remaining deadlines pass
        self.box.turn()
        world.run(until=world.monotonic + 10)
        for client in self.clients:
            client.stopped = True
        world.run(until=world.monotonic + 3)
        for operator in (self.compactor, self.exhumer, self.transacting):
            if operator is not None:
                operator.judge()

    def _calm_clients(self) -> None:
        for client in self.clients:
            client.calm = True
            if client.link is not None:
                client.link.slow = False
            if isinstance(client, Glutton | Mute | Vandal):
                client.stopped = True
                client.give_up()

    def _read_what_is_retained(self, governor: Governor) -> None:
        """Check that readers receive all retained messages with a receipt, then remove all policies."""
        governor.lift(but=KEEPING)
        for topic in self.topics:
            reader = Verifier(self.world, self.box, topic, durable=False)
            reader.start()
            self.world.run(until=self.world.monotonic + 5)
            reader.stopped = True
            reader.give_up()
            for checker in self.model.checkers:
                checker.read_back(topic, reader.entries)
        governor.lift()

    def _verify(self) -> None:
        world = self.world
        for checker in self.model.checkers:
            checker.finished()
        for topic in (*self.topics, *sorted(self.model.letters.graves)):
            verifier = Verifier(world, self.box, topic)
            verifier.start()
            world.run(until=world.monotonic + 5)
            verifier.stopped = True
            verifier.give_up()
            for checker in self.model.checkers:
                if topic in self.topics or isinstance(checker, Buried):
                    checker.read_back(topic, verifier.entries)
        for client in self.clients:
            client.give_up()
        world.run(until=world.monotonic + 20)
        for checker in self.model.checkers:
            checker.abandoned()
