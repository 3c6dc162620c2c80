"""Dead letters moved by the box: content, target topic and retention."""

import logging
from typing import Any

import pytest

from pulsarbox.broker.dead_letter.retention_warning import drops_dead_letters
from pulsarbox.broker.policies.kinds.dead_letter import DeadLetterPolicy
from pulsarbox.names import COMPACTION_SUBSCRIPTION, parse_topic
from pulsarbox.plugins.compression.wire import CODECS, compress, decompress
from pulsarbox.protocol.batch import encode_batch, iterate_batch
from pulsarbox.protocol.commands import parse_command
from pulsarbox.protocol.metadata import key_values
from pulsarbox.protocol.PulsarApi_pb2 import (
    EncryptionKeys,
    KeyValue,
    MessageIdData,
    Schema,
    SingleMessageMetadata,
)
from pulsarbox.protocol.schema.steps import completed
from tests.unit.broker.dead_letters_playbook import (
    DLQ,
    EXCLUSIVE,
    backlog,
    bodies,
    give_back,
    join,
    letters,
    set_policy,
    subscription_of,
    topic_of,
)
from tests.unit.broker.playbook import AS_PULSAR, TOPIC, Box

# Content


def single(payload: bytes, **fields: Any) -> tuple[SingleMessageMetadata, bytes]:
    return SingleMessageMetadata(payload_size=len(payload), **fields), payload


def batch_of(payloads: list[bytes], codec: str = "none") -> tuple[bytes, dict[str, Any]]:
    plain = encode_batch(single(each, partition_key=f"k{i}") for i, each in enumerate(payloads))
    number = CODECS[codec]
    return compress(number, plain), {"compression": number, "uncompressed_size": len(plain)} if number else {}


@pytest.mark.parametrize("codec", ["none", "zlib", "zstd"])
def test_of_a_batch_what_is_left_moves(codec: str) -> None:
    box = Box(acknowledgmentAtBatchIndexLevelEnabled=True)
    client = join(box)
    set_policy(box, 0)
    producer = box.client()
    producer.producer(1)
    body, fields = batch_of([b"a", b"b", b"c", b"d"], codec)
    producer.send(0, body, batch=4, highest=3, **fields)
    (at,) = client.received()
    client.ack(MessageIdData(ledgerId=at[0], entryId=at[1], ack_set=[0b1010], batch_size=4))  # b and d remain
    give_back(client, at)
    ((metadata, packed),) = letters(box)
    plain = decompress(CODECS[codec], packed, metadata.uncompressed_size)
    opened = list(iterate_batch(plain, metadata.num_messages_in_batch))
    assert [(each.partition_key, payload) for each, payload in opened] == [("k1", b"b"), ("k3", b"d")]
    told = [key_values(each.properties) for each, _ in opened]
    assert [each["ORIGIN_MESSAGE_ID"] for each in told] == [f"{at[0]}:{at[1]}:-1:1", f"{at[0]}:{at[1]}:-1:3"]
    assert {each["REAL_SUBSCRIPTION"] for each in told} == {"s"}
    assert backlog(box) == 0
    assert subscription_of(box).dead_letters.messages == 2
    assert topic_of(box, DLQ).ledger.confirmed_messages == 2


@pytest.mark.parametrize(
    "fields", [{"encryption_keys": [EncryptionKeys(key="k", value=b"v")]}, {"compression": 3, "uncompressed_size": 9}]
)
def test_a_batch_that_cannot_be_opened_moves_as_a_whole(fields: dict[str, Any]) -> None:
    box = Box()
    client = join(box)
    set_policy(box, 0)
    producer = box.client()
    producer.producer(1)
    producer.send(0, b"sealed", batch=3, highest=2, **fields)
    (at,) = client.received()
    give_back(client, at)
    ((metadata, body),) = letters(box)
    assert body == b"sealed"
    assert metadata.num_messages_in_batch == 3
    assert key_values(metadata.properties)["REAL_TOPIC"] == TOPIC
    assert backlog(box) == 0


def test_a_message_goes_as_it_was() -> None:
    box = Box()
    client = join(box)
    set_policy(box, 0)
    producer = box.client()
    producer.producer(1)
    properties = [KeyValue(key="colour", value="red"), KeyValue(key="REAL_TOPIC", value="where it was first")]
    kept: dict[str, Any] = {
        "partition_key": "k",
        "ordering_key": b"o",
        "event_time": 77,
        "compression": 2,
        "uncompressed_size": 5,
    }
    encrypted: dict[str, Any] = {"encryption_keys": [EncryptionKeys(key="k", value=b"v")], "encryption_algo": "AES"}
    past = {"deliver_at_time": box.wall - 1, "publish_time": box.wall - 5000}
    producer.send(41, b"body", properties=properties, **kept, **encrypted, **past)
    (at,) = client.received()
    give_back(client, at)
    ((metadata, body),) = letters(box)
    assert body == b"body"
    for name, value in kept.items():
        assert getattr(metadata, name) == value
    assert (metadata.producer_name, metadata.sequence_id) == ("p", 41)
    assert (metadata.encryption_algo, metadata.encryption_keys[0].value) == ("AES", b"v")
    assert (metadata.publish_time, metadata.HasField("deliver_at_time")) == (box.wall, False)
    told = key_values(metadata.properties)
    assert (told["colour"], told["REAL_TOPIC"]) == ("red", "where it was first")
    assert told["ORIGIN_PUBLISH_TIME"] == str(box.wall - 5000)


