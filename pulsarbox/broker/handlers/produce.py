"""PRODUCER and CLOSE_PRODUCER. SEND, the hot one, is in ``cnx``."""

from pulsarbox.broker.cnx import ServerCnx, State
from pulsarbox.broker.dead_letter.retention_warning import warn
from pulsarbox.broker.policies.kinds.auto_creation import AUTO_SUBSCRIPTIONS
from pulsarbox.broker.security.revocation import check_producer
from pulsarbox.broker.topic.producer import Access, Producer
from pulsarbox.broker.topic.producer_access import closed_early
from pulsarbox.broker.topic.topic import PersistentTopic, Topic
from pulsarbox.broker.topic.topic_schemas import StoredSchema, is_schema
from pulsarbox.broker.transactions.coordinator import COORDINATOR
from pulsarbox.clock import Now
from pulsarbox.errors import NotAllowed, PulsarBoxError, ServiceNotReady
from pulsarbox.names import TopicName, parse_topic
from pulsarbox.protocol import replies
from pulsarbox.protocol.metadata import key_values
from pulsarbox.protocol.PulsarApi_pb2 import CommandCloseProducer, CommandProducer


def producer(cnx: ServerCnx, command: CommandProducer, now: Now) -> None:
    """Open a producer; answered when its topic, its epoch, and the subscription it may ask for, are durable."""
    broker = cnx.broker
    name = parse_topic(command.topic)
    present = cnx.producers.get(command.producer_id)
    if present is not None:
        last = present.topic.last_sequence_id(present.name)
        cnx.outbox.send(replies.producer_success(command.request_id, present.name, last, present.schema_version))
        return
    if command.producer_id in cnx.coming or _key(command) in cnx.opening:
        raise ServiceNotReady("Producer is already present on the connection")
    if command.txn_enabled:
        broker.core.transactions.check_coordinator(COORDINATOR)
        if not name.persistent:
            raise NotAllowed("A non-persistent topic takes no part in transactions")
    refusal = broker.core.commits.housekeeping.refusal
    if refusal is not None and name.persistent:
        # Told to come back: a client that were let in would send again what was refused, at once and for ever.
        raise ServiceNotReady(f"Nothing can be published right now: {refusal}")
    _ready(cnx, command, name, now)
    if command.HasField("schema") and is_schema(command.schema):
        _bring_schema(cnx, command, name, now)
    else:
        broker.schemas.check_none(name)
        _admit(cnx, command, name, b"", now)


def _ready(cnx: ServerCnx, command: CommandProducer, name: TopicName, now: Now) -> Topic:
    """The topic, created if it may be. Raises PulsarBoxError where it takes no further producer."""
    topic = cnx.broker.topics.open(name, now)
    topic.check_takes()
    topic.admission.check_producer(encrypted=command.encrypted)
    if isinstance(topic, PersistentTopic):
        topic.backlog.check(now, again=command.epoch > 0)
    return topic


def _bring_schema(cnx: ServerCnx, command: CommandProducer, name: TopicName, now: Now) -> None:
    """Open the producer once its schema has been compared with those of the topic, which may take several turns."""
    schemas, key = cnx.broker.schemas, _key(command)

    def brought(found: StoredSchema | PulsarBoxError, when: Now) -> None:
        if cnx.state is State.CLOSED:
            return
        try:
            if cnx.opening.get(key) != command.request_id:
                raise closed_early()
            del cnx.opening[key]
            if isinstance(found, PulsarBoxError):
                raise found
            _admit(cnx, command, name, found.version_bytes, when)
        except PulsarBoxError as error:
            cnx.outbox.send(replies.error(command.request_id, cnx.code_of(error), str(error)))

    cnx.opening[key] = command.request_id
    try:
        schemas.run(cnx, command.schema, schemas.bringing(name, command.schema, now.wall), brought, now)
    except PulsarBoxError:
        del cnx.opening[key]
        raise


def _admit(cnx: ServerCnx, command: CommandProducer, name: TopicName, schema_version: bytes, now: Now) -> None:
    """Open a producer whose schema the topic has."""
    topic = _ready(cnx, command, name, now)  # once more: it may be another one by now
    opening = _Opening(cnx, command.request_id, _producer(cnx, command, topic, now))
    opening.producer.schema_version = schema_version
    check_producer(opening.producer)  # a permission may have gone while the schema was compared
    _prepare(cnx, command, opening.producer, now)
    cnx.coming[command.producer_id] = opening.producer
    try:
        topic.admit(opening, now, again=command.epoch > 0)
    except PulsarBoxError:
        cnx.coming.pop(command.producer_id, None)
        raise


