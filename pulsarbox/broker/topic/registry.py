"""Which topics there are: finding, creating and deleting them, and partitioned topics."""

import logging
from collections.abc import Callable, Iterator
from functools import partial

from pulsarbox.broker.backlog.unsubscribed_messages import TopicUnsubscribed
from pulsarbox.broker.core import Core
from pulsarbox.broker.policies.kinds.auto_creation import AUTO_TOPICS, AutoTopics
from pulsarbox.broker.policies.kinds.counts import MAX_TOPICS
from pulsarbox.broker.policies.kinds.inactive_topic import INACTIVE_TOPIC
from pulsarbox.broker.security.permissions import Permissions
from pulsarbox.broker.tenants import Tenants
from pulsarbox.broker.topic.admission_policies import TOO_MANY_TOPICS
from pulsarbox.broker.topic.deadline_index import TopicDeadline
from pulsarbox.broker.topic.deletion_report import Deletion, report_deleted
from pulsarbox.broker.topic.ledger_lifecycle import TopicLedgers
from pulsarbox.broker.topic.list_watchers import TopicLists
from pulsarbox.broker.topic.maintenance_schedule import needs_memory
from pulsarbox.broker.topic.non_persistent import NonPersistentTopic
from pulsarbox.broker.topic.system_topics import COORDINATORS, is_system
from pulsarbox.broker.topic.topic import PersistentTopic, Topic
from pulsarbox.broker.topic.topic_schemas import Schemas
from pulsarbox.broker.topic.unloading import IdleTopics
from pulsarbox.clock import Now
from pulsarbox.errors import (
    Conflict,
    NotAcceptable,
    NotAllowed,
    NotFound,
    PreconditionFailed,
    ServiceNotReady,
    TopicNotFound,
    Unprocessable,
)
from pulsarbox.names import COMPACTION_SUBSCRIPTION, PERSISTENT, TopicName, parse_topic
from pulsarbox.storage.catalog import Row, deadline_key, ledger_key, partitions_key, topic_key
from pulsarbox.storage.recovery import StoredTopic, ledger_row

log = logging.getLogger(__name__)

SETTLING_SECONDS = 0.01
"""How often a topic that is to be unloaded is looked at while reads for those that were connected are under way."""

PAGE = 500
"""Names that are listed in one turn."""

PARTITIONS_MAX = 10_000
"""Where a topic gets more of them, all are looked at in one turn, in which nobody else is served."""


