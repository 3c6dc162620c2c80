"""GET_SCHEMA and GET_OR_CREATE_SCHEMA."""

from pulsarbox.broker.connection.cnx import ServerCnx
from pulsarbox.broker.topic.topic_schemas import StoredSchema
from pulsarbox.clock import Now
from pulsarbox.errors import PulsarBoxError, TopicNotFound
from pulsarbox.names import parse_topic
from pulsarbox.protocol import replies
from pulsarbox.protocol.PulsarApi_pb2 import CommandGetOrCreateSchema, CommandGetSchema


def get_schema(cnx: ServerCnx, command: CommandGetSchema, now: Now) -> None:
    """Return one version of a topic's schema, by default the latest."""
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
    """Register a schema unless the topic has it; answered with its version once durable."""

    def brought(found: StoredSchema | PulsarBoxError, when: Now) -> None:
        if isinstance(found, PulsarBoxError):
            cnx.outbox.send(replies.get_or_create_schema_failed(command.request_id, cnx.code_of(found), str(found)))
            return
        reply = replies.get_or_create_schema_response(command.request_id, found.version_bytes)
        cnx.broker.when_durable(lambda durable: cnx.outbox.send(reply), when)

    schemas = cnx.broker.schemas
    try:
        name = parse_topic(command.topic)
        if not cnx.broker.topics.exists(name):
            raise TopicNotFound(f"Topic {name} not found")
        schemas.run(cnx, command.schema, schemas.bringing(name, command.schema, now.wall), brought, now)
    except PulsarBoxError as error:
        brought(error, now)
