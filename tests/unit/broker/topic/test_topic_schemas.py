"""Expensive schemas in each command that carries one: turns are bounded, and other clients are served."""

import json
from typing import Any

import pytest

from pulsarbox.broker.connection.cnx import MAX_WAITING_SCHEMAS
from pulsarbox.broker.long_computation import SLICE_STEPS, Computations
from pulsarbox.broker.topic.schema_versions import VERDICTS_MAX, TopicVersions, VersionCache
from pulsarbox.broker.topic.topic_schemas import StillComparing
from pulsarbox.names import parse_topic
from pulsarbox.protocol.commands import COMMANDS, parse_command
from pulsarbox.protocol.PulsarApi_pb2 import Schema
from pulsarbox.protocol.schema.avro.definition import ELEMENTS_MAX
from pulsarbox.protocol.schema.steps import completed
from tests.tools.campaigns import short
from tests.unit.broker.playbook import TOPIC, Box, Client
from tests.unit.protocol.schema.schemas import avro, field, json_schema, of_type, record
from tests.unit.protocol.schema.worst import text, union_of_records

NAME = parse_topic(TOPIC)
INCOMPATIBLE = 18


def expensive(count: int = 120) -> tuple[Schema, Schema]:
    """Return two schemas whose comparison takes many slices. The second may follow the first under BACKWARD."""
    old, new = (union_of_records(count, "x", names=names) for names in "RS")
    new["fields"][0]["type"] = [record(f"U{i}", field("b"), field("c")) for i in range(count)] + new["fields"][0][
        "type"
    ]
    return of_type("AVRO", text(old)), of_type("AVRO", text(new))


OLD, NEW = expensive()


class Turns:
    """Records the longest slice or other call, in steps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.longest = 0
        advance = Computations._advance
        turns = self

        def counted(self: Computations, now: Any) -> None:
            before = self._left
            advance(self, now)
            turns.longest = max(turns.longest, before - self._left)

        monkeypatch.setattr(Computations, "_advance", counted)

    def check(self) -> None:
        """Check that a slice ends with the chunk that exhausts it. The longest chunk is a definition's JSON."""
        assert SLICE_STEPS / 2 < self.longest <= SLICE_STEPS + ELEMENTS_MAX // 20 + 1


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Turns:
    return Turns(monkeypatch)


def with_old(**settings: Any) -> Box:
    """Build a box with a topic that has the first schema."""
    box = Box(schemaCompatibilityStrategy="BACKWARD", **settings)
    completed(box.broker.schemas.putting(NAME, OLD, 0))
    box.turn()
    return box


def answers(client: Client, request_id: int) -> list[Any]:
    """Return the received responses to a request."""
    found = []
    for data, _ in client.inbox:
        command = parse_command(data)
        reply = getattr(command, COMMANDS[command.type].field)
        if getattr(reply, "request_id", None) == request_id:
            found.append(reply)
    return found


ASKED: dict[str, dict[str, Any]] = {
    "producer": {"producer_id": 1},
    "getOrCreateSchema": {},
    "subscribe": {"subscription": "s", "consumer_id": 1, "subType": 0},
}


@pytest.mark.parametrize("command", short(ASKED, 1))
def test_it_takes_several_turns_and_is_answered(command: str, turns: Turns) -> None:
    box = with_old()
    box.client().producer(9)  # creates the topic
    client, other = box.client(), box.client()
    client.ask(command, topic=TOPIC, schema=NEW, request_id=7, **ASKED[command])
    assert not answers(client, 7), "not within the turn in which it was asked"
    assert other.producer(2, topic="other", schema=of_type("STRING")) is None, "it waits for its turn"
    assert other.producer(3, topic="plain") is not None, "without a schema nothing waits"
    box.advance(20)
    (reply,) = answers(client, 7)
    assert not getattr(reply, "message", "") and not getattr(reply, "error_message", ""), reply
    assert box.broker.schemas.get(NAME).schema == (NEW if command != "subscribe" else OLD)  # type: ignore[union-attr]
    assert not client.cnx.opening and not client.closed
    turns.check()


@pytest.mark.parametrize("command", short(ASKED, 1))
def test_it_is_refused_with_a_code_that_clients_know(command: str, turns: Turns) -> None:
    old, new = expensive(800)
    box = Box(schemaCompatibilityStrategy="FULL_TRANSITIVE")
    completed(box.broker.schemas.putting(NAME, old, 0))
    box.client().producer(9)
    client = box.client()
    client.ask(command, topic=TOPIC, schema=new, request_id=7, **ASKED[command])
    box.advance(20)
    (reply,) = answers(client, 7)
    code = reply.error_code if command == "getOrCreateSchema" else reply.error
    said = reply.error_message if command == "getOrCreateSchema" else reply.message
    assert code == INCOMPATIBLE and "exceeds the limit of" in said
    assert not client.cnx.opening and not client.closed
    turns.check()


