"""Messages of received entries."""

import pytest

from pulsarbox.protocol.ack_sets import words_of
from pulsarbox.protocol.batch import encode_batch
from pulsarbox.protocol.PulsarApi_pb2 import CommandMessage, MessageIdData, MessageMetadata, SingleMessageMetadata
from pulsarbox.server.websocket import entry_messages
from pulsarbox.server.websocket.entry_messages import UnreadableEntry, messages_of, uncompressed

WHERE = MessageIdData(ledgerId=3, entryId=7)


def received(bits: int = 0) -> CommandMessage:
    return CommandMessage(consumer_id=1, message_id=WHERE, redelivery_count=2, ack_set=words_of(bits))


def batch(count: int) -> tuple[MessageMetadata, bytes]:
    messages = [(SingleMessageMetadata(payload_size=0), str(number).encode()) for number in range(count)]
    return MessageMetadata(num_messages_in_batch=count, publish_time=5), encode_batch(messages)


def test_a_single_message() -> None:
    metadata = MessageMetadata(publish_time=5, partition_key="k", event_time=6)
    metadata.properties.add(key="a", value="b")
    [message] = messages_of(received(), metadata, b"x", 4)
    assert message is not None
    assert message.payload == b"x"
    assert message.about() == {
        "messageId": "CAMQBxgEMAA=",
        "properties": {"a": "b"},
        "publishTime": "1970-01-01T00:00:00.005Z",
        "redeliveryCount": 2,
        "eventTime": "1970-01-01T00:00:00.006Z",
        "key": "k",
    }


def test_a_null_value_is_empty() -> None:
    [message] = messages_of(received(), MessageMetadata(null_value=True), b"", -1)
    assert message is not None
    assert message.payload == b""


@pytest.mark.parametrize(("bits", "expected"), [(0, [0, 1, 2]), (0b101, [0, 2]), (0b010, [1]), (0b1010, [1])])
def test_unacknowledged_messages_of_a_batch(bits: int, expected: list[int]) -> None:
    found = [each for each in messages_of(received(bits), *batch(3), -1) if each is not None]
    assert [int(each.payload) for each in found] == expected
    assert [(each.id.batch_index, each.id.batch_size) for each in found] == [(index, 3) for index in expected]


def test_many_acknowledged_messages_take_several_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_messages, "SKIPPED_IN_TURN", 10)
    found = list(messages_of(received(1 << 99), *batch(100), -1))
    assert [each is None for each in found] == [True] * 10 + [False]


def test_a_damaged_batch() -> None:
    metadata, body = batch(3)
    with pytest.raises(UnreadableEntry):
        list(messages_of(received(), metadata, body[:-2], -1))


async def test_a_body_that_cannot_be_decompressed() -> None:
    for compression, size in (("ZLIB", 5), ("ZSTD", 1 << 30)):
        with pytest.raises(UnreadableEntry):
            await uncompressed(MessageMetadata(compression=compression, uncompressed_size=size), b"x")
