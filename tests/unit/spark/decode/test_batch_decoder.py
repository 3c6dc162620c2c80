"""Bulk decoding of entries equals decoding one by one, for any metadata."""

from itertools import accumulate
from random import Random
from typing import Any, cast

import pytest
from google.protobuf.message import Message
from google.protobuf.wrappers_pb2 import DoubleValue
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.plugins.compression.wire import CODECS, compress
from pulsarbox.protocol.checksum import crc32c
from pulsarbox.protocol.PulsarApi_pb2 import KeyValue, MessageMetadata, SingleMessageMetadata
from pulsarbox.spark.access import Entry
from pulsarbox.spark.access.volume_blocks import Block
from pulsarbox.spark.connect.broker_api import Service
from pulsarbox.spark.decode import batch_decoder
from pulsarbox.spark.decode.batch_decoder import BatchDecoder
from pulsarbox.spark.decode.entry_decoder import _Opening
from pulsarbox.spark.decode.message_columns import COLUMNS, Messages
from pulsarbox.spark.decode.protobuf_columns import Many
from pulsarbox.spark.topic_segments import Lost, TopicSegment

T = "persistent://public/default/t-partition-3"
SEGMENT = TopicSegment(T, 7, 0, 1 << 40, 100, 1000)

text = st.text("abcé", max_size=4)
numbers = st.integers(0, 2**64 - 1) | st.integers(0, 300)
pairs = st.lists(st.builds(KeyValue, key=st.sampled_from("ab") | text, value=text), max_size=3)
own = {
    "partition_key": text, "partition_key_b64_encoded": st.booleans(), "ordering_key": st.binary(max_size=5),
    "event_time": numbers, "null_value": st.booleans(), "properties": pairs,
}  # fmt: skip
alone = st.fixed_dictionaries(
    {"producer_name": text, "sequence_id": numbers, "publish_time": numbers},
    optional={**own, "schema_version": st.binary(max_size=8), "replicated_from": text},
)
in_batch = st.fixed_dictionaries({}, optional={**own, "sequence_id": numbers, "compacted_out": st.booleans()})
unknown = st.sampled_from([b"", b"\xa8\x3e\x07", b"\xaa\x3e\x03abc", b"\xad\x3e1234"])


class Told:
    """Service that records losses."""

    def __init__(self) -> None:
        self.told: list[Lost] = []

    def lost(self, lost: Lost) -> None:
        self.told.append(lost)


def written(message: Message, order: int, more: bytes) -> bytes:
    """Encode the fields in a different order, as other writers may; the first copy of a repeated field is
    overridden."""
    random = Random(order)  # not security-relevant
    parts = [more]
    for field, value in message.ListFields():
        one = type(message)()
        if field.is_repeated:
            getattr(one, field.name).extend(value)
        else:
            setattr(one, field.name, value)
            if order % 5 == 1:
                parts.append(one.SerializePartialToString())
        parts.append(one.SerializePartialToString())
    if order % 3:
        random.shuffle(parts)
    return b"".join(parts)


def frame(metadata: bytes, body: bytes, at: int) -> Entry:
    covered = len(metadata).to_bytes(4) + metadata + body
    return 7, at, b"\x0e\x01" + crc32c(covered).to_bytes(4) + covered


def one_by_one(entries: list[Entry], wanted: frozenset[str]) -> tuple[Messages, int]:
    told = Told()
    opening = _Opening(SEGMENT, wanted, cast(Service, told))
    count = opening._open(entries)
    opening._make()
    assert count == len(entries)
    return opening.take(), len(told.told)


def check(entries: list[Entry], wanted: frozenset[str], *, has_to: bool) -> None:
    made = Messages(T, 3)
    added = BatchDecoder(wanted).add(entries, made)
    expected, lost = one_by_one(entries, wanted)
    if added is None:
        assert made == Messages(T, 3), "nothing may be added"
        assert not has_to
    else:
        assert (made, lost) == (expected, 0)


some_columns = st.sets(st.sampled_from(sorted(COLUMNS))).map(frozenset) | st.just(COLUMNS)


@given(st.lists(st.tuples(alone, st.integers(0, 99), unknown, st.binary(max_size=9)), min_size=1, max_size=6),
       st.integers(0, 2**40), some_columns)  # fmt: skip
def test_messages_alone(given: list[Any], first: int, wanted: frozenset[str]) -> None:
    entries = [
        frame(written(MessageMetadata(**fields), order, more), body, first + at)
        for at, (fields, order, more, body) in enumerate(given)
    ]
    check(entries, wanted, has_to=all(order % 5 != 1 for _, order, _, _ in given))


