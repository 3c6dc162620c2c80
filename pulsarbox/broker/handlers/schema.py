"""GET_SCHEMA and GET_OR_CREATE_SCHEMA."""

from pulsarbox.broker.cnx import ServerCnx
from pulsarbox.clock import Now
from pulsarbox.errors import PulsarBoxError, TopicNotFound
from pulsarbox.names import parse_topic
from pulsarbox.protocol import replies
from pulsarbox.protocol.PulsarApi_pb2 import CommandGetOrCreateSchema, CommandGetSchema


def get_schema(cnx: ServerCnx, command: CommandGetSchema, now: Now) -> None:
    """One version of a topic's schema, or the newest."""
    try:
        version = int.from_bytes(command.schema_version, "big") if command.schema_version else None
        stored = cnx.broker.schemas.get(parse_topic(command.topic), version)
        if stored is None:
            raise TopicNotFound(f"Topic {command.topic} has no such schema")
    except PulsarBoxError as error:
        cnx.outbox.send(replies.get_schema_failed(command.request_id, cnx.code_of(error), str(error)))
        return
    cnx.outbox.send(replies.get_schema_response(command.request_id, stored.schema, stored.version_bytes))


def get_or_create_schema(cnx: ServerCnx, command: CommandGetOrCreateSchema, now: Now) -> None:
    """The version of a schema, which is kept from now on; answered when it is durable."""
    try:
        name = parse_topic(command.topic)
        if not cnx.broker.topics.exists(name):
            raise TopicNotFound(f"Topic {name} not found")
        stored = cnx.broker.schemas.bring(name, command.schema, now.wall)
    except PulsarBoxError as error:
        cnx.outbox.send(replies.get_or_create_schema_failed(command.request_id, cnx.code_of(error), str(error)))
        return
    reply = replies.get_or_create_schema_response(command.request_id, stored.version_bytes)
    cnx.broker.when_durable(lambda when: cnx.outbox.send(reply), now)