def test_a_refusal_is_remembered() -> None:
    """Repeated requests of a client with the same schema cause no further comparisons."""
    box = with_old()
    box.settings["schemaCompatibilityStrategy"] = "FULL"
    box.broker.policies.set_topic(NAME, "schemaCompatibilityStrategy", "FULL", box.now)
    client = box.client()
    assert client.producer(1, schema=NEW) is None
    box.advance(20)
    assert client.names() == ["error"]
    for _ in range(3):
        box.advance(1)
        reply = client.producer(1, schema=NEW)
        assert reply is not None and reply.error == INCOMPATIBLE, "in the same turn"
    assert client.producer(1, schema=OLD) is not None


def test_those_that_go_while_it_is_compared() -> None:
    box = with_old()
    closes, breaks = box.client(), box.client()
    for client in (closes, breaks):
        client.ask("producer", topic=TOPIC, schema=NEW, request_id=7, producer_id=1)
        client.ask("subscribe", topic=TOPIC, schema=NEW, request_id=8, subscription="s", consumer_id=1, subType=0)
    closes.ask("close_producer", producer_id=1, request_id=9)
    closes.ask("close_consumer", consumer_id=1, request_id=10)
    assert closes.names() == ["error", "success", "error", "success"], "every command is answered, in order"
    breaks.cnx.closed(box.now)
    box.advance(20)
    assert closes.names() == []
    topic = next(iter(box.broker.topics))
    assert not list(topic.producers) and not any(each.consumers for each in topic.all_subscriptions())
    assert not closes.cnx.opening and not breaks.cnx.opening


def test_the_same_id_twice_while_it_is_compared() -> None:
    box = with_old()
    client = box.client()
    client.ask("producer", topic=TOPIC, schema=NEW, request_id=7, producer_id=1)
    again = client.producer(1, schema=NEW)
    assert "already present" in again.message
    box.advance(20)
    assert client.names() == ["producer_success"]


def test_two_that_are_compared_with_the_same_version() -> None:
    """The second schema is compared with the first once that is stored; both become versions of one topic."""
    box = with_old()
    one, two = box.client(), box.client()
    other = record("Envelope", field("event", "string"))
    box.broker.policies.set_topic(NAME, "schemaCompatibilityStrategy", "BACKWARD", box.now)
    one.ask("producer", topic=TOPIC, schema=NEW, request_id=7, producer_id=1)
    two.ask("producer", topic=TOPIC, schema=avro(other), request_id=7, producer_id=1)
    two.ask("producer", topic=TOPIC, schema=NEW, request_id=8, producer_id=2)
    box.advance(20)
    assert one.names() == ["producer_success"] and sorted(two.names()) == ["error", "producer_success"]
    assert [each.version for each in box.broker.schemas.versions(NAME)] == [0, 1]


def test_a_deletion_while_it_is_compared() -> None:
    box = with_old()
    client = box.client()
    client.ask("producer", topic=TOPIC, schema=NEW, request_id=7, producer_id=1)
    box.broker.schemas.delete(NAME)
    box.advance(20)
    assert client.names() == ["producer_success"]
    assert [each.version for each in box.broker.schemas.versions(NAME)] == [2], "behind that of the deletion"


