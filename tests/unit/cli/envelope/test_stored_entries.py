"""Entries restored from envelopes equal the original entries, whatever their content."""

import base64
import itertools
import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.cli.envelope import stored_entries
from pulsarbox.cli.envelope.envelope import EnvelopeWriter
from pulsarbox.cli.envelope.seen_ids import Runs, SeenIds
from pulsarbox.cli.envelope.stored_entries import Restoration
from pulsarbox.cli.envelope.stored_message import read
from pulsarbox.client.compression import compress, decompress
from pulsarbox.client.message_decoder import ReceivedEntry, ReceivedMessage, unpack
from pulsarbox.client.places import MessageId
from pulsarbox.errors import TopicNotFound
from pulsarbox.protocol.message_encoder import Outgoing, StoredEntry, in_batch, metadata
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata, Schema, SingleMessageMetadata

TOPIC = "persistent://public/default/orders"
SCHEMA = Schema(name="orders", type=Schema.Avro, schema_data=b'{"type": "string"}')

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
words = st.integers(0, 2**64 - 1)
pairs = st.lists(st.fixed_dictionaries({"key": texts, "value": texts}), max_size=3)
optional = st.none() | st.binary(max_size=12)


def _without_none(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if value is not None}


def _with_key(found: dict[str, Any]) -> dict[str, Any]:
    text, is_base64 = found.pop("key", (None, None))
    return found | _without_none({"partition_key": text, "partition_key_b64_encoded": is_base64})


content = (
    st.fixed_dictionaries(
        {
            "properties": pairs,
            "key": st.none() | st.tuples(texts, st.none() | st.just(True)),
            "ordering_key": optional,
            "event_time": st.none() | st.integers(1, 2**64 - 1),
            "null_partition_key": st.none() | st.just(True),
        }
    )
    .map(_without_none)
    .map(_with_key)
)
common = st.fixed_dictionaries(
    {
        "producer_name": texts.filter(bool),
        "sequence_id": words,
        "publish_time": st.integers(1, 2**64 - 1),
        "deliver_at_time": st.none() | st.integers(-(2**63) + 1, 2**63 - 1).filter(bool),
        "schema_version": st.none() | st.binary(min_size=1, max_size=8),
        "compression": st.none() | st.sampled_from([2, 3]),
        "replicated_from": st.none() | texts,
        "replicate_to": st.none() | st.lists(texts, min_size=1, max_size=2),
        "schema_id": optional,
    }
).map(_without_none)
encryption = st.fixed_dictionaries(
    {
        "encryption_keys": st.lists(
            st.fixed_dictionaries({"key": texts, "value": st.binary(max_size=12), "metadata": pairs}),
            min_size=1,
            max_size=2,
        ),
        "encryption_algo": st.none() | texts,
        "encryption_param": optional,
        "uncompressed_size": st.none() | st.integers(0, 2**31 - 1),
        "null_value": st.none() | st.just(True),
        "num_messages_in_batch": st.none() | st.integers(1, 1000),
        "highest_sequence_id": st.none() | st.integers(1, 2**64 - 1),
    }
).map(_without_none)
chunk = st.fixed_dictionaries(
    {
        "uuid": texts,
        "num_chunks_from_msg": st.just(3),
        "total_chunk_msg_size": st.just(99),
        "chunk_id": st.integers(0, 2),
    }
)
payloads = st.none() | st.binary(max_size=60)
Stored = tuple[MessageMetadata, bytes]


@st.composite
def alone(draw: st.DrawFn) -> Stored:
    """An entry with a single message."""
    told = MessageMetadata(**draw(common), **draw(content))
    payload = draw(payloads)
    if payload is None:
        told.null_value = True
    return _packed(told, payload or b"")


