"""PRODUCER and CLOSE_PRODUCER. SEND, the hot one, is in ``cnx``."""

from pulsarbox.broker.cnx import ServerCnx, State
from pulsarbox.broker.producer import Producer
from pulsarbox.broker.schemas import StoredSchema, is_schema
from pulsarbox.broker.topic import PersistentTopic
from pulsarbox.clock import Now
from pulsarbox.errors import NotAllowed, NotSupported, ServiceNotReady
from pulsarbox.names import parse_topic
from pulsarbox.protocol import replies
from pulsarbox.protocol.PulsarApi_pb2 import CommandCloseProducer, CommandProducer, ProducerAccessMode


def producer(cnx: ServerCnx, command: CommandProducer, now: Now) -> None:
    """Open a producer; answered when its topic, and the subscription it may ask for, are durable."""
    broker = cnx.broker
    name = parse_topic(command.topic)
    present = cnx.producers.get(command.producer_id)
    if present is not None:
        last = present.topic.last_sequence_id(present.name)
        cnx.outbox.send(replies.producer_success(command.request_id, present.name, last, b""))
        return
    if ("producer", command.producer_id) in cnx.opening:
        raise ServiceNotReady("Producer is already present on the connection")
    if command.producer_access_mode != ProducerAccessMode.Shared:
        mode = ProducerAccessMode.Name(command.producer_access_mode)
        raise NotSupported(f"Producer access mode {mode} is not supported by this version: use Shared")
    if command.txn_enabled:
        raise NotAllowed("Transactions are not enabled.")
    refusal = broker.core.commits.housekeeping.refusal
    if refusal is not None and name.persistent:
        # Told to come back: a client that were let in would send again what was refused, at once and for ever.
        raise ServiceNotReady(f"Nothing can be published right now: {refusal}")
    topic = broker.topics.open(name, now)
    opened = Producer(
        cnx,
        command.producer_id,
        command.producer_name or broker.core.producer_name(),
        topic,
        epoch=command.epoch,
        user_provided_name=bool(command.producer_name) and command.user_provided_producer_name,
        now=now,
    )
    schema = None
    if command.HasField("schema") and is_schema(command.schema):
        schema = broker.schemas.put(name, command.schema, now.wall)
    if command.initial_subscription_name and isinstance(topic, PersistentTopic):
        if command.initial_subscription_name not in topic.subscriptions:
            if not broker.core.settings.allowAutoSubscriptionCreation:
                raise NotAllowed("Could not create the initial subscription: it may not be created by clients")
            topic.subscribe(command.initial_subscription_name, earliest=True, properties={}, now=now)
    topic.add_producer(opened, now)
    cnx.opening["producer", command.producer_id] = command.request_id

    def answer(when: Now) -> None:
        _opened(cnx, command.request_id, opened, schema, when)

    if topic.is_settling(opened.name):
        # What an earlier connection has sent under the name is on its way: the answer says whether it is stored.
        broker.core.commits.after_commit(answer)
    else:
        broker.when_durable(answer, now)


def _opened(cnx: ServerCnx, request_id: int, opened: Producer, schema: StoredSchema | None, now: Now) -> None:
    key = ("producer", opened.producer_id)
    expected = cnx.opening.get(key) == request_id
    if expected:
        del cnx.opening[key]
    if cnx.state is State.CLOSED or not expected or opened.closed:
        # The connection went, or somebody closed it before it was open.
        opened.closed = True
        opened.topic.remove_producer(opened, now)
        error = ServiceNotReady("The producer was closed before it was open")
        cnx.outbox.send(replies.error(request_id, error.server_error, str(error)))
        return
    cnx.producers[opened.producer_id] = opened
    cnx.recently_closed.pop(opened.producer_id, None)
    version = schema.version_bytes if schema is not None else b""
    last = opened.topic.last_sequence_id(opened.name)
    cnx.outbox.send(replies.producer_success(request_id, opened.name, last, version))


def close_producer(cnx: ServerCnx, command: CommandCloseProducer, now: Now) -> None:
    """Close a producer; answered when all it has sent is answered. An unknown one is closed already."""
    cnx.opening.pop(("producer", command.producer_id), None)
    present = cnx.producers.pop(command.producer_id, None)
    reply = replies.success(command.request_id)
    if present is None:
        cnx.outbox.send(reply)
    else:
        cnx.close_recently(command.producer_id)
        present.close(lambda: cnx.outbox.send(reply), now)