def a_batch(singles: list[Any], codec: str, at: int) -> Entry:
    body, is_usual = b"", True
    for fields, order, more, payload in singles:
        made = SingleMessageMetadata(payload_size=len(payload), **fields)
        is_usual = is_usual and not order
        metadata = written(made, order, more) if order else made.SerializeToString() + more
        body += len(metadata).to_bytes(4) + metadata + payload
    head = MessageMetadata(
        producer_name="p", sequence_id=5, publish_time=6, num_messages_in_batch=len(singles), schema_version=b"1"
    )
    if codec != "none":
        head.compression, head.uncompressed_size = cast(Any, CODECS[codec]), len(body)
        body = compress(CODECS[codec], body)
    return frame(head.SerializeToString(), body, at)


@given(
    st.lists(
        st.tuples(
            st.lists(st.tuples(in_batch, st.integers(0, 99), unknown, st.binary(max_size=300)), min_size=1, max_size=4),
            st.sampled_from(["none", "zlib", "zstd"]),
        ),
        min_size=1,
        max_size=3,
    ),
    st.booleans(),
    some_columns,
)
def test_batches(given: list[Any], usual: bool, wanted: frozenset[str]) -> None:
    if usual:  # fields in the order used by clients
        given = [([(fields, 0, more, body) for fields, _, more, body in singles], codec) for singles, codec in given]
    entries = [a_batch(singles, codec, at) for at, (singles, codec) in enumerate(given)]
    check(entries, wanted, has_to=usual)


@given(alone, st.binary(max_size=30), st.integers(0, 3), some_columns)
def test_what_is_no_metadata(fields: Any, wrong: bytes, where: int, wanted: frozenset[str]) -> None:
    whole = MessageMetadata(**fields).SerializeToString()
    entries = [frame(wrong if at == where else whole, b"", at) for at in range(3)]
    check(entries, wanted, has_to=False)


TOPICS = [(T, 3), ("persistent://public/default/alone", -1), ("persistent://public/default/t-partition-300", 300)]


def block_of(frames: list[tuple[int, bytes]], first: int) -> Block:
    """A block with entries of several ledgers in the given order; the number of an entry selects its topic."""
    data, bodies, nexts = b"gap", [], [first] * len(TOPICS)
    numbers, entries, metadata = [], [], []
    for number, stored in frames:
        size = int.from_bytes(stored[6:10])
        numbers.append(number)
        entries.append(nexts[number])
        nexts[number] += 1
        metadata.append(stored[10 : 10 + size])
        bodies += [len(data) + 10 + size, len(data) + len(stored)]
        data += stored + b"gap"
    return Block(data, numbers, entries, metadata, bodies, {number: 7 + number for number in range(len(TOPICS))})


def of_topic(some: Messages, number: int) -> Messages:
    """The messages of one topic."""
    topic, partition = TOPICS[number]
    rows = [row for row, of in enumerate(some.of) if of == number]
    found = Messages(topic, partition, len(rows))
    counts = [0, *accumulate(some.properties.counts)]
    for row in rows if some.properties.counts else []:
        begin, end = counts[row], counts[row + 1]
        found.properties.counts.append(end - begin)
        found.properties.names += some.properties.names[begin:end]
        found.properties.values += some.properties.values[begin:end]
    for name in COLUMNS - {"properties"}:
        column = some.payloads() if name == "payload" else getattr(some, name)
        setattr(found, name, [column[row] for row in rows] if column else [])
    return found


numbered = st.integers(0, len(TOPICS) - 1)


@given(
    st.lists(st.tuples(numbered, alone, st.integers(0, 99), st.binary(max_size=9)), min_size=1, max_size=8)
    | st.lists(
        st.tuples(
            numbered,
            st.lists(st.tuples(in_batch, st.just(0), unknown, st.binary(max_size=300)), min_size=1, max_size=4),
            st.sampled_from(["none", "zlib", "zstd"]),
        ),
        min_size=1,
        max_size=4,
    ),
    st.integers(0, 300) | st.integers(0, 2**40),
    some_columns,
)
def test_a_block_says_what_the_entries_of_each_topic_do(given: list[Any], first: int, wanted: frozenset[str]) -> None:
    frames = [
        (each[0], frame(written(MessageMetadata(**each[1]), each[2], b""), each[3], 0)[2])
        if len(each) == 4
        else (each[0], a_batch(each[1], each[2], 0)[2])
        for each in given
    ]
    block = block_of(frames, first)
    found = BatchDecoder(wanted).block(block, TOPICS)
    assert found is not None or any(len(each) == 4 and each[2] % 5 == 1 for each in given)
    for number, entries in block.each().items():
        topic, partition = TOPICS[number]
        expected = Messages(topic, partition)
        if BatchDecoder(wanted).add(entries, expected) is not None and found is not None:
            assert of_topic(found, number) == expected