@st.composite
def batch(draw: st.DrawFn) -> Stored:
    """An entry with a batch; it carries the key of its first message, as clients set it."""
    body, first = b"", None
    count = draw(st.integers(1, 4))
    for _ in range(count):
        payload = draw(payloads)
        single = SingleMessageMetadata(**draw(content), sequence_id=draw(words), payload_size=len(payload or b""))
        if payload is None:
            single.null_value = True
        first = first or single
        data = single.SerializeToString()
        body += len(data).to_bytes(4, "big") + data + (payload or b"")
    told = MessageMetadata(
        **draw(common) | {"sequence_id": first.sequence_id if first else 0}, num_messages_in_batch=count
    )
    assert first is not None
    for name in ("partition_key", "partition_key_b64_encoded", "ordering_key", "null_partition_key"):
        if first.HasField(name):
            setattr(told, name, getattr(first, name))
    return _packed(told, body)


@st.composite
def sealed(draw: st.DrawFn) -> Stored:
    """An entry encrypted by a client: a message, a batch, or a chunk."""
    parts = draw(common) | draw(content) | draw(encryption)
    if draw(st.booleans()):
        parts |= draw(chunk)
        parts.pop("num_messages_in_batch", None)
    return MessageMetadata(**parts), draw(st.binary(max_size=60))


def _packed(told: MessageMetadata, body: bytes) -> Stored:
    if told.compression and body:
        told.uncompressed_size = len(body)
        return told, compress(told.compression, body)
    told.ClearField("compression")
    return told, body


class Target:
    """Substitute for a client and its producer that records the published entries."""

    def __init__(self, partitions: int = 4, largest: int = 1 << 30) -> None:
        self.partitions = partitions
        self.entries: list[tuple[int, StoredEntry]] = []
        self.registered: list[tuple[str, Schema]] = []
        self.told: list[str] = []
        self._largest = largest

    def send_stored(self, stored: StoredEntry, partition: int, tokens: Sequence[int]) -> bool:
        if stored.envelope.messages and len(stored.body) > self._largest:
            return False
        self.entries.append((partition, stored))
        return True

    def register_schema(self, topic: str, schema: Schema) -> bytes:
        self.registered.append((topic, schema))
        return b"here"

    def schema(self, topic: str, version: bytes) -> Schema:
        if version != b"known":
            raise TopicNotFound("none")
        return SCHEMA

    def restoration(self) -> Restoration:
        as_it_is = lambda message: message  # noqa: E731
        return Restoration(cast(Any, self), "copy", cast(Any, self), as_it_is, self.told.append)

    def stored(self) -> list[Stored]:
        """The entries that a broker would store."""
        found = []
        for _, entry in self.entries:
            told = MessageMetadata.FromString(metadata(entry.message, entry.envelope))
            found.append((told, entry.body))
        return found


def delivered(stored: Stored, number: int = 0, partition: int = 2) -> list[ReceivedMessage]:
    """An entry as delivered to a consumer."""
    consumer = cast(Any, SimpleNamespace(topic=f"{TOPIC}-partition-{partition}", partition=partition, generation=0))
    return unpack(ReceivedEntry(consumer, 12, number, stored[0], 3), stored[1], [])


def opened(stored: Stored) -> tuple[Any, ...]:
    """An entry as decoded by its reader, without sizes and sequence IDs that are derived from other fields."""
    told, body = MessageMetadata(), stored[1]
    told.CopyFrom(stored[0])
    if not told.encryption_keys:
        if told.compression:
            body = decompress(told.compression, body, told.uncompressed_size)
        told.ClearField("uncompressed_size")
        told.ClearField("highest_sequence_id")
        if told.HasField("num_messages_in_batch"):
            told.ClearField("event_time")
    if not told.uncompressed_size:
        told.ClearField("uncompressed_size")
    if told.schema_version:
        told.schema_version = b"here"
    plain = MessageMetadata()
    plain.CopyFrom(told)
    if not told.encryption_keys:
        plain.ClearField("compression")
    return told, [(each.single, each.payload) for each in delivered((plain, body))]


