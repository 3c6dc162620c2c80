"""Topic registry: finds, creates, loads, unloads and deletes topics and partitioned topics."""

import logging
from collections.abc import Callable, Iterator
from functools import partial

from pulsarbox.broker.backlog.unsubscribed_messages import TopicUnsubscribed
from pulsarbox.broker.callbacks import Callbacks
from pulsarbox.broker.core import Core, UnusedTopic
from pulsarbox.broker.policies.kinds.auto_creation import AUTO_TOPICS, AutoTopics
from pulsarbox.broker.policies.kinds.counts import MAX_TOPICS
from pulsarbox.broker.policies.kinds.inactive_topic import INACTIVE_TOPIC
from pulsarbox.broker.security.permissions import Permissions
from pulsarbox.broker.tenants import Tenants
from pulsarbox.broker.topic.admission_policies import TOO_MANY_TOPICS
from pulsarbox.broker.topic.list_watchers import TopicLists
from pulsarbox.broker.topic.maintenance.deadline_index import TopicDeadline
from pulsarbox.broker.topic.maintenance.deletion_report import Deletion, report_deleted
from pulsarbox.broker.topic.maintenance.ledger_lifecycle import TopicLedgers
from pulsarbox.broker.topic.maintenance.maintenance_schedule import needs_memory
from pulsarbox.broker.topic.maintenance.unloading import IdleTopics
from pulsarbox.broker.topic.non_persistent import NonPersistentTopic
from pulsarbox.broker.topic.system_topics import COORDINATORS, is_system
from pulsarbox.broker.topic.topic import PersistentTopic, Topic
from pulsarbox.broker.topic.topic_schemas import Schemas
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
"""How often to check whether a topic that is being unloaded has finished its reads and commits."""

PAGE = 500
"""Names listed in one turn."""

PARTITIONS_MAX = 10_000
"""Adding partitions visits all of them in one turn, which blocks all other clients."""