class Topics:
    """All topics of the box."""

    def __init__(self, core: Core, tenants: Tenants, schemas: Schemas, permissions: Permissions) -> None:
        self._core = core
        self._tenants = tenants
        self._permissions = permissions
        self._schemas = schemas
        self._topics: dict[str, Topic] = {}
        """The topics in memory; of persistent ones there may be more in the catalog."""
        self.leaving: set[str] = set()
        """Partitioned topics that are on their way out, partition by partition: none may come into being."""
        self._unloading: dict[Topic, list[Callable[[Now], None]]] = {}
        """Those that are on their way out of it, and who is to hear of it."""
        self.lists = TopicLists(core, partial(self.users_names, mode="PERSISTENT"))
        """Of topics, as clients watch them."""
        self._idle = IdleTopics(core.timers, core.settings.brokerUnloadIdleTopicsAfterSeconds, self._unload)
        core.deadlines.fall_due = self._look_at
        core.walks.look_at = self._pass_by
        core.let_go = self._let_go
        core.unsubscribed.trim, core.unsubscribed.count = self._trim_unsubscribed, self._count_unsubscribed
        core.transactions.topic_of = self.persistent
        self.left: Callable[[Topic], None] = _nobody
        """Is told of each topic that is not in memory any more."""
        self.rows_changed: Callable[[str], None] = _nobody
        """Is told of each that has changed without being there."""
        core.deadlines.start()
        core.unsubscribed.start([stored.name for stored in core.store.topics.values()])

    def __iter__(self) -> Iterator[Topic]:
        """The topics in memory."""
        return iter(list(self._topics.values()))

    def loaded(self, name: TopicName) -> Topic | None:
        """The topic if it is in memory."""
        return self._topics.get(str(name))

    def in_memory(self, name: str) -> bool:
        """Whether the topic of that full name is."""
        return name in self._topics

    def exists(self, name: TopicName) -> bool:
        """Whether there is such a topic."""
        return str(name) in self._topics or (name.persistent and topic_key(str(name)) in self._core.catalog)

    def find(self, name: TopicName, now: Now) -> Topic | None:
        """The topic, None where there is none."""
        topic = self._topics.get(str(name))
        if topic is None and name.persistent:
            stored = self._core.store.topic(str(name))
            if stored is not None:
                topic = self._topics[str(name)] = PersistentTopic(self._core, name, stored)
                topic.upkeep.begin(now)
        if isinstance(topic, PersistentTopic):
            self._idle.used(topic, now)
        return topic

    def persistent(self, name: str, now: Now) -> PersistentTopic | None:
        """The persistent topic of a name, None where there is none."""
        topic = self.find(parse_topic(name), now)
        return topic if isinstance(topic, PersistentTopic) else None

    def _unload(self, topic: PersistentTopic, now: Now) -> bool:
        """Let a topic be rows again; whether it is out of the way. Not while somebody uses it."""
        if self._topics.get(str(topic.name)) is not topic:
            return True
        if not topic.can_unload():
            return False
        self._leave(topic)
        topic.unload()
        return True

    def _leave(self, topic: Topic) -> None:
        """It is not in memory any more."""
        del self._topics[str(topic.name)]
        self._core.policies.detach(topic.policies)
        topic.limits.end()
        self.left(topic)

    def unload(self, topic: Topic, done: Callable[[Now], None], now: Now) -> None:
        """Let a topic out of memory with everybody who is connected to it; they are told to come back, and find it
        once ``done`` is called. Nothing is lost: what is on its way is stored first."""
        if topic in self._unloading:
            self._unloading[topic].append(done)
            return
        self._unloading[topic] = [done]
        topic.close(now)
        if isinstance(topic, PersistentTopic):
            self._core.commits.after_commit(partial(self._unload_settled, topic))
        else:
            self._unloaded(topic, now)

    def _unload_settled(self, topic: PersistentTopic, now: Now) -> None:
        if self._topics.get(str(topic.name)) is topic and not topic.is_settled():
            self._core.timers.at(now.monotonic + SETTLING_SECONDS, partial(self._unload_settled, topic))
            return
        if self._topics.get(str(topic.name)) is topic:  # it may have been deleted meanwhile
            topic.unload()
        self._unloaded(topic, now)

    def _unloaded(self, topic: Topic, now: Now) -> None:
        if self._topics.get(str(topic.name)) is topic:
            self._leave(topic)
        for done in self._unloading.pop(topic):
            done(now)

    # By the passing of time

    def _look_at(self, name: str, now: Now) -> None:
        """A topic's deadline has come, or policies have changed: in memory or not, what is due is done."""
        topic = self._topics.get(name)
        if isinstance(topic, PersistentTopic):
            topic.upkeep.look(now)
            return
        stored = self._core.store.topic(name)
        if stored is None:
            return
        parsed = parse_topic(name)
        policies = self._core.policies.of(parsed)
        deadline = TopicDeadline(self._core, stored)
        ledgers = TopicLedgers(self._core, stored, policies, deadline)
        kept = ledgers.unsubscribed.holds
        if not needs_memory(stored, policies, kept=kept):
            deadline.set(ledgers.look(now)[1])
            if not kept or ledgers.unsubscribed.holds:
                self._core.commits.unload(stored)
                self.rows_changed(name)
                return
        found = self.find(parsed, now)
        assert isinstance(found, PersistentTopic)
        found.upkeep.look(now)
        self._core.timers.at(now.monotonic + SETTLING_SECONDS, partial(self._back_to_rows, found))

    def _trim_unsubscribed(self, name: str, now: Now) -> bool:
        """Drop the oldest ledger of a topic, in memory or not, that is there for unsubscribed retention alone."""
        topic = self._topics.get(name)
        if isinstance(topic, PersistentTopic):
            return topic.trim_unsubscribed(now)
        stored = self._core.store.topic(name)
        if stored is None:
            return False
        deadline = TopicDeadline(self._core, stored)
        ledgers = TopicLedgers(self._core, stored, self._core.policies.of(parse_topic(name)), deadline)
        dropped = ledgers.trim_unsubscribed(now)
        if dropped:
            deadline.want(now.wall)  # it may be inactive now
        self._core.commits.unload(stored)
        self.rows_changed(name)
        return bool(dropped)

    def _count_unsubscribed(self, name: str, now: Now) -> None:
        """Bring the count of a topic's messages up to date that no subscription has covered."""
        topic, stored = self._topics.get(name), self._core.store.topic(name)
        if isinstance(topic, PersistentTopic):
            topic.ledgers.unsubscribed.count(now)
        elif stored is not None:
            TopicUnsubscribed(self._core, stored, self._core.policies.of(parse_topic(name))).count(now)
            self._core.commits.unload(stored)

    def _pass_by(self, name: str, now: Now) -> None:
        """Policies have changed: one that is in memory has been told, unless it came there since."""
        topic = self._topics.get(name)
        if topic is None or not topic.policies.is_told:
            self._look_at(name, now)

    def _back_to_rows(self, topic: PersistentTopic, now: Now) -> None:
        """A topic came into memory to be looked at: it need not stay there as long as one that was used."""
        if self._topics.get(str(topic.name)) is not topic or topic.is_connected:
            return
        if not self._unload(topic, now):
            self._core.timers.at(now.monotonic + 1, partial(self._back_to_rows, topic))

    def _let_go(self, topic: Topic, now: Now) -> None:
        """Delete a topic that nobody has used for too long; where the settings say so, what is left of a partitioned
        topic with its last partition."""
        name = topic.name
        if self._topics.get(str(name)) is not topic:
            return
        self.delete(name, now, force=True, why=Deletion.INACTIVE)
        count = self.partitions(name.base)
        if name.base == name or not self._core.settings.brokerDeleteInactivePartitionedTopicMetadataEnabled:
            return
        if not any(self.exists(name.base.partition(number)) for number in range(count)):
            self.forget_partitioned(name.base, now)

    def open(self, name: TopicName, now: Now, *, create: bool = True) -> Topic:
        """The topic for a client: found, or created where that is allowed.

        Raises TopicNotFound (NamespaceNotFound where the namespace is missing); NotAllowed for a partitioned topic,
        and for what is called like a partition and is none.
        """
        self._check_domain(name)
        topic = self.find(name, now)
        if topic is not None:
            if topic in self._unloading:
                raise ServiceNotReady(f"Topic {name} is being unloaded, try again")
            return topic
        self._tenants.require(name.namespace)
        if self.partitions(name):
            raise NotAllowed(f"Found partitioned metadata for non-partitioned topic: {name}")
        if is_system(str(name)):
            raise NotAllowed(f"Can not create system topic {name}: the box makes those that it needs itself")
        count = self.partitions(name.base)
        if str(name.base) in self.leaving or (not count and not (create and self.auto_created(name).allowed)):
            raise TopicNotFound(f"Topic {name} does not exist")
        if name.base != name and not count:
            raise NotAllowed(f"Partition metadata not found for the partitioned topic: {name}")
        if name.base != name and name.partition_index >= count:
            raise TopicNotFound(f"Topic not found {name}")
        if not self._has_room(name, 1):
            raise NotAllowed(TOO_MANY_TOPICS)
        return self._make(name, now)

    def of_box(self, name: TopicName, now: Now) -> PersistentTopic:
        """A topic that the box keeps for itself, made where it is not there. Raises ServiceNotReady."""
        topic = self.find(name, now) or self._make(name, now)
        if topic in self._unloading:
            raise ServiceNotReady(f"Topic {name} is being unloaded, try again")
        assert isinstance(topic, PersistentTopic)
        return topic

    def auto_created(self, name: TopicName) -> AutoTopics:
        """What comes into being where a client names a topic that does not exist."""
        return self._core.policies.of(name).get(AUTO_TOPICS)

    def _has_room(self, name: TopicName, more: int) -> bool:
        """Whether the namespace of a topic may have so many more persistent ones."""
        limit = self._core.policies.of(name).get(MAX_TOPICS)
        if limit <= 0 or not name.persistent or is_system(str(name)):
            return True
        prefix, present = topic_key(f"{PERSISTENT}://{name.namespace}/"), 0
        after: str | None = ""
        while after is not None and present + more <= limit:
            keys, after = self._core.catalog.page(prefix, after, PAGE)
            present += sum(not is_system(key.partition("/")[2]) for key in keys)
        return present + more <= limit

    def create(self, name: TopicName, now: Now, properties: dict[str, str] | None = None) -> Topic:
        """Create a topic that is not partitioned. Raises Conflict, NotFound, PreconditionFailed."""
        self._require_namespace(name)
        self._check_domain(name)
        if self.exists(name):
            raise Conflict("This topic already exists")
        if self.partitions(name):
            raise Conflict("This topic already exists")
        if name.base != name:
            count = self.partitions(name.base)
            if name.partition_index >= count:
                what = f"it has {count} partitions" if count else "it is not partitioned"
                raise PreconditionFailed(f"'{name.local}' cannot be a partition of {name.base}: {what}")
        if not self._has_room(name, 1):
            raise Conflict(TOO_MANY_TOPICS)  # as in Pulsar, where partitioned ones are refused with another status
        return self._make(name, now, properties)

    def _make(self, name: TopicName, now: Now, properties: dict[str, str] | None = None) -> Topic:
        topic: Topic
        if not name.persistent:
            topic = NonPersistentTopic(self._core, name)
            self._report_created(name, now)
            self._core.timers.at(now.monotonic, topic.maybe_unused)
        else:
            topic = PersistentTopic(self._core, name, self._make_stored(name, now, properties))
            topic.upkeep.begin(now)
            self._idle.used(topic, now)
        self._topics[str(name)] = topic
        return topic

    def _make_stored(self, name: TopicName, now: Now, properties: dict[str, str] | None = None) -> StoredTopic:
        commits = self._core.commits
        topic_id, ledger_id = commits.new_id(), commits.new_id()
        stored = self._core.store.create(str(name), topic_id)
        info = stored.ledger.open_ledger(ledger_id, now.wall)
        row: Row = {"id": topic_id, "created": now.wall, "properties": properties or {}}
        inactive = self._core.policies.of(name).get(INACTIVE_TOPIC)
        if inactive.delete and not is_system(str(name)):
            deadline = row["deadline"] = now.wall + inactive.after
            commits.put_row(deadline_key(deadline, topic_id), {"topic": str(name)})
            self._core.deadlines.add(deadline, topic_id)
        commits.put_row(topic_key(str(name)), row)
        commits.put_row(ledger_key(topic_id, ledger_id), ledger_row(stored.ledger, info))
        self.lists.changed(str(name), now, exists=True)
        self._report_created(name, now)
        return stored

    def _report_created(self, name: TopicName, now: Now) -> None:
        if not is_system(str(name)):
            self._core.events.tell("topic-created", str(name), "created", now)

    def make_partition(self, name: TopicName, number: int, now: Now) -> None:
        """Make a partition that is not there, and of which it is known that it should be; a persistent one as rows
        alone, until somebody uses it."""
        partition = name.partition(number)
        if self.exists(partition) or number >= self.partitions(name) or str(name) in self.leaving:
            return
        if partition.persistent:
            self._core.store.forget(self._make_stored(partition, now))
            self.rows_changed(str(partition))
        else:
            self._make(partition, now)

    def delete(self, name: TopicName, now: Now, *, force: bool, why: Deletion = Deletion.REQUEST) -> None:
        """Delete a topic and its subscriptions.

        Raises NotFound, Conflict where it is partitioned; without ``force`` PreconditionFailed while anybody is
        connected.
        """
        topic = self.find(name, now)
        if topic is None:
            if self.partitions(name):
                raise Conflict(
                    f"{name} is a partitioned topic, instead of calling delete topic,"
                    " please call delete-partitioned-topic."
                )
            raise NotFound(f"Topic {name} not found")
        if not force:
            topic.check_idle()
        self._leave(topic)
        report_deleted(topic, why, self._core.events, now)
        if isinstance(topic, PersistentTopic):
            topic.delete(now)
            self.lists.changed(str(name), now, exists=False)
        else:
            topic.close(now)
        self._permissions.forget_topic(name)
        if name.base == name:
            self._forget_settings(name, now)

    def _forget_settings(self, name: TopicName, now: Now) -> None:
        """What was said of a topic by its name goes with it."""
        self._schemas.delete(name, force=True)
        self._core.policies.put_topic(name, None, now)

    def check_open(self, topic: Topic) -> None:
        """Raises ServiceNotReady where the topic was deleted meanwhile."""
        if self._topics.get(str(topic.name)) is not topic:
            raise ServiceNotReady(f"Topic {topic.name} is being closed, try again")

    # Partitioned topics

    def partitions(self, name: TopicName) -> int:
        """The number of partitions, 0 for a topic that is not partitioned."""
        row = self._core.catalog.get(partitions_key(str(name)))
        return row["partitions"] if row else 0

    def partitioned_properties(self, name: TopicName) -> dict[str, str]:
        """The properties of a partitioned topic; none for a topic that is not partitioned."""
        row = self._core.catalog.get(partitions_key(str(name)))
        return row["properties"] if row else {}

    def create_partitioned(
        self, name: TopicName, count: int, now: Now, properties: dict[str, str] | None = None
    ) -> None:
        """Create a partitioned topic with all its partitions. Raises as ``begin_partitioned``."""
        self.begin_partitioned(name, count, now, properties)
        for number in range(count):
            self.make_partition(name, number, now)

    def begin_partitioned(
        self, name: TopicName, count: int, now: Now, properties: dict[str, str] | None = None
    ) -> None:
        """Create a partitioned topic; its partitions are to be made, or are once somebody uses them.

        Raises Conflict, NotFound, PreconditionFailed, NotAcceptable for a number that cannot be.
        """
        self._require_namespace(name)
        self._check_domain(name)
        if name.base != name:
            raise PreconditionFailed(f"Partitioned Topic Name should not contain '-partition-': {name.local!r}")
        _check_count(count)
        if self.partitions(name) or self.exists(name):
            raise Conflict("This topic already exists")
        if not self._has_room(name, count):
            raise PreconditionFailed(TOO_MANY_TOPICS)
        row = {"partitions": count, "properties": properties or {}}
        self._core.commits.put_row(partitions_key(str(name)), row)

    def grow(self, name: TopicName, count: int, now: Now, *, force: bool = False) -> None:
        """Give a partitioned topic more partitions, and all of them the durable subscriptions of the first.

        A subscription starts with a partition's earliest message: what is published before the consumers have found the
        new partition is theirs too. Partitions that are missing are made. Raises PreconditionFailed for the name of a
        partition, Conflict where it is not partitioned or, without ``force``, has partitions beyond those it should
        have; Unprocessable for fewer than there are, or too many.
        """
        if name.base != name:
            raise PreconditionFailed("Partitioned Topic Name should not contain '-partition-'")
        before = self.partitions(name)
        if not before:
            raise Conflict(f"Topic {name} is not the partitioned topic.")
        if count < before:
            raise Unprocessable(f"Desired partitions {count} can't be less than the current partitions {before}.")
        if count > PARTITIONS_MAX:
            raise Unprocessable(
                f"Desired partitions {count} can't be greater than the maximum partitions per topic {PARTITIONS_MAX}."
            )
        strays = [] if force else self._partitions_from(name, before)
        if strays:
            raise Conflict(
                "Exist unexpected topic partition(partition index grater than current metadata maximum index"
                f" {before}) {','.join(strays)} "
            )
        if count > before:
            row = self._core.catalog.get(partitions_key(str(name)))
            assert row is not None
            self._core.commits.put_row(partitions_key(str(name)), row | {"partitions": count})
        for number in range(count):
            self.make_partition(name, number, now)
        self._spread_subscriptions(name, count, now)

    def _partitions_from(self, name: TopicName, first: int) -> list[str]:
        """Topics that are called like partitions ``first`` and later of a topic."""
        loaded = (str(topic.name) for topic in self._topics.values())
        stored = (key.partition("/")[2] for key in self._core.catalog.keys(topic_key(f"{name}-partition-")))
        found = {each for names in (loaded, stored) for each in names if each.startswith(f"{name}-partition-")}
        parsed = (parse_topic(each) for each in found)
        return sorted(str(each) for each in parsed if each.base == name and each.partition_index >= first)

    def _spread_subscriptions(self, name: TopicName, count: int, now: Now) -> None:
        first = self.find(name.partition(0), now)
        if not isinstance(first, PersistentTopic):
            return
        durable = [each for each in first.subscriptions.values() if each.durable]
        wanted = {each.name: each for each in durable if each.name != COMPACTION_SUBSCRIPTION}
        for number in range(count if wanted else 0):
            topic = self.find(name.partition(number), now)
            assert isinstance(topic, PersistentTopic)
            for name_of_one, model in wanted.items():
                if name_of_one not in topic.subscriptions:
                    made = topic.subscribe(name_of_one, earliest=True, properties=dict(model.properties), now=now)
                    if model.dead_letters.policy is not None:
                        made.dead_letters.set_policy(model.dead_letters.policy, now)

    def forget_partitioned(self, name: TopicName, now: Now) -> None:
        """A partitioned topic is no more; its partitions are seen to elsewhere."""
        self._core.commits.put_row(partitions_key(str(name)), None)
        self._permissions.forget_topic(name)
        self._forget_settings(name, now)

    def metadata(self, name: TopicName, now: Now, *, create: bool) -> int:
        """Number of partitions for a client that asks before it connects; may create a partitioned topic.

        Raises NamespaceNotFound, TopicNotFound where the topic is missing and ``create`` is not wanted.
        """
        count = self.partitions(name)
        if count or self.exists(name):
            return count
        if str(name.base) == COORDINATORS and self._core.transactions.enabled:
            return int(name.base == name)
        self._tenants.require(name.namespace)
        if name.base != name and 0 < self.partitions(name.base) <= name.partition_index:
            raise TopicNotFound(f"Topic {name} not found")  # as Pulsar: it cannot come into being this way
        if not create:
            raise TopicNotFound(f"Topic {name} not found")
        if is_system(str(name)):
            raise TopicNotFound(f"Topic {name} not found")
        kind = self.auto_created(name)
        if not kind.allowed and not self.partitions(name.base):
            raise TopicNotFound(f"Topic {name} does not exist")
        if not kind.partitions or name.base != name:
            return 0
        if not self._has_room(name, kind.partitions):
            raise NotAllowed(TOO_MANY_TOPICS)
        self.create_partitioned(name, kind.partitions, now)
        return kind.partitions

    # Lists

    def names(self, namespace: str, mode: str = "ALL", *, system: bool = False) -> list[str]:
        """The topics of a namespace by full name, partitions one by one, sorted.

        ``mode`` is PERSISTENT, NON_PERSISTENT or ALL. Raises NotFound where the namespace is missing.
        """
        return [name for page in self.pages(namespace, mode, system=system) for name in page]

    def users_names(self, namespace: str, mode: str) -> list[str]:
        """The same for clients, who are told of no topics where there is no namespace."""
        return [name for page in self.users_pages(namespace, mode) for name in page]

    def users_pages(self, namespace: str, mode: str) -> Iterator[list[str]]:
        """The same, piece by piece."""
        return self.pages(namespace, mode) if self._tenants.has_namespace(namespace) else iter(())

    def pages(self, namespace: str, mode: str = "ALL", *, system: bool = False) -> Iterator[list[str]]:
        """The same, piece by piece: topics may come and go meanwhile. Raises NotFound at once."""
        self._tenants.policies(namespace)
        return self._pages(namespace, mode, system)

    def _pages(self, namespace: str, mode: str, system: bool) -> Iterator[list[str]]:
        if mode != "PERSISTENT":
            names = (each.name for each in self._topics.values() if not each.name.persistent)
            found = (str(name) for name in names if name.namespace == namespace)
            yield sorted(name for name in found if system or not is_system(name))
        if mode != "NON_PERSISTENT":
            prefix, after = topic_key(f"{PERSISTENT}://{namespace}/"), ""
            while after is not None:
                keys, after = self._core.catalog.page(prefix, after, PAGE)  # type: ignore[assignment]
                page = [key.partition("/")[2] for key in keys]
                yield page if system else [name for name in page if not is_system(name)]

    def partitioned_names(self, namespace: str, domain: str) -> list[str]:
        """The partitioned topics of a namespace. Raises NotFound where the namespace is missing."""
        self._tenants.policies(namespace)
        return [key.partition("/")[2] for key in self._core.catalog.keys(f"partitions/{domain}://{namespace}/")]

    def _require_namespace(self, name: TopicName) -> None:
        if not self._tenants.has_namespace(name.namespace):
            raise NotFound("Namespace not found")
        if name.namespace in self._tenants.leaving:
            raise Conflict(f"Namespace {name.namespace} is being deleted")
        if str(name.base) in self.leaving:
            raise Conflict(f"Topic {name.base} is being deleted")

    def _check_domain(self, name: TopicName) -> None:
        settings = self._core.settings
        allowed = settings.enablePersistentTopics if name.persistent else settings.enableNonPersistentTopics
        if not allowed:
            # Of either domain: the text of Pulsar 4.2's BrokerService says "persistent" in both places.
            raise NotAllowed("Broker is unable to load persistent topic")


def _check_count(count: int) -> None:
    if count <= 0:
        raise NotAcceptable("Number of partitions should be more than 0")
    if count > PARTITIONS_MAX:
        raise NotAcceptable(f"Number of partitions should be less than or equal to {PARTITIONS_MAX}")


def _nobody(topic: object) -> None:
    """Nobody watches."""