def test_a_connection_with_many_is_not_read() -> None:
    box = with_old()
    client = box.client()
    big = record("Big", field("a", doc="x" * (MAX_WAITING_SCHEMAS // 2)))
    client.ask("producer", topic=TOPIC, schema=NEW, request_id=7, producer_id=1)
    assert not client.cnx.overdrawn
    for i in range(3):
        client.ask("producer", topic=f"{TOPIC}{i}", schema=avro(big), request_id=10 + i, producer_id=10 + i)
    found = [client.cnx.overdrawn, box.client().cnx.overdrawn]
    box.advance(20)
    assert [*found, client.cnx.overdrawn] == [True, False, False]
    assert client.names() == ["producer_success"] * 4


def test_a_schema_that_is_too_large() -> None:
    box = Box()
    client = box.client()
    reply = client.producer(1, schema=of_type("EXTERNAL", b"x" * (2 << 20)))
    assert reply.error == INCOMPATIBLE and "2097152 are allowed" in reply.message
    assert client.producer(1, schema=of_type("EXTERNAL", b"x" * (1 << 20))).producer_name


def test_one_that_waits_does_not_keep_a_topic_that_is_deleted() -> None:
    box = with_old()
    client = box.client()
    client.ask("producer", topic=TOPIC, schema=NEW, request_id=7, producer_id=1)
    box.broker.topics.delete(NAME, box.now, force=True)
    box.turn()
    box.advance(20)
    assert client.names() == ["producer_success"]
    assert [each.name for each in box.broker.topics] == [NAME], "made again"


def test_for_the_box_itself() -> None:
    """Jobs and dead letters resume in a later turn and read the stored result."""
    box = with_old()
    schemas = box.broker.schemas
    with pytest.raises(StillComparing):
        schemas.run_synchronously(NEW, schemas.trying(NAME, NEW), box.now)
    box.advance(20)
    schemas.run_synchronously(NEW, schemas.trying(NAME, NEW), box.now)
    with pytest.raises(StillComparing):
        schemas.run_synchronously(expensive(170)[1], schemas.bringing(NAME, expensive(240)[1], 0), box.now)


# Many versions --------------------------------------------------------------------------------------------------------


def numbered(count: int) -> list[Schema]:
    return [json_schema(record("A", field("a", default=i))) for i in range(count)]


def with_versions(count: int) -> Box:
    box = Box(schemaCompatibilityStrategy="ALWAYS_COMPATIBLE")
    for each in numbered(count):
        completed(box.broker.schemas.putting(NAME, each, 0))
    box.turn()
    return box.restart()


def test_many_versions_are_read_in_slices(turns: Turns) -> None:
    box = with_versions(300)
    client = box.client()
    spaced = of_type("JSON", json.dumps(record("A", field("a", default=7)), indent=4).encode())
    assert client.producer(1, schema=spaced) is None
    box.advance(20)
    assert client.names() == ["producer_success"]
    assert client.cnx.producers[1].schema_version == (7).to_bytes(8, "big")
    assert client.producer(2, schema=spaced).schema_version == (7).to_bytes(8, "big"), "recognised at once from now on"
    assert client.producer(3, schema=numbered(300)[299]).schema_version == (299).to_bytes(8, "big")
    turns.check()


def test_the_newest_is_found_without_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    box = with_versions(300)
    looked = []
    raw = box.broker.catalog.raw

    def counted(key: str) -> bytes | None:
        looked.append(key)
        return raw(key)

    monkeypatch.setattr(box.broker.catalog, "raw", counted)
    assert box.broker.schemas.get(NAME).version == 299  # type: ignore[union-attr]
    assert len(looked) < 30
    assert list(box.broker.schemas.numbers(NAME)) == list(range(300))
    box.broker.schemas.delete(NAME)
    assert box.broker.schemas.get(NAME) is None and list(box.broker.schemas.numbers(NAME)) == [300]
    completed(box.broker.schemas.putting(NAME, OLD, 0))
    assert box.broker.schemas.get(NAME).version == 301  # type: ignore[union-attr]


def test_readers_of_messages_get_the_newest_that_memory_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    box = with_versions(30)
    monkeypatch.setattr("pulsarbox.broker.topic.topic_schemas._READABLE_MAX", 10)
    found = box.broker.schemas.by_version(NAME)
    assert sorted(found) == list(range(20, 30)) and len(found) == 10 and found.get(3) is None
    assert found[25] == numbered(30)[25] and found[25] is found[25]
    monkeypatch.setattr("pulsarbox.broker.topic.topic_schemas._READABLE_BYTES_MAX", 300)
    assert sorted(box.broker.schemas.by_version(NAME)) == [28, 29]
    box.broker.schemas.delete(NAME)
    assert not box.broker.schemas.by_version(NAME)


def test_memory_of_versions_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pulsarbox.broker.topic.schema_versions.VERSIONS_MAX", 10)
    cache = VersionCache()
    for name in "abcdef":
        versions = TopicVersions()
        for number, schema in enumerate(numbered(2)):
            versions.add(number, schema)
        cache.put(name, versions)
    assert [name for name in "abcdef" if cache.get(name) is not None] == ["d", "e", "f"]
    versions = TopicVersions()
    for number in range(3 * VERDICTS_MAX):
        versions.recognise((4, b"%d" % number), 0)
    assert len(versions.by_digest) == VERDICTS_MAX