class Topics:
    """All topics of the box."""

    def __init__(self, core: Core, tenants: Tenants, schemas: Schemas, permissions: Permissions) -> None:
        self._core = core  # for new topics
        self._catalog = core.catalog
        self._store = core.store
        self._commits = core.commits
        self._timers = core.timers
        self._events = core.events
        self._policies = core.policies
        self._deadlines = core.deadlines
        self._transactions = core.transactions
        self._settings = core.current_settings
        self._tenants = tenants
        self._permissions = permissions
        self._schemas = schemas
        self._topics: dict[str, Topic] = {}
        """Loaded topics; the catalog may have more persistent ones."""
        self.leaving: set[str] = set()
        """Partitioned topics that are being deleted partition by partition; no partition may be created."""
        self._unloading: dict[Topic, list[Callable[[Now], None]]] = {}
        """Topics that are being unloaded, with the callbacks to run afterwards."""
        self.lists = TopicLists(core.timers, core.commits, partial(self.users_names, mode="PERSISTENT"))
        """Topic lists watched by clients."""
        self._idle = IdleTopics(core.timers, core.settings.brokerUnloadIdleTopicsAfterSeconds, self._unload)
        self.left: Callbacks[Topic] = Callbacks()
        """Called with each topic that leaves memory."""
        self.rows_changed: Callbacks[str] = Callbacks()
        """Called with the name of each topic whose rows change while it is not in memory."""
        core.deadlines.passed.add(self._maintain)
        core.inactive.add(self._delete_inactive)

    def __iter__(self) -> Iterator[Topic]:
        """Iterate over the topics in memory."""
        return iter(list(self._topics.values()))

    def loaded(self, name: TopicName) -> Topic | None:
        """Return the topic if it is in memory, else None."""
        return self._topics.get(str(name))

    def in_memory(self, name: str) -> bool:
        """Return whether the topic with this full name is in memory."""
        return name in self._topics

    def exists(self, name: TopicName) -> bool:
        """Return whether the topic exists, in memory or in the catalog."""
        return str(name) in self._topics or (name.persistent and topic_key(str(name)) in self._catalog)

    def find(self, name: TopicName, now: Now) -> Topic | None:
        """Return the topic, loading it if necessary; None if it does not exist."""
        topic = self._topics.get(str(name))
        if topic is None and name.persistent:
            stored = self._store.topic(str(name))
            if stored is not None:
                topic = self._topics[str(name)] = PersistentTopic(self._core, name, stored)
                topic.begin(now)
        if isinstance(topic, PersistentTopic):
            self._idle.used(topic, now)
        return topic

    def persistent(self, name: str, now: Now) -> PersistentTopic | None:
        """Return the persistent topic with this full name, loading it if necessary; None if it does not exist."""
        topic = self.find(parse_topic(name), now)
        return topic if isinstance(topic, PersistentTopic) else None

    def _unload(self, topic: PersistentTopic, now: Now) -> bool:
        """Unload a topic unless it is in use; return whether it is out of memory."""
        if self._topics.get(str(topic.name)) is not topic:
            return True
        if not topic.can_unload():
            return False
        self._leave(topic)
        topic.unload()
        return True

    def _leave(self, topic: Topic) -> None:
        """Remove a topic from memory."""
        del self._topics[str(topic.name)]
        self._policies.detach(topic.policies)
        topic.limits.end()
        self.left(topic)

    def unload(self, topic: Topic, done: Callable[[Now], None], now: Now) -> None:
        """Disconnect a topic's clients and unload it, once messages in flight are stored.

        Clients reconnect automatically; they can open the topic again once ``done`` is called.
        """
        if topic in self._unloading:
            self._unloading[topic].append(done)
            return
        self._unloading[topic] = [done]
        topic.close(now)
        if isinstance(topic, PersistentTopic):
            self._commits.after_commit(partial(self._unload_settled, topic))
        else:
            self._unloaded(topic, now)

    def _unload_settled(self, topic: PersistentTopic, now: Now) -> None:
        if self._topics.get(str(topic.name)) is topic and not topic.is_settled():
            self._timers.at(now.monotonic + SETTLING_SECONDS, partial(self._unload_settled, topic))
            return
        if self._topics.get(str(topic.name)) is topic:  # it may have been deleted meanwhile
            topic.unload()
        self._unloaded(topic, now)

    def _unloaded(self, topic: Topic, now: Now) -> None:
        if self._topics.get(str(topic.name)) is topic:
            self._leave(topic)
        for done in self._unloading.pop(topic):
            done(now)

    # Time-driven maintenance

    def _maintain(self, name: str, now: Now) -> None:
        """Run a topic's maintenance at its deadline or on a policy change; load the topic only if necessary."""
        topic = self._topics.get(name)
        if isinstance(topic, PersistentTopic):
            topic.upkeep.run(now)
            return
        stored = self._store.topic(name)
        if stored is None:
            return
        parsed = parse_topic(name)
        policies = self._policies.of(parsed)
        deadline = TopicDeadline(self._core, stored)
        ledgers = TopicLedgers(self._core, stored, policies, deadline)
        kept = ledgers.unsubscribed.holds
        if not needs_memory(stored, policies, kept=kept):
            deadline.set(ledgers.maintain(now)[1])
            if not kept or ledgers.unsubscribed.holds:
                self._commits.unload(stored)
                self.rows_changed(name)
                return
        found = self.find(parsed, now)
        assert isinstance(found, PersistentTopic)
        found.upkeep.run(now)
        self._timers.at(now.monotonic + SETTLING_SECONDS, partial(self._back_to_rows, found))

    def trim_unsubscribed(self, name: str, now: Now) -> bool:
        """Drop a topic's oldest ledger that only unsubscribed retention keeps; return whether one was dropped."""
        topic = self._topics.get(name)
        if isinstance(topic, PersistentTopic):
            return topic.trim_unsubscribed(now)
        stored = self._store.topic(name)
        if stored is None:
            return False
        deadline = TopicDeadline(self._core, stored)
        ledgers = TopicLedgers(self._core, stored, self._policies.of(parse_topic(name)), deadline)
        dropped = ledgers.trim_unsubscribed(now)
        if dropped:
            deadline.want(now.wall)  # the topic may be inactive now
        self._commits.unload(stored)
        self.rows_changed(name)
        return bool(dropped)

    def count_unsubscribed(self, name: str, now: Now) -> None:
        """Update the count of a topic's unsubscribed messages."""
        topic, stored = self._topics.get(name), self._store.topic(name)
        if isinstance(topic, PersistentTopic):
            topic.ledgers.unsubscribed.count(now)
        elif stored is not None:
            TopicUnsubscribed(self._core, stored, self._policies.of(parse_topic(name))).count(now)
            self._commits.unload(stored)

    def apply_policies(self, name: str, now: Now) -> None:
        """Apply changed policies to a topic, unless it is in memory and was notified already."""
        topic = self._topics.get(name)
        if topic is None or not topic.policies.is_notified:
            self._maintain(name, now)

    def _back_to_rows(self, topic: PersistentTopic, now: Now) -> None:
        """Unload a topic that was loaded for maintenance only, without the delay for topics that were used."""
        if self._topics.get(str(topic.name)) is not topic or topic.is_connected:
            return
        if not self._unload(topic, now):
            self._timers.at(now.monotonic + 1, partial(self._back_to_rows, topic))

    def _delete_inactive(self, topic: UnusedTopic, now: Now) -> None:
        """Delete an inactive topic; with its last partition also the partitioned topic, if the settings say so."""
        name = topic.name
        if self._topics.get(str(name)) is not topic:
            return
        self.delete(name, now, force=True, why=Deletion.INACTIVE)
        count = self.partitions(name.base)
        if name.base == name or not self._settings.current.brokerDeleteInactivePartitionedTopicMetadataEnabled:
            return
        if not any(self.exists(name.base.partition(number)) for number in range(count)):
            self.forget_partitioned(name.base, now)

    def open(self, name: TopicName, now: Now, *, create: bool = True) -> Topic:
        """Return the topic for a client; create it if that is allowed.

        Raises TopicNotFound (NamespaceNotFound if the namespace is missing); NotAllowed for a partitioned topic, and
        for a partition name whose topic is not partitioned.
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
            raise NotAllowed(f"Can not create system topic {name}: the broker creates its own")
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
        """Return a topic that the box uses internally; create it if missing. Raises ServiceNotReady."""
        topic = self.find(name, now) or self._make(name, now)
        if topic in self._unloading:
            raise ServiceNotReady(f"Topic {name} is being unloaded, try again")
        assert isinstance(topic, PersistentTopic)
        return topic

    def auto_created(self, name: TopicName) -> AutoTopics:
        """Return the auto-creation policy that applies to a topic name."""
        return self._policies.of(name).get(AUTO_TOPICS)

    def _has_room(self, name: TopicName, more: int) -> bool:
        """Return whether the topic limit of the namespace allows ``more`` persistent topics."""
        limit = self._policies.of(name).get(MAX_TOPICS)
        if limit <= 0 or not name.persistent or is_system(str(name)):
            return True
        prefix, present = topic_key(f"{PERSISTENT}://{name.namespace}/"), 0
        after: str | None = ""
        while after is not None and present + more <= limit:
            keys, after = self._catalog.page(prefix, after, PAGE)
            present += sum(not is_system(key.partition("/")[2]) for key in keys)
        return present + more <= limit

    def create(self, name: TopicName, now: Now, properties: dict[str, str] | None = None) -> Topic:
        """Create a non-partitioned topic. Raises Conflict, NotFound, PreconditionFailed."""
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
            raise Conflict(TOO_MANY_TOPICS)  # as in Pulsar, which uses another status for partitioned topics
        return self._make(name, now, properties)

    def _make(self, name: TopicName, now: Now, properties: dict[str, str] | None = None) -> Topic:
        topic: Topic
        if not name.persistent:
            topic = NonPersistentTopic(self._core, name)
            self._report_created(name, now)
            self._timers.at(now.monotonic, topic.maybe_unused)
        else:
            topic = PersistentTopic(self._core, name, self._make_stored(name, now, properties))
            topic.begin(now)
            self._idle.used(topic, now)
        self._topics[str(name)] = topic
        return topic

    def _make_stored(self, name: TopicName, now: Now, properties: dict[str, str] | None = None) -> StoredTopic:
        commits = self._commits
        topic_id, ledger_id = commits.new_id(), commits.new_id()
        stored = self._store.create(str(name), topic_id)
        info = stored.ledger.open_ledger(ledger_id, now.wall)
        row: Row = {"id": topic_id, "created": now.wall, "properties": properties or {}}
        inactive = self._policies.of(name).get(INACTIVE_TOPIC)
        if inactive.delete and not is_system(str(name)):
            deadline = row["deadline"] = now.wall + inactive.after
            commits.put_row(deadline_key(deadline, topic_id), {"topic": str(name)})
            self._deadlines.add(deadline, topic_id)
        commits.put_row(topic_key(str(name)), row)
        commits.put_row(ledger_key(topic_id, ledger_id), ledger_row(stored.ledger, info))
        self.lists.changed(str(name), now, exists=True)
        self._report_created(name, now)
        return stored

    def _report_created(self, name: TopicName, now: Now) -> None:
        if not is_system(str(name)):
            self._events.report("topic-created", str(name), "created", now)

    def make_partition(self, name: TopicName, number: int, now: Now) -> None:
        """Create a missing partition of a partitioned topic; a persistent one only as rows, until it is used."""
        partition = name.partition(number)
        if self.exists(partition) or number >= self.partitions(name) or str(name) in self.leaving:
            return
        if partition.persistent:
            self._store.forget(self._make_stored(partition, now))
            self.rows_changed(str(partition))
        else:
            self._make(partition, now)

    def delete(self, name: TopicName, now: Now, *, force: bool, why: Deletion = Deletion.REQUEST) -> None:
        """Delete a topic and its subscriptions.

        Raises NotFound; Conflict if it is partitioned; without ``force`` PreconditionFailed while clients are
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
        report_deleted(topic, why, self._events, now)
        if isinstance(topic, PersistentTopic):
            topic.delete(now)
            self.lists.changed(str(name), now, exists=False)
        else:
            topic.close(now)
        self._permissions.forget_topic(name)
        if name.base == name:
            self._forget_settings(name, now)

    def _forget_settings(self, name: TopicName, now: Now) -> None:
        """Delete a topic's schemas and policies."""
        self._schemas.delete(name, force=True)
        self._policies.put_topic(name, None, now)

    def check_open(self, topic: Topic) -> None:
        """Raise ServiceNotReady if the topic was deleted or unloaded meanwhile."""
        if self._topics.get(str(topic.name)) is not topic:
            raise ServiceNotReady(f"Topic {topic.name} is being closed, try again")

    # Partitioned topics

    def partitions(self, name: TopicName) -> int:
        """Return the number of partitions, 0 for a topic that is not partitioned."""
        row = self._catalog.get(partitions_key(str(name)))
        return row["partitions"] if row else 0

    def partitioned_properties(self, name: TopicName) -> dict[str, str]:
        """Return the properties of a partitioned topic; empty for a topic that is not partitioned."""
        row = self._catalog.get(partitions_key(str(name)))
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
        """Create a partitioned topic without its partitions: the caller creates them, or their first use does.

        Raises Conflict, NotFound, PreconditionFailed; NotAcceptable for an invalid number of partitions.
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
        self._commits.put_row(partitions_key(str(name)), row)

    def grow(self, name: TopicName, count: int, now: Now, *, force: bool = False) -> None:
        """Add partitions to a partitioned topic, and create the first partition's durable subscriptions on all of them.

        A subscription starts at a partition's earliest message, so consumers also get messages published before they
        discover the new partition. Missing partitions are created. Raises PreconditionFailed for the name of a
        partition; Conflict if the topic is not partitioned or, without ``force``, topics with the names of later
        partitions exist; Unprocessable for fewer partitions than now, or too many.
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
            row = self._catalog.get(partitions_key(str(name)))
            assert row is not None
            self._commits.put_row(partitions_key(str(name)), row | {"partitions": count})
        for number in range(count):
            self.make_partition(name, number, now)
        self._spread_subscriptions(name, count, now)

    def _partitions_from(self, name: TopicName, first: int) -> list[str]:
        """Return the topics whose names are those of partitions ``first`` and later."""
        loaded = (str(topic.name) for topic in self._topics.values())
        stored = (key.partition("/")[2] for key in self._catalog.keys(topic_key(f"{name}-partition-")))
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
                    made.set_replicated(model.replicated, now)
                    if model.dead_letters.policy is not None:
                        made.dead_letters.set_policy(model.dead_letters.policy, now)

    def forget_partitioned(self, name: TopicName, now: Now) -> None:
        """Delete a partitioned topic's metadata; the caller deletes its partitions."""
        self._commits.put_row(partitions_key(str(name)), None)
        self._permissions.forget_topic(name)
        self._forget_settings(name, now)

    def metadata(self, name: TopicName, now: Now, *, create: bool) -> int:
        """Return the number of partitions for a client's metadata request; may auto-create a partitioned topic.

        Raises NamespaceNotFound; TopicNotFound if the topic is missing and must not be created.
        """
        count = self.partitions(name)
        if count or self.exists(name):
            return count
        if str(name.base) == COORDINATORS and self._transactions.enabled:
            return int(name.base == name)
        self._tenants.require(name.namespace)
        if name.base != name and 0 < self.partitions(name.base) <= name.partition_index:
            raise TopicNotFound(f"Topic {name} not found")  # as in Pulsar: no auto-creation beyond the partition count
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
        """Return the sorted full names of a namespace's topics, including each partition.

        ``mode`` is PERSISTENT, NON_PERSISTENT or ALL. Raises NotFound if the namespace is missing.
        """
        return [name for page in self.pages(namespace, mode, system=system) for name in page]

    def users_names(self, namespace: str, mode: str) -> list[str]:
        """Return the topic names for clients; empty if the namespace is missing."""
        return [name for page in self.users_pages(namespace, mode) for name in page]

    def users_pages(self, namespace: str, mode: str) -> Iterator[list[str]]:
        """Return the topic names for clients in pages; none if the namespace is missing."""
        return self.pages(namespace, mode) if self._tenants.has_namespace(namespace) else iter(())

    def pages(self, namespace: str, mode: str = "ALL", *, system: bool = False) -> Iterator[list[str]]:
        """Return ``names`` in pages; topics may be created or deleted in between. Raises NotFound at once."""
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
                keys, after = self._catalog.page(prefix, after, PAGE)  # type: ignore[assignment]
                page = [key.partition("/")[2] for key in keys]
                yield page if system else [name for name in page if not is_system(name)]

    def partitioned_names(self, namespace: str, domain: str) -> list[str]:
        """Return the full names of a namespace's partitioned topics. Raises NotFound if the namespace is missing."""
        self._tenants.policies(namespace)
        return [key.partition("/")[2] for key in self._catalog.keys(f"partitions/{domain}://{namespace}/")]

    def _require_namespace(self, name: TopicName) -> None:
        if not self._tenants.has_namespace(name.namespace):
            raise NotFound("Namespace not found")
        if name.namespace in self._tenants.leaving:
            raise Conflict(f"Namespace {name.namespace} is being deleted")
        if str(name.base) in self.leaving:
            raise Conflict(f"Topic {name.base} is being deleted")

    def _check_domain(self, name: TopicName) -> None:
        settings = self._settings.current
        allowed = settings.enablePersistentTopics if name.persistent else settings.enableNonPersistentTopics
        if not allowed:
            # For both domains: the text of Pulsar 4.2's BrokerService says "persistent" in both places.
            raise NotAllowed("Broker is unable to load persistent topic")


def _check_count(count: int) -> None:
    if count <= 0:
        raise NotAcceptable("Number of partitions should be more than 0")
    if count > PARTITIONS_MAX:
        raise NotAcceptable(f"Number of partitions should be less than or equal to {PARTITIONS_MAX}")