@given(st.lists(alone() | batch() | sealed(), min_size=1, max_size=5), st.data())
def test_every_entry_comes_in_as_it_went_out_however_often_it_was_delivered(
    entries: list[Stored], data: st.DataObject
) -> None:
    writer, target = EnvelopeWriter(ask=lambda topic, version: SCHEMA), Target()
    restoration = target.restoration()
    lines = [[writer.line(message) for message in delivered(stored, number)] for number, stored in enumerate(entries)]
    for number, some in enumerate(lines):
        for line in some:
            restoration.add(line)
        again = data.draw(st.integers(0, number))
        for line in lines[again]:  # redelivered to the consumer
            restoration.add(line)
    restoration.flush()
    assert [opened(each) for each in target.stored()] == [opened(each) for each in entries]
    assert {partition for partition, _ in target.entries} == {2}
    assert all(schema == SCHEMA for _, schema in target.registered)


def test_metadata_that_this_version_does_not_know_is_kept() -> None:
    plain = MessageMetadata(producer_name="p", sequence_id=1, publish_time=1)
    stored = MessageMetadata.FromString(plain.SerializeToString() + b"\xf8\x7f\x05")
    target = Target()
    target.restoration().add(EnvelopeWriter().line(delivered((stored, b""))[0]))
    assert target.stored()[0][0].SerializeToString() == stored.SerializeToString()


def test_a_batch_of_which_a_part_was_delivered_is_a_smaller_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b"".join(part for number in range(4) for part in in_batch(Outgoing(b"%d" % number), number))
    told = MessageMetadata(producer_name="p", sequence_id=0, publish_time=1, num_messages_in_batch=4)
    writer, target = EnvelopeWriter(), Target()
    restoration = target.restoration()
    zero, one, two, three = (writer.line(each) for each in delivered((told, body)))
    other = writer.line(delivered((MessageMetadata(producer_name="p", sequence_id=9, publish_time=1), b"x"), 1)[0])
    for line in (one, two, other, two, three):
        restoration.add(line)
    restoration.flush()
    assert [[each.payload for each in delivered(stored)] for stored in target.stored()] == [
        [b"1", b"2"],
        [b"x"],
        [b"3"],
    ]
    assert restoration.repeated == 1
    restoration.add(zero)
    assert len(target.entries) == 3  # the rest of its batch may follow
    clock = [0.0]
    monkeypatch.setattr(stored_entries, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    for number in range(10):
        restoration.idle()
        clock[0] += stored_entries.IDLE_SECONDS / 2
        restoration.add(one)
        assert (len(target.entries), restoration.repeated) == (3, 2 + number), "a repeated message is input too"
    restoration.idle()
    clock[0] += stored_entries.IDLE_SECONDS - 0.1
    restoration.idle()
    assert len(target.entries) == 3
    clock[0] += 0.2
    restoration.idle()
    assert len(target.entries) == 4


def test_a_batch_that_is_too_large_here_goes_message_by_message() -> None:
    body = b"".join(part for number in range(3) for part in in_batch(Outgoing(b"x" * 50), number))
    told = MessageMetadata(producer_name="p", sequence_id=0, publish_time=1, num_messages_in_batch=3)
    target = Target(largest=100)
    restoration = target.restoration()
    for each in delivered((told, body)):
        restoration.add(EnvelopeWriter().line(each))
    assert [entry.body for _, entry in target.entries] == [b"x" * 50] * 3
    assert [told.sequence_id for told, _ in target.stored()] == [0, 1, 2]


def test_a_partition_that_is_not_there_is_said_once() -> None:
    target = Target(partitions=2)
    restoration = target.restoration()
    for number in range(3):
        stored = MessageMetadata(producer_name="p", sequence_id=number, publish_time=1), b""
        restoration.add(EnvelopeWriter().line(delivered(stored, number)[0]))
    assert target.told == ["copy has 2 partitions: messages of partition 2 are routed again"]


def test_a_schema_version_means_what_the_input_says_or_what_the_topic_has() -> None:
    target = Target()
    restoration = target.restoration()
    line = b'{"payload": "", "topic": "%s", "schema": "%s", "seq": 1%s}'
    known, other = base64.b64encode(b"known"), base64.b64encode(b"\0\0\0\3")
    restoration.add(line % (b"persistent://public/default/a", known, b""))
    assert target.stored()[0][0].schema_version == b"known"
    assert "does not define schema version" in target.told[0]
    with pytest.raises(ValueError, match="schema version 3 is defined neither by the input nor by copy"):
        restoration.add(line % (b"persistent://public/default/a", other, b""))
    defined = b', "schema_definition": {"name": "n", "type": "JSON", "data_b64": "AP8=", "properties": [["a", "b"]]}'
    restoration.add(line % (b"persistent://public/default/a-partition-1", other, defined))
    restoration.add(line % (b"persistent://public/default/a-partition-2", other, b""))
    assert [told.schema_version for told, _ in target.stored()[1:]] == [b"here", b"here"]
    ((topic, schema),) = target.registered
    assert (topic, schema.type, schema.schema_data, schema.properties[0].key) == ("copy", Schema.Json, b"\0\xff", "a")


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"id": "x"}, "invalid id 'x'; expected ledger:entry"),
        ({"id": "1:2:-1:5", "batch": 5}, "the batch index is not below 5"),
        ({"id": "1:2:-1:99999999"}, "the batch index is not below 1048576"),
        ({"batch": -1}, "batch: expected a number"),
        ({"batch": True}, "batch: expected a number"),
        ({"seq": 2**64}, "seq: expected a number from 0 to"),
        ({"compression": "brotli"}, "unknown compression 'brotli'; expected one of"),
        ({"producer": 1}, "producer is not text"),
        ({"topic": {}}, "topic is not text"),
        ({"schema": "?"}, "schema is not base64"),
        ({"metadata_b64": "?"}, "metadata_b64 is not base64"),
        ({"metadata_b64": "/w=="}, "metadata_b64 is not a valid Protobuf MessageMetadata"),
        ({"schema_definition": []}, "schema_definition: expected an object"),
        ({"schema_definition": {"name": "a", "type": "b", "data": ""}}, "schema_definition: expected an object"),
    ],
)
def test_what_cannot_be_stored_is_refused_in_words(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Target().restoration().add(json.dumps({"payload": ""} | fields).encode())


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "id",
                "batch",
                "seq",
                "schema",
                "topic",
                "metadata_b64",
                "encrypted",
                "chunks",
                "schema_definition",
                "compression",
                "publish_time",
                "key_b64",
                "props",
            ]
        ),
        st.none() | st.booleans() | st.integers() | texts | st.lists(texts) | st.dictionaries(texts, texts),
    )
)
def test_any_object_is_read_or_refused(fields: dict[str, Any]) -> None:  # fmt: skip
    try:
        read(json.dumps({"payload": "x"} | fields).encode())
    except ValueError:
        pass