def test_the_chunks_of_a_message_move_one_after_another() -> None:
    box = Box()
    set_up = join(box, permits=0)
    set_policy(box, 1)
    producer = box.client()
    producer.producer(1)
    for chunk in range(3):
        producer.send(7, b"%d" % chunk, uuid="u", chunk_id=chunk, num_chunks_from_msg=3, total_chunk_msg_size=3)
    set_up.cnx.closed(box.now)
    for _ in range(2):
        client = join(box)
        assert len(client.received()) == 3
        client.cnx.closed(box.now)
    assert join(box).received() == []
    assert [(each.chunk_id, each.uuid, body) for each, body in letters(box)] == [
        (0, "u", b"0"), (1, "u", b"1"), (2, "u", b"2"),
    ]  # fmt: skip


def test_its_schema_is_known_in_the_dead_letter_topic() -> None:
    box = Box()
    client = join(box)
    set_policy(box, 0)
    other = Schema(name="o", type=Schema.String, schema_data=b"")
    completed(box.broker.schemas.putting(parse_topic(DLQ), other, box.wall))
    producer = box.client()
    schema = Schema(name="x", type=Schema.Json, schema_data=b'"string"')
    version = producer.producer(1, schema=schema).schema_version
    producer.send(0, schema_version=version)
    (at,) = client.received()
    give_back(client, at)
    ((metadata, _),) = letters(box)
    assert metadata.schema_version == (1).to_bytes(8, "big")
    found = box.broker.schemas.get(parse_topic(DLQ), 1)
    assert found is not None and found.schema.schema_data == schema.schema_data


def test_deduplication_of_its_topic_swallows_nothing() -> None:
    box = Box(brokerDeduplicationEnabled=True)
    client = join(box)
    set_policy(box, 0)
    first = box.client()
    first.producer(1, producer_name="one")
    first.send(5, b"a")
    first.send(6, b"b")
    into = box.client()
    into.producer(1, DLQ, producer_name="p")
    into.send(9, b"high")
    sent = client.received()
    give_back(client, *sent)
    assert bodies(box) == [b"high", b"a", b"b"]


# Target topic


def test_of_partitions_a_key_has_one() -> None:
    box = Box()
    client = join(box)
    target = parse_topic("persistent://public/default/dead")
    box.broker.topics.create_partitioned(target, 3, box.now)
    set_policy(box, 0, deadLetterTopic="dead")
    producer = box.client()
    producer.producer(1)
    for i in range(12):
        keyed: dict[str, Any] = {"partition_key": "k"} if i < 6 else {}
        producer.send(i, b"%d" % i, **keyed)
    give_back(client, *client.received())
    found = [bodies(box, str(target.partition(i))) for i in range(3)]
    assert sorted(body for each in found for body in each) == sorted(b"%d" % i for i in range(12))
    assert sorted(len([body for body in each if int(body) < 6]) for each in found) == [0, 0, 6]
    assert all(any(int(body) >= 6 for body in each) for each in found)
    assert all("dead-letters" in topic_of(box, str(target.partition(i))).subscriptions for i in range(3))


def test_of_a_partition_the_names_are_those_of_the_topic() -> None:
    partition = parse_topic(f"{TOPIC}-partition-2")
    policy = DeadLetterPolicy.read({"maxRedeliverCount": 1}, partition, "s")
    assert str(policy.topic) == DLQ


def test_its_topic_is_made_again_and_keeps_what_it_is_given() -> None:
    box = Box()
    client = join(box)
    set_policy(box, 0, initialSubscriptionName="kept")
    box.broker.topics.delete(parse_topic(DLQ), box.now, force=True)
    (at,) = box.client().publish(1)
    client.received()
    give_back(client, at)
    assert client.received() == []
    assert topic_of(box, DLQ).subscriptions["kept"].cursor.backlog_messages == 1


def test_a_subscription_that_somebody_made_is_enough() -> None:
    box = Box()
    join(box, permits=0)
    box.client().subscribe("mine", topic=DLQ)
    set_policy(box)
    assert list(topic_of(box, DLQ).subscriptions) == ["mine"]