def _key(command: CommandProducer | CommandCloseProducer) -> tuple[str, int]:
    """The key under which the connection knows that a producer's schema is being compared."""
    return "producer", command.producer_id


def _producer(cnx: ServerCnx, command: CommandProducer, topic: Topic, now: Now) -> Producer:
    made = Producer(
        cnx,
        command.producer_id,
        command.producer_name if command.HasField("producer_name") else cnx.broker.core.producer_name(),
        topic,
        access=Access(command.producer_access_mode, command.topic_epoch if command.HasField("topic_epoch") else None),
        now=now,
    )
    made.metadata = key_values(command.metadata)
    made.encrypted = command.encrypted
    return made


def _prepare(cnx: ServerCnx, command: CommandProducer, opened: Producer, now: Now) -> None:
    """Create the subscription that a producer may ask for, so that it misses nothing of what is published."""
    topic = opened.topic
    if command.initial_subscription_name and isinstance(topic, PersistentTopic):
        if command.initial_subscription_name not in topic.subscriptions:
            if not topic.policies.get(AUTO_SUBSCRIPTIONS):
                raise NotAllowed("Could not create the initial subscription: it may not be created by clients")
            topic.admission.check_subscription(len(topic.subscriptions))
            topic.subscribe(command.initial_subscription_name, earliest=True, properties={}, now=now)
    if isinstance(topic, PersistentTopic):
        warn(topic)


class _Opening:
    """A PRODUCER that is not answered yet, or with ``producer_ready`` false only; see ``producers.Claim``."""

    def __init__(self, cnx: ServerCnx, request_id: int, opened: Producer) -> None:
        self._cnx = cnx
        self._request_id = request_id
        self.producer = opened
        self._admitted = False

    def admitted(self, now: Now) -> None:
        """See Claim.admitted."""
        self._admitted = True
        broker, producer = self._cnx.broker, self.producer
        if producer.topic.is_settling(producer.name):
            # What was sent under the name before is on its way: the answer says whether it is stored.
            broker.core.commits.after_commit(self._open)
        else:
            broker.when_durable(self._open, now)

    def queued(self, now: Now) -> None:
        """See Claim.queued; the client stops its clock and waits for a second answer."""
        self._cnx.broker.when_durable(self._tell_queued, now)

    def refused(self, error: PulsarBoxError, now: Now) -> None:
        """See Claim.refused."""
        self.producer.closed = True
        if self._cnx.coming.get(self.producer.producer_id) is self.producer:
            del self._cnx.coming[self.producer.producer_id]
        if self._cnx.state is not State.CLOSED:
            self._cnx.outbox.send(replies.error(self._request_id, self._cnx.code_of(error), str(error)))

    def _tell_queued(self, now: Now) -> None:
        if not self._admitted and not self.producer.closed:
            self._succeed(None, ready=False)

    def _open(self, now: Now) -> None:
        cnx, opened = self._cnx, self.producer
        if cnx.state is State.CLOSED or opened.closed:
            # The connection went, somebody closed it before it was open, or took the topic.
            opened.topic.remove_producer(opened, now)
            self.refused(opened.fenced or closed_early(), now)
            return
        del cnx.coming[opened.producer_id]
        cnx.producers[opened.producer_id] = opened
        cnx.recently_closed.pop(opened.producer_id, None)
        self._succeed(opened.topic.producers.epoch, ready=True)

    def _succeed(self, topic_epoch: int | None, *, ready: bool) -> None:
        name, version = self.producer.name, self.producer.schema_version
        last = self.producer.topic.last_sequence_id(name)
        self._cnx.outbox.send(
            replies.producer_success(self._request_id, name, last, version, topic_epoch, producer_ready=ready)
        )


def close_producer(cnx: ServerCnx, command: CommandCloseProducer, now: Now) -> None:
    """Close a producer; answered when all it has sent is answered. An unknown one is closed already."""
    reply = replies.success(command.request_id)
    cnx.opening.pop(_key(command), None)
    coming = cnx.coming.pop(command.producer_id, None)
    if coming is not None:
        coming.closed = True
        coming.topic.remove_producer(coming, now)
    present = cnx.producers.get(command.producer_id) or cnx.draining.get(command.producer_id)
    if present is None:
        cnx.outbox.send(reply)
    else:
        present.close(lambda: cnx.outbox.send(reply), now)
