"""The hand-written message encoder is byte-identical to protobuf."""

from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.protocol.batch import iterate_batch
from pulsarbox.protocol.commands import parse_command
from pulsarbox.protocol.frames import FrameDecoder
from pulsarbox.protocol.message_encoder import Envelope, Outgoing, in_batch, metadata, plain_in_batch, send_frame
from pulsarbox.protocol.metadata import parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import CompressionType, KeyValue, MessageMetadata, SingleMessageMetadata

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
sizes = st.integers(0, 2**63)
outgoing = st.builds(
    Outgoing,
    payload=st.none() | st.binary(max_size=5000),
    key=st.none() | words,
    key_is_base64=st.booleans(),
    ordering_key=st.none() | st.binary(max_size=200),
    properties=st.lists(st.tuples(words, words), max_size=3),
    event_time=sizes,
    deliver_at=st.integers(0, 2**63 - 1),
    schema_version=st.none() | st.binary(max_size=10),
    null_key=st.booleans(),
)
envelopes = st.builds(
    Envelope,
    producer_name=words,
    sequence_id=sizes,
    publish_time=sizes,
    compression=st.integers(0, 4),
    uncompressed_size=st.integers(0, 2**32 - 1),
    messages=st.integers(0, 2**31 - 1),
    highest_sequence_id=sizes,
    chunk=st.none() | st.tuples(words, *[st.integers(0, 2**31 - 1)] * 3),
    txn=st.none() | st.tuples(sizes, sizes),
    fields=st.just(b""),
)


def pairs(message: Outgoing) -> list[KeyValue]:
    return [KeyValue(key=name, value=value) for name, value in message.properties]


@given(outgoing, sizes)
def test_a_message_in_a_batch(message: Outgoing, sequence_id: int) -> None:
    expected = SingleMessageMetadata(
        properties=pairs(message),
        partition_key=message.key,
        payload_size=len(message.payload or b""),
        event_time=message.event_time or None,
        partition_key_b64_encoded=message.key_is_base64 or None,
        ordering_key=message.ordering_key,
        sequence_id=sequence_id,
        null_value=True if message.payload is None else None,
        null_partition_key=message.null_key or None,
    )
    head, payload = in_batch(message, sequence_id)
    data = expected.SerializeToString()
    assert (head, payload) == (len(data).to_bytes(4, "big") + data, message.payload or b"")


@given(st.binary(max_size=5000), sizes)
def test_a_plain_message_in_a_batch(payload: bytes, sequence_id: int) -> None:
    assert plain_in_batch(payload, sequence_id) == in_batch(Outgoing(payload), sequence_id)


@given(outgoing, envelopes)
def test_the_metadata_of_an_entry(message: Outgoing, envelope: Envelope) -> None:
    uuid, chunks, size, index = envelope.chunk or (None, None, None, None)
    most, least = envelope.txn or (None, None)
    expected = MessageMetadata(
        producer_name=envelope.producer_name,
        sequence_id=envelope.sequence_id,
        publish_time=envelope.publish_time,
        properties=pairs(message),
        partition_key=message.key,
        compression=CompressionType.Name(envelope.compression) if envelope.compression else None,
        uncompressed_size=envelope.uncompressed_size if envelope.compression else None,
        num_messages_in_batch=envelope.messages or None,
        event_time=message.event_time or None,
        schema_version=message.schema_version,
        partition_key_b64_encoded=message.key_is_base64 or None,
        ordering_key=message.ordering_key,
        deliver_at_time=message.deliver_at or None,
        txnid_most_bits=most,
        txnid_least_bits=least,
        highest_sequence_id=envelope.highest_sequence_id or None,
        null_value=True if message.payload is None else None,
        uuid=uuid,
        num_chunks_from_msg=chunks,
        total_chunk_msg_size=size,
        chunk_id=index,
        null_partition_key=message.null_key or None,
    )
    assert metadata(message, envelope) == expected.SerializeToString()


@given(outgoing, envelopes, st.integers(0, 2**64 - 1), st.binary(max_size=3000))
def test_a_frame_of_send(message: Outgoing, envelope: Envelope, producer_id: int, body: bytes) -> None:
    decoder = FrameDecoder(1 << 20)
    ((command, rest),) = decoder.feed(send_frame(producer_id, envelope, metadata(message, envelope), body))
    send = parse_command(command).send
    assert (send.producer_id, send.sequence_id) == (producer_id, envelope.sequence_id)
    assert (send.num_messages, send.is_chunk) == (max(1, envelope.messages), envelope.chunk is not None)
    assert send.highest_sequence_id == envelope.highest_sequence_id
    bits = (send.txnid_most_bits, send.txnid_least_bits) if send.HasField("txnid_least_bits") else None
    assert bits == envelope.txn
    entry = parse_entry(rest)
    assert entry.metadata.producer_name == envelope.producer_name
    assert rest[entry.body_offset :] == body


@given(st.lists(outgoing, max_size=5))
def test_a_batch_can_be_taken_apart(messages: list[Outgoing]) -> None:
    body = b"".join(part for number, message in enumerate(messages) for part in in_batch(message, number))
    found = [(single.sequence_id, payload) for single, payload in iterate_batch(body, len(messages))]
    assert found == [(number, message.payload or b"") for number, message in enumerate(messages)]


def test_bytes_that_are_no_text_pass_through() -> None:
    strange = b"\xff\xfe\x80".decode("utf-8", "surrogateescape")
    data = metadata(Outgoing(b"", key=strange, properties=[(strange, "x")]), Envelope("p", 0, 1))
    assert data.count(b"\xff\xfe\x80") == 2
    head, payload = in_batch(Outgoing(b"p", strange, event_time=5, properties=[("x", strange)], ordering_key=b"o"), 7)
    assert (head.count(b"\xff\xfe\x80"), payload) == (2, b"p")
    plain = in_batch(Outgoing(b"p", "???", event_time=5, properties=[("x", "???")], ordering_key=b"o"), 7)[0]
    assert head.replace(b"\xff\xfe\x80", b"???") == plain