def test_the_subscription_of_compaction_is_not_enough() -> None:
    box = Box(brokerServiceCompactionThresholdInBytes=1, **AS_PULSAR)
    join(box, permits=0)
    set_policy(box, initialSubscriptionName="kept")
    assert sorted(topic_of(box, DLQ).subscriptions) == [COMPACTION_SUBSCRIPTION, "kept"]
    topic_of(box, DLQ).remove_subscription(topic_of(box, DLQ).subscriptions["kept"], box.now)
    assert drops_dead_letters(topic_of(box, DLQ)), "it is told of before anything is lost"


def test_a_topic_that_does_not_take_it_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    box = Box()
    client = join(box)
    set_policy(box, 0)
    topic_of(box, DLQ).termination.begin(lambda *_: None, lambda _: None, box.now)
    box.turn()
    (at,) = box.client().publish(1)
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            assert client.received() == [at]
            give_back(client, at)
    assert subscription_of(box).dead_letters.refused == "Topic was already terminated"
    assert len([each for each in caplog.records if "which rejected it" in each.message]) == 1
    assert backlog(box) == 1
    set_policy(box, 0, deadLetterTopic="elsewhere")
    give_back(client, at)
    assert bodies(box, "persistent://public/default/elsewhere") == [b"0"]
    assert subscription_of(box).dead_letters.refused == ""


def test_its_quota_holds_for_dead_letters() -> None:
    box = Box(backlogQuotaDefaultLimitBytes=1000, backlogQuotaDefaultRetentionPolicy="producer_exception")
    client = join(box)
    set_policy(box, 0)
    producer = box.client()
    producer.producer(1)
    ats = []
    for i in range(3):
        producer.send(i, b"x" * 300)
        ats += client.received()
        give_back(client, ats[-1])
    assert client.received() == ats[-1:]
    assert "quota" in subscription_of(box).dead_letters.refused
    assert topic_of(box, DLQ).ledger.confirmed_messages == 2


def test_what_would_be_too_large_for_a_frame_stays() -> None:
    box = Box(maxMessageSize=2000)
    client = join(box)
    set_policy(box, 0)
    producer = box.client()
    producer.producer(1)
    producer.send(0, b"x" * 11_000)
    (at,) = client.received()
    give_back(client, at)
    assert client.received() == [at]
    assert "more than the frame limit" in subscription_of(box).dead_letters.refused


def test_two_that_are_each_others_do_not_loop() -> None:
    box = Box()
    client = join(box)
    set_policy(box, 0, deadLetterTopic="other", initialSubscriptionName="s")
    other = topic_of(box, "persistent://public/default/other")
    back = DeadLetterPolicy.read({"maxRedeliverCount": 0, "deadLetterTopic": TOPIC}, other.name, "s")
    other.subscriptions["s"].dead_letters.set_policy(back, box.now)
    there = join(box, topic=str(other.name))
    (at,) = box.client().publish(1)
    for _ in range(3):
        (at,) = client.received()
        give_back(client, at)
        (at,) = there.received()
        give_back(there, at)
    assert client.received()


# Retention


def test_a_dead_letter_topic_without_a_subscription_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    box = Box(**AS_PULSAR)
    client = join(box)
    with caplog.at_level(logging.WARNING):
        set_policy(box, 0, deadLetterTopic="graves", initialSubscriptionName="")
        assert not caplog.records
        sent = box.client().publish(2)
        client.received()
        give_back(client, *sent)
        assert [each.message for each in caplog.records if "keeps no messages" in each.message] == [
            "dead letter topic persistent://public/default/graves keeps no messages: it has no subscription and"
            " no retention. Run `pulsarbox sub create persistent://public/default/graves NAME --at earliest` to"
            " keep new messages and those still stored"
        ]
        caplog.clear()
        producer = box.client()
        producer.producer(1, f"{TOPIC}-other-DLQ")
        producer.producer(2, f"{TOPIC}-plain")
        producer.producer(3, f"{TOPIC}-kept-RETRY", initial_subscription_name="s")
        assert [each.args[0].local for each in caplog.records] == ["t-other-DLQ"]  # type: ignore[index,union-attr]


def test_that_a_topic_is_for_dead_letters_outlives_a_restart() -> None:
    box = Box()
    client = join(box)
    set_policy(box, 0, deadLetterTopic="graves", initialSubscriptionName="")
    (at,) = box.client().publish(1)
    client.received()
    give_back(client, at)
    box = box.restart()
    assert topic_of(box, "persistent://public/default/graves").for_dead_letters
    assert not topic_of(box).for_dead_letters


def test_the_command_that_a_client_sees_is_an_ordinary_message() -> None:
    box = Box()
    client = join(box)
    set_policy(box, 0)
    (at,) = box.client().publish(1)
    client.received()
    give_back(client, at)
    reader = join(box, EXCLUSIVE, name="r", topic=DLQ)
    assert parse_command(reader.inbox[0][0]).message.redelivery_count == 0