def test_a_key_that_its_producer_called_base64_by_mistake_is_kept() -> None:
    stored = MessageMetadata(
        producer_name="p", sequence_id=0, publish_time=1, partition_key="?", partition_key_b64_encoded=True
    )
    target = Target()
    target.restoration().add(EnvelopeWriter().line(delivered((stored, b""))[0]))
    assert target.stored()[0][0].partition_key == "?"


# Sets of seen IDs


@given(st.lists(st.integers(0, 30)))
def test_runs_hold_what_was_added(numbers: list[int]) -> None:
    runs, held = Runs(), set()
    for number in numbers:
        assert (number in runs) == (number in held)
        if number not in held:
            runs.add(number)
            held.add(number)
    assert {each for first, last in runs for each in range(first, last + 1)} == held
    ends = list(runs)
    assert all(one[1] + 1 < two[0] for one, two in itertools.pairwise(ends))


def test_ids_in_their_order_take_no_room() -> None:
    seen = SeenIds()
    for entry in range(10_000):
        assert seen.add("a", MessageId(1, entry), 0)
        assert not seen.add("a", MessageId(1, entry), 0)
    for entry in range(10_000, 11_000):
        for index in (1, 0, 2):
            assert seen.add("a", MessageId(1, entry, index), 3)
            assert not seen.add("a", MessageId(1, entry, index), 3)
    assert list(seen._entries["a", 1]) == [(0, 10_999)]
    assert not seen._partly
    assert seen.add("b", MessageId(1, 1), 0)
