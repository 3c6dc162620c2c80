"""Publishing of dead letters: finds or creates their topic and its subscription, and adds them to the open batch.

Dead letters are published without a producer, see ``internal_publisher``. The topic's schema rules apply to them too.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from pulsarbox.broker.callbacks import Callbacks
from pulsarbox.broker.dead_letter import retention_warning
from pulsarbox.broker.dead_letter.message import Letter, Origin, make_letter
from pulsarbox.broker.persistence.group_commit import GroupCommit
from pulsarbox.broker.policies.kinds.dead_letter import DeadLetterPolicy
from pulsarbox.broker.topic.internal_publisher import checked, put
from pulsarbox.broker.topic.partition_routing import PartitionRouting
from pulsarbox.broker.topic.registry import Topics
from pulsarbox.broker.topic.topic import PersistentTopic, Topic
from pulsarbox.broker.topic.topic_schemas import Schemas
from pulsarbox.clock import Now
from pulsarbox.errors import NotAllowed, PersistenceError, ServiceNotReady, TopicNotFound
from pulsarbox.names import TopicName
from pulsarbox.protocol.metadata import parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata
from pulsarbox.storage.catalog import Catalog
from pulsarbox.storage.record import Entry

log = logging.getLogger(__name__)


Check = Callable[[TopicName, Letter], None]
"""Validates a message before it is published to a topic. Raises PulsarBoxError."""


class DeadLetterRouter:
    """Publishes dead letters to their topics, and messages from there to others."""

    def __init__(
        self,
        catalog: Catalog,
        commits: GroupCommit,
        topics: Topics,
        schemas: Schemas,
        routing: PartitionRouting,
        dead_letters: "Callbacks[Entry, int | None, TopicName, Origin, DeadLetterPolicy, Now]",
        max_message_size: int,
    ) -> None:
        """Post each of the ``dead_letters`` that subscriptions report. ``max_message_size`` is in bytes."""
        self._catalog = catalog
        self._commits = commits
        self._max_message_size = max_message_size
        self._topics = topics
        self._schemas = schemas
        self._routing = routing
        self._posting = False
        dead_letters.add(self.post)

    def prepare(self, policy: DeadLetterPolicy, now: Now) -> list[TopicName]:
        """Create a policy's topic and initial subscription if missing; return the topic's partitions, or the topic.

        Raises NotFound if its namespace is missing; NotAllowed, PreconditionFailed or Conflict if it cannot be created.
        """
        name = policy.topic
        count = self._topics.partitions(name)
        if not count and not self._topics.exists(name):
            kind = self._topics.auto_created(name)
            if kind.partitions and name.base == name:
                self._topics.create_partitioned(name, kind.partitions, now)
                count = kind.partitions
            else:
                self._topics.create(name, now)
            log.info("created dead letter topic %s", name)
        parts = [name.partition(i) for i in range(count)] or [name]
        if policy.initial_subscription:
            for part in parts:
                self._subscribe(part, policy.initial_subscription, now)
        return parts

    def _subscribe(self, name: TopicName, subscription: str, now: Now) -> None:
        topic = self._topics.find(name, now)
        if isinstance(topic, PersistentTopic) and not retention_warning.is_subscribed(topic.stored):
            topic.admission.check_subscription(len(topic.subscriptions))
            if subscription not in topic.subscriptions:
                topic.subscribe(subscription, earliest=True, properties={}, now=now)

    def post(
        self, entry: Entry, unacked: int | None, source: TopicName, origin: Origin, policy: DeadLetterPolicy, now: Now
    ) -> None:
        """Add an entry of ``source`` to the open batch as a dead letter; of a batch only the messages in ``unacked``.

        Raises PulsarBoxError, and adds nothing, if the dead letter topic rejects it.
        """
        with self._alone():
            self._post(entry, unacked, source, origin, policy, now)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        refusal = self._commits.housekeeping.refusal
        if refusal is not None:
            raise PersistenceError(refusal)
        if self._posting:  # eviction by a dead letter topic's quota made another subscription dispatch
            raise ServiceNotReady("another dead letter is being moved")
        self._posting = True
        try:
            yield
        finally:
            self._posting = False

    def _post(
        self, entry: Entry, unacked: int | None, source: TopicName, origin: Origin, policy: DeadLetterPolicy, now: Now
    ) -> None:
        letter = make_letter(entry.body, unacked, origin, now.wall - now.offset, self._max_message_size)
        topic = self._topic(letter, policy, now)
        topic.check_not_terminated()  # before adding a schema
        self._register_schema(source, topic.name, letter.metadata, now)
        put(topic, letter.metadata, letter.body, now)
        retention_warning.marked(topic, self._catalog, self._commits)

    def _topic(self, letter: Letter, policy: DeadLetterPolicy, now: Now) -> PersistentTopic:
        name = self._one_of(policy.topic, self.prepare(policy, now), letter, now)
        return _persistent(self._topics.open(name, now))

    def _one_of(self, topic: TopicName, parts: list[TopicName], letter: Letter, now: Now) -> TopicName:
        if len(parts) == 1:
            return parts[0]
        return parts[self._routing.route(topic, letter.metadata, len(letter.body), len(parts), now)]

    def _register_schema(self, source: TopicName, target: TopicName, metadata: MessageMetadata, now: Now) -> None:
        """Register a message's schema with its new topic, and set that topic's schema version in its metadata."""
        version = metadata.schema_version
        if not version:
            self._schemas.check_none(target)
            return
        stored = self._schemas.get(source, int.from_bytes(version, "big")) if len(version) == 8 else None
        if stored is None:
            metadata.ClearField("schema_version")  # it would refer to another schema there
        else:
            keeping = self._schemas.keeping(target, stored.schema, now.wall)
            metadata.schema_version = self._schemas.run_synchronously(stored.schema, keeping, now).version_bytes

    # Moving messages to other topics

    def put_back(
        self,
        letters: Iterable[tuple[TopicName, Letter]],
        source: TopicName,
        check: Check | None,
        now: Now,
        *,
        dry: bool = False,
        known: dict[TopicName, PersistentTopic] | None = None,
    ) -> None:
        """Add messages of ``source`` to the open batch as messages of the given topics: all of them or, on error, none.

        ``check`` validates a message with its final schema version. ``dry``: validate only. ``known``: cache of topics
        found in the same turn. PersistenceError, and ServiceNotReady other than QuotaReached, are worth a retry.
        """
        with self._alone():
            put = []
            for name, given in letters:
                letter = Letter(MessageMetadata(), given.body)
                letter.metadata.CopyFrom(given.metadata)  # keep the original for a retry
                topic = None if known is None else known.get(name)
                if topic is None:
                    topic = self._target(name, letter, now, known)
                topic.check_not_terminated()  # before adding a schema
                letter.metadata.publish_time = now.wall - now.offset
                self._register_allowed_schema(source, topic.name, letter.metadata, now, dry=dry)
                if check is not None:
                    check(topic.name, letter)
                put.append((topic, checked(topic, letter.metadata, letter.body, now)))
            for topic, payload in put if not dry else ():
                topic.append(parse_entry(payload), payload, now)

    def _target(
        self, name: TopicName, letter: Letter, now: Now, known: dict[TopicName, PersistentTopic] | None
    ) -> PersistentTopic:
        count = self._topics.partitions(name)
        if not count and not self._topics.exists(name):
            raise TopicNotFound(f"{name} does not exist: create it, or choose another target")
        parts = [name.partition(i) for i in range(count)] or [name]
        topic = _persistent(self._topics.open(self._one_of(name, parts, letter, now), now, create=False))
        if known is not None and len(parts) == 1:
            known[name] = topic
        return topic

    def _register_allowed_schema(
        self, source: TopicName, target: TopicName, metadata: MessageMetadata, now: Now, *, dry: bool
    ) -> None:
        """Register a message's schema as ``_register_schema`` does, but only if the target's producers may add it."""
        version = metadata.schema_version
        stored = self._schemas.get(source, int.from_bytes(version, "big")) if len(version) == 8 else None
        if stored is None:
            metadata.ClearField("schema_version")
            self._schemas.check_none(target)
        elif not dry:
            bringing = self._schemas.bringing(target, stored.schema, now.wall)
            metadata.schema_version = self._schemas.run_synchronously(stored.schema, bringing, now).version_bytes
        else:
            self._schemas.run_synchronously(stored.schema, self._schemas.trying(target, stored.schema), now)


def _persistent(topic: Topic) -> PersistentTopic:
    if not isinstance(topic, PersistentTopic):
        raise NotAllowed(f"{topic.name} is non-persistent and stores no messages")
    return topic
