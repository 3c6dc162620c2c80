"""PRODUCER and CLOSE_PRODUCER. SEND, which is on the hot path, is in ``cnx``."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from pulsarbox.broker.connection.cnx import ServerCnx
from pulsarbox.broker.connection.opening import Opening
from pulsarbox.broker.connection.pending_opening import closed_early
from pulsarbox.broker.dead_letter.retention_warning import warn
from pulsarbox.broker.policies.kinds.auto_creation import AUTO_SUBSCRIPTIONS
from pulsarbox.broker.security.revocation import check_producer
from pulsarbox.broker.topic.producer import Access, AttachedProducer
from pulsarbox.broker.topic.topic import PersistentTopic, Topic
from pulsarbox.broker.topic.topic_schemas import StoredSchema, is_schema
from pulsarbox.broker.transactions.transaction_table import COORDINATOR
from pulsarbox.clock import Now
from pulsarbox.errors import NotAllowed, ProducerHeld, ProducerQuotaExceeded, PulsarBoxError, ServiceNotReady
from pulsarbox.names import TopicName, parse_topic
from pulsarbox.protocol import replies
from pulsarbox.protocol.metadata import key_values
from pulsarbox.protocol.PulsarApi_pb2 import CommandCloseProducer, CommandProducer


def producer(cnx: ServerCnx, command: CommandProducer, now: Now) -> None:
    """Open a producer; answered once its topic, its epoch and its initial subscription are durable."""
    name = parse_topic(command.topic)
    present = cnx.producers.get(command.producer_id)
    if present is not None:
        last = present.topic.last_sequence_id(present.name)
        cnx.outbox.send(replies.producer_success(command.request_id, present.name, last, present.schema_version))
        return
    opening = Opening(cnx, ("producer", command.producer_id), command.request_id)
    opening.step(partial(_begin, opening, command, name), now)


def _begin(opening: Opening, command: CommandProducer, name: TopicName, now: Now) -> None:
    broker = opening.cnx.broker
    if command.txn_enabled:
        broker.transactions.check_coordinator(COORDINATOR)
        if not name.persistent:
            raise NotAllowed("Non-persistent topics do not support transactions")
    refusal = broker.commits.housekeeping.refusal
    if refusal is not None and name.persistent:
        # Clients retry after ServiceNotReady. An open producer would resend rejected messages in an endless loop.
        raise ServiceNotReady(f"Messages cannot be published: {refusal}")
    _ready(opening.cnx, command, name, now)
    if command.HasField("schema") and is_schema(command.schema):
        _open_with_schema(opening, command, name, now)
    else:
        broker.schemas.check_none(name)
        _admit(opening, command, name, b"", now)


def _ready(cnx: ServerCnx, command: CommandProducer, name: TopicName, now: Now) -> Topic:
    """Return the topic, created if permitted. Raises PulsarBoxError if it accepts no further producer."""
    topic = cnx.broker.topics.open(name, now)
    topic.check_not_terminated()
    topic.admission.check_producer(encrypted=command.encrypted)
    if isinstance(topic, PersistentTopic):
        if topic.copies is not None:
            topic.copies.check()
        with _noting(cnx, command, topic, now):
            topic.backlog.check(now, again=command.epoch > 0)
    return topic


@contextmanager
def _noting(cnx: ServerCnx, command: CommandProducer, topic: Topic, now: Now) -> Iterator[None]:
    """Let the topic and the connection remember a producer that a backlog quota refuses."""
    try:
        yield
    except (ProducerHeld, ProducerQuotaExceeded):
        if isinstance(topic, PersistentTopic):
            cnx.refused = topic.backlog.note_refused(command.producer_name, cnx.address, command.producer_id, now)
        raise


def _open_with_schema(opening: Opening, command: CommandProducer, name: TopicName, now: Now) -> None:
    """Open the producer after comparing its schema with those of the topic, which may take several turns."""
    schemas = opening.cnx.broker.schemas

    def brought(found: StoredSchema | PulsarBoxError, when: Now) -> None:
        if isinstance(found, PulsarBoxError):
            opening.fail(found, when)
        else:
            opening.step(partial(_admit, opening, command, name, found.version_bytes), when)

    schemas.run(opening.cnx, command.schema, schemas.bringing(name, command.schema, now.wall), brought, now)


def _admit(opening: Opening, command: CommandProducer, name: TopicName, schema_version: bytes, now: Now) -> None:
    """Open a producer whose schema is registered."""
    cnx = opening.cnx
    topic = _ready(cnx, command, name, now)  # again: the topic may have been replaced meanwhile
    claim = _Claim(opening, _producer(cnx, command, topic, now))
    claim.producer.schema_version = schema_version
    check_producer(cnx.broker.authorization, claim.producer)  # a permission may have been revoked during the comparison
    _prepare(cnx, command, claim.producer, now)
    opening.undo = claim.withdraw
    with _noting(cnx, command, topic, now):
        topic.admit(claim, now, again=command.epoch > 0)
    if isinstance(topic, PersistentTopic):
        cnx.refused = topic.backlog.queued(claim.producer) or cnx.refused


def _producer(cnx: ServerCnx, command: CommandProducer, topic: Topic, now: Now) -> AttachedProducer:
    made = AttachedProducer(
        cnx,
        command.producer_id,
        command.producer_name if command.HasField("producer_name") else cnx.broker.producer_name(),
        topic,
        access=Access(command.producer_access_mode, command.topic_epoch if command.HasField("topic_epoch") else None),
        now=now,
    )
    made.metadata = key_values(command.metadata)
    made.encrypted = command.encrypted
    return made


def _prepare(cnx: ServerCnx, command: CommandProducer, opened: AttachedProducer, now: Now) -> None:
    """Create the initial subscription that the command names, so that it covers every message."""
    topic = opened.topic
    if command.initial_subscription_name and isinstance(topic, PersistentTopic):
        if command.initial_subscription_name not in topic.subscriptions:
            if not topic.policies.get(AUTO_SUBSCRIPTIONS):
                raise NotAllowed("Could not create the initial subscription: clients may not create subscriptions here")
            topic.admission.check_subscription(len(topic.subscriptions))
            topic.subscribe(command.initial_subscription_name, earliest=True, properties={}, now=now)
    if isinstance(topic, PersistentTopic):
        warn(topic)


class _Claim:
    """The claim of a pending PRODUCER on its topic; see ``producer_access.ProducerClaim``."""

    def __init__(self, opening: Opening, claimed: AttachedProducer) -> None:
        self._opening = opening
        self.producer = claimed
        self._admitted = False

    def withdraw(self, now: Now) -> None:
        """Remove the producer from the topic or its queue."""
        self.producer.closed = True
        self.producer.topic.remove_producer(self.producer, now)

    def admitted(self, now: Now) -> None:
        """See ProducerClaim.admitted."""
        self._admitted = True
        broker, producer = self._opening.cnx.broker, self.producer
        answer = partial(self._opening.step, self._open)
        if producer.topic.is_settling(producer.name):
            # Messages sent under this name before may be pending: the answer states the last stored one.
            broker.commits.after_commit(answer)
        else:
            broker.when_durable(answer, now)

    def queued(self, now: Now) -> None:
        """See ProducerClaim.queued. The client suspends its timeout and waits for a second answer."""
        self._opening.cnx.broker.when_durable(partial(self._opening.step, self._answer_queued), now)

    def refused(self, error: PulsarBoxError, now: Now) -> None:
        """See ProducerClaim.refused."""
        self._opening.fail(error, now)

    def _answer_queued(self, now: Now) -> None:
        if not self._admitted:
            self._succeed(None, ready=False)

    def _open(self, now: Now) -> None:
        cnx, opened = self._opening.cnx, self.producer
        if opened.closed:  # by the broker, or because another producer has taken over the topic
            raise opened.fenced or closed_early("producer")
        self._opening.succeeded()
        cnx.producers[opened.producer_id] = opened
        cnx.recently_closed.pop(opened.producer_id, None)
        self._succeed(opened.topic.producers.epoch, ready=True)

    def _succeed(self, topic_epoch: int | None, *, ready: bool) -> None:
        name, version = self.producer.name, self.producer.schema_version
        last = self.producer.topic.last_sequence_id(name)
        self.producer.outbox.send(
            replies.producer_success(self._opening.request_id, name, last, version, topic_epoch, producer_ready=ready)
        )


def close_producer(cnx: ServerCnx, command: CommandCloseProducer, now: Now) -> None:
    """Close a producer, open or opening; answered after its last receipt. An unknown one counts as closed."""
    reply = replies.success(command.request_id)
    cnx.abandon("producer", command.producer_id, now)
    present = cnx.producers.get(command.producer_id) or cnx.draining.get(command.producer_id)
    if present is None:
        cnx.outbox.send(reply)
    else:
        present.close(lambda: cnx.outbox.send(reply), now)
