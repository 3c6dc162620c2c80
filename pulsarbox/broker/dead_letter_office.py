"""Where dead letters go: their topics are found or made, given a subscription, and the letters put into the open batch.

A dead letter is no producer's, see ``posting``. What the topic asks for of schemas holds for it too.
"""

import logging

from pulsarbox.broker import keeping
from pulsarbox.broker.core import Core
from pulsarbox.broker.dead_letter import Letter, Origin, make_letter
from pulsarbox.broker.policies.dead_letter import DeadLetterPolicy
from pulsarbox.broker.posting import put
from pulsarbox.broker.routing import Routing
from pulsarbox.broker.schemas import Schemas
from pulsarbox.broker.topic import PersistentTopic
from pulsarbox.broker.topics import Topics
from pulsarbox.clock import Now
from pulsarbox.errors import NotAllowed, PersistenceError, ServiceNotReady
from pulsarbox.names import TopicName
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata
from pulsarbox.storage.record import Entry

log = logging.getLogger(__name__)


class DeadLetterOffice:
    """Puts dead letters into their topics."""

    def __init__(self, core: Core, topics: Topics, schemas: Schemas, routing: Routing) -> None:
        self._core = core
        self._topics = topics
        self._schemas = schemas
        self._routing = routing
        self._posting = False

    def prepare(self, policy: DeadLetterPolicy, now: Now) -> list[TopicName]:
        """See that a policy's topic exists and has its subscription; its parts.

        Raises NotFound where its namespace is missing, NotAllowed, PreconditionFailed or Conflict where it cannot be.
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
            log.info("topic %s is made for dead letters", name)
        parts = [name.partition(i) for i in range(count)] or [name]
        if policy.initial_subscription:
            for part in parts:
                self._subscribe(part, policy.initial_subscription, now)
        return parts

    def _subscribe(self, name: TopicName, subscription: str, now: Now) -> None:
        topic = self._topics.find(name, now)
        if isinstance(topic, PersistentTopic) and not keeping.keeps_messages(topic):
            topic.admission.check_subscription(len(topic.subscriptions))
            if subscription not in topic.subscriptions:
                topic.subscribe(subscription, earliest=True, properties={}, now=now)

    def post(
        self, entry: Entry, unacked: int | None, source: TopicName, origin: Origin, policy: DeadLetterPolicy, now: Now
    ) -> None:
        """Put an entry of ``source``, of a batch what is in ``unacked``, into the open batch as a dead letter.

        Raises PulsarBoxError, and puts nothing there, where its topic does not take it.
        """
        refusal = self._core.commits.housekeeping.refusal
        if refusal is not None:
            raise PersistenceError(refusal)
        if self._posting:  # the quota of one dead letter topic has set another subscription in motion
            raise ServiceNotReady("another dead letter is just being moved")
        self._posting = True
        try:
            self._post(entry, unacked, source, origin, policy, now)
        finally:
            self._posting = False

    def _post(
        self, entry: Entry, unacked: int | None, source: TopicName, origin: Origin, policy: DeadLetterPolicy, now: Now
    ) -> None:
        most = self._core.settings.maxMessageSize
        letter = make_letter(entry.body, unacked, origin, now.wall - now.offset, most)
        topic = self._topic(letter, policy, now)
        topic.check_takes()  # before its schemas are looked at
        self._bring_schema(source, topic.name, letter.metadata, now)
        put(topic, letter.metadata, letter.body, now)
        keeping.marked(topic, now)

    def _topic(self, letter: Letter, policy: DeadLetterPolicy, now: Now) -> PersistentTopic:
        parts = self.prepare(policy, now)
        part = 0
        if len(parts) > 1:
            part = self._routing.route(policy.topic, letter.metadata, len(letter.body), len(parts), now)
        name = parts[part]
        topic = self._topics.open(name, now)
        if not isinstance(topic, PersistentTopic):
            raise NotAllowed(f"{name} keeps nothing")
        return topic

    def _bring_schema(self, source: TopicName, target: TopicName, metadata: MessageMetadata, now: Now) -> None:
        """The schema that a message was written with is known in its new topic too, under that topic's version."""
        version = metadata.schema_version
        if not version:
            self._schemas.check_none(target)
            return
        stored = self._schemas.get(source, int.from_bytes(version, "big")) if len(version) == 8 else None
        if stored is None:
            metadata.ClearField("schema_version")  # else it would mean another one there
        else:
            metadata.schema_version = self._schemas.keep(target, stored.schema, now.wall).version_bytes