def test_what_is_special_in_a_block_is_left_alone() -> None:
    usual = MessageMetadata(producer_name="p", sequence_id=5, publish_time=6)
    special = MessageMetadata(producer_name="p", sequence_id=5, publish_time=6, num_chunks_from_msg=2)
    frames = [(at, frame(each.SerializeToString(), b"x", 0)[2]) for at, each in enumerate((usual, special))]
    assert BatchDecoder(COLUMNS).block(block_of(frames, 0), TOPICS) is None
    found = BatchDecoder(COLUMNS).block(block_of(frames[:1], 0), TOPICS)
    assert found is not None and found.payloads() == [b"x"]


@given(st.binary(max_size=60), st.integers(0, 4), some_columns)
def test_what_is_no_batch(body: bytes, count: int, wanted: frozenset[str]) -> None:
    head = MessageMetadata(producer_name="p", sequence_id=5, publish_time=6, num_messages_in_batch=count)
    check([frame(head.SerializeToString(), body, 0)], wanted, has_to=False)


@pytest.mark.parametrize(
    "special",
    [
        {"num_chunks_from_msg": 2, "chunk_id": 0, "uuid": "u"},
        {"encryption_keys": [{"key": "k", "value": b"v"}]},
        {"compression": "ZLIB", "uncompressed_size": 9},
        {"compression": "ZLIB", "uncompressed_size": 99 << 20},
        {"num_messages_in_batch": 1},
    ],
)
def test_what_is_special_is_left_alone(special: dict[str, Any]) -> None:
    usual: dict[str, Any] = {"producer_name": "p", "sequence_id": 5, "publish_time": 6}
    entries = [
        frame(MessageMetadata(**usual, **more).SerializeToString(), b"xyz", at) for at, more in enumerate([{}, special])
    ]
    made = Messages(T, 3)
    assert BatchDecoder(COLUMNS).add(entries, made) is None
    assert made == Messages(T, 3)
    assert BatchDecoder(COLUMNS).add([(7, 0, b"\x0e\x01")], made) is None
    assert BatchDecoder(COLUMNS).add([(7, 0, b"\x0e\x02" + entries[0][2][2:])], made) is None
    assert BatchDecoder(COLUMNS).add([(7, 0, entries[0][2][:-5])], made) is None


def test_what_cannot_be_read_of_many_is_refused() -> None:
    with pytest.raises(ValueError, match="no field is present in every message"):
        Many(MessageMetadata, [])
    with pytest.raises(ValueError, match="has a type that cannot be decoded in bulk"):
        Many(DoubleValue, ["value"])


@given(st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy") | text), max_size=20), max_size=5))
def test_properties_that_are_as_ones_before_are_not_parsed_again(some: list[list[tuple[str, str]]]) -> None:
    known = batch_decoder._Pairs()
    for pairs in some:
        written = [KeyValue(key=key, value=value).SerializeToString() for key, value in pairs]
        found = known.apart(written)
        assert found is not None
        assert list(zip(*found, strict=True)) == [(key.encode(), value.encode()) for key, value in pairs]
        assert known.apart([*written, b"\x0a\x01k"]) is None, "one has no value"


def test_of_the_properties_that_are_known_there_are_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_decoder, "PAIRS_MAX", 10)
    known = batch_decoder._Pairs()
    for at in range(30):
        pairs = [KeyValue(key="k", value=str(at)).SerializeToString()] * 5
        assert known.apart(pairs) == ([b"k"] * 5, [str(at).encode()] * 5)
        assert len(known._names) == len(known._values) <= 10
    before = len(known._names)
    assert known.apart([KeyValue(key="k", value="x" * 300).SerializeToString()] * 5) == ([b"k"] * 5, [b"x" * 300] * 5)
    assert known.apart([KeyValue(key="k", value=f"x{at}").SerializeToString() for at in range(9)]) is not None
    assert len(known._names) == before, "neither what is long nor what differs each time is kept"
