"""Dead letters that the box itself moves: ``broker.dead_letters`` and what it stands on."""

import logging
from copy import deepcopy
from typing import Any

import pytest

from pulsarbox.broker import dead_letters
from pulsarbox.broker.dispatch.standstill import Reason
from pulsarbox.broker.policies.dead_letter import DeadLetterPolicy
from pulsarbox.broker.subscription import Subscription
from pulsarbox.broker.topic import PersistentTopic
from pulsarbox.errors import StoreFull
from pulsarbox.names import parse_topic
from pulsarbox.protocol.batch import encode_batch, iterate_batch
from pulsarbox.protocol.commands import parse_command
from pulsarbox.protocol.compression import CODECS, compress, decompress
from pulsarbox.protocol.metadata import key_values, parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import (
    CommandSubscribe,
    EncryptionKeys,
    KeyValue,
    MessageIdData,
    MessageMetadata,
    Schema,
    SingleMessageMetadata,
)
from tests.unit.broker.playbook import TOPIC, Box, Client

SHARED, KEY_SHARED, EXCLUSIVE = CommandSubscribe.Shared, CommandSubscribe.Key_Shared, CommandSubscribe.Exclusive
BOTH = pytest.mark.parametrize("sub_type", [SHARED, KEY_SHARED])
DLQ = f"{TOPIC}-s-DLQ"
At = tuple[int, int]


def topic_of(box: Box, name: str = TOPIC) -> PersistentTopic:
    found = box.broker.topics.find(parse_topic(name), box.now)
    assert isinstance(found, PersistentTopic)
    return found


def subscription_of(box: Box) -> Subscription:
    return topic_of(box).subscriptions["s"]


def set_policy(box: Box, count: int = 1, **value: Any) -> None:
    policy = DeadLetterPolicy.read({"maxRedeliverCount": count} | value, parse_topic(TOPIC), "s")
    box.broker.core.office.prepare(policy, box.now)
    subscription_of(box).dead_letters.set_policy(policy, box.now)
    box.turn()


def join(box: Box, sub_type: int = SHARED, permits: int = 1000, name: str = "s", topic: str = TOPIC) -> Client:
    client = box.client()
    reply = client.subscribe(name, topic=topic, subType=sub_type)
    assert not hasattr(reply, "error"), reply
    if permits:
        client.flow(permits)
    return client


def give_back(client: Client, *ats: At) -> None:
    ids = [MessageIdData(ledgerId=at[0], entryId=at[1]) for at in ats]
    client.ask("redeliverUnacknowledgedMessages", consumer_id=1, message_ids=ids)


def die_of(box: Box, *ats: At, times: int, sub_type: int = SHARED) -> None:
    """So many consumers get the messages, and are lost with them."""
    for _ in range(times):
        client = join(box, sub_type)
        assert set(ats) <= set(client.received())
        client.cnx.closed(box.now)
        box.advance(0.1)  # a count is written lazily


def letters(box: Box, topic: str = DLQ) -> list[tuple[MessageMetadata, bytes]]:
    """What a dead letter topic has, read by a consumer of its own."""
    client = box.client()
    client.subscribe(f"reader-{len(box.broker.cnxs)}", topic=topic, subType=EXCLUSIVE)
    client.flow(1000)
    found = []
    while client.inbox:
        _, payload = client.inbox.pop(0)
        parsed = parse_entry(payload)
        found.append((parsed.metadata, payload[parsed.body_offset :]))
    return found


def bodies(box: Box, topic: str = DLQ) -> list[bytes]:
    return [body for _, body in letters(box, topic)]


def backlog(box: Box) -> int:
    return subscription_of(box).cursor.backlog_messages


@BOTH
def test_what_kills_its_consumers_becomes_a_dead_letter_after_the_count(sub_type: int) -> None:
    box = Box()
    poison, other = join(box, sub_type, 0), box.client()
    poison.cnx.closed(box.now)
    set_policy(box, 2)
    published_at = box.wall
    (first,) = other.publish(1)
    die_of(box, first, times=3, sub_type=sub_type)
    assert letters(box) == []
    last = join(box, sub_type)
    assert last.received() == []
    ((metadata, body),) = letters(box)
    assert body == b"0"
    assert key_values(metadata.properties) == {
        "REAL_TOPIC": TOPIC,
        "REAL_SUBSCRIPTION": "s",
        "ORIGIN_MESSAGE_ID": f"{first[0]}:{first[1]}:-1",
        "ORIGIN_MESSAGE_IDY_TIME": f"{first[0]}:{first[1]}:-1",
        "ORIGIN_PUBLISH_TIME": str(published_at),
        "RECONSUMETIMES": "3",
        "DEAD_LETTER_REDELIVERIES": "3",
        "DEAD_LETTER_REASON": "given back 3 times without being acknowledged, 2 allowed",
    }
    assert backlog(box) == 0
    assert subscription_of(box).cursor.mark_delete == first
    assert subscription_of(box).dead_letters.messages == 1


@BOTH
def test_it_moves_once_over_three_restarts(sub_type: int) -> None:
    box = Box()
    join(box, sub_type, 0).cnx.closed(box.now)
    set_policy(box, 3)
    sent = box.client().publish(3)
    for _ in range(3):
        die_of(box, sent[1], times=1, sub_type=sub_type)
        box = box.restart()
    die_of(box, sent[1], times=1, sub_type=sub_type)
    box = box.restart()
    client = join(box, sub_type)
    assert client.received() == []
    assert sorted(bodies(box)) == [b"0", b"1", b"2"]
    for _ in range(2):
        box = box.restart()
        assert join(box, sub_type).received() == []
        assert sorted(bodies(box)) == [b"0", b"1", b"2"]
        assert backlog(box) == 0


def test_nothing_moves_unless_that_is_set() -> None:
    box = Box()
    (at,) = box.client().publish(1)
    join(box, permits=0)
    die_of(box, at, times=20)
    assert join(box).received() == [at]
    assert not box.broker.topics.exists(parse_topic(DLQ))


def test_no_redelivery_allowed_is_one_delivery() -> None:
    box = Box()
    client = join(box)
    set_policy(box, 0)
    (at,) = box.client().publish(1)
    assert client.received() == [at]
    give_back(client, at)
    assert client.received() == []
    assert bodies(box) == [b"0"]


@BOTH
def test_others_go_on_beside_dead_letters(sub_type: int) -> None:
    box = Box()
    client = join(box, sub_type)
    set_policy(box, 1)
    sent = box.client().publish(10)
    assert sorted(client.received()) == sent
    for _ in range(2):
        give_back(client, sent[2], sent[7])
    assert client.received() == [sent[2], sent[7]]
    client.ack(*[at for at in sent if at not in (sent[2], sent[7])])
    assert sorted(bodies(box)) == [b"2", b"7"]
    assert backlog(box) == 0
    assert subscription_of(box).cursor.mark_delete == sent[-1]


def test_a_policy_that_is_set_later_counts_what_was_before() -> None:
    box = Box()
    client = join(box)
    (at,) = box.client().publish(1)
    for _ in range(5):
        give_back(client, at)
    client.received()
    set_policy(box, 3)
    give_back(client, at)
    assert client.received() == []
    assert bodies(box) == [b"0"]


def test_a_policy_that_is_taken_away_stays_away() -> None:
    box = Box()
    join(box, permits=0)
    set_policy(box, 0)
    (at,) = box.client().publish(1)
    subscription_of(box).dead_letters.set_policy(None, box.now)
    box.turn()
    box = box.restart()
    assert subscription_of(box).dead_letters.policy is None
    die_of(box, at, times=3)
    assert join(box).received() == [at]


# Crashes and failed commits


def moving(*, auto: bool = False) -> tuple[Box, Client, At]:
    """A box in which a message has just become a dead letter, and nothing of that is committed."""
    box = Box()
    client = join(box)
    set_policy(box, 0)
    (at,) = box.client().publish(1)
    assert client.received() == [at]
    box.auto = auto
    give_back(client, at)
    return box, client, at


def test_before_the_commit_it_is_where_it_was() -> None:
    box, client, at = moving()
    assert subscription_of(box).dead_letters.moving
    assert client.inbox == []
    box = box.restart()
    assert letters(box) == []
    assert join(box).received() == [at]  # the count was not durable either
    box, _, at = moving()
    assert box.commit()
    box = box.restart()  # after the commit, and before the cursor of the box that crashed knew more than that
    assert bodies(box) == [b"0"]
    assert join(box).received() == []
    assert backlog(box) == 0
    assert subscription_of(box).cursor.mark_delete == at


def test_a_commit_that_fails_is_tried_again() -> None:
    box, client, _ = moving()
    box.commit(OSError("no"))
    box.auto = True
    box.advance(1)
    assert client.inbox == []
    assert bodies(box) == [b"0"]
    assert bodies(box.restart()) == [b"0"]
    assert backlog(box) == 0


def test_with_a_full_disk_it_is_delivered_as_before() -> None:
    box, client, at = moving()
    box.commit(StoreFull("the disk is full"))
    box.auto = True
    box.turn()
    assert client.received() == [at]
    assert "full" in subscription_of(box).dead_letters.refused
    box.advance(3)  # there is room again
    give_back(client, at)
    assert client.received() == []
    assert bodies(box) == [b"0"]
    assert not subscription_of(box).dead_letters.refused


def test_a_commit_that_fails_while_consumers_change_loses_nothing() -> None:
    for late in (False, True):
        box, client, _ = moving()
        client.cnx.closed(box.now)
        if late:  # the source has come by the entry, which was on its way
            other = join_at_once(box)
            assert other.inbox == []
        box.commit(OSError("no"))
        box.auto = True
        box.advance(1)
        other = join(box)
        box.turn()
        assert list(other.inbox) == []
        assert bodies(box) == [b"0"], late
        assert backlog(box) == 0


def join_at_once(box: Box) -> Client:
    """A consumer that does not wait for commits: it is there, and asks."""
    client = box.client()
    subscribe = {"subType": SHARED, "initialPosition": CommandSubscribe.Earliest}
    client.ask("subscribe", topic=TOPIC, subscription="s", consumer_id=1, request_id=1, **subscribe)
    client.flow(1000)
    client.inbox.clear()
    return client


def test_nobody_else_gets_it_while_it_moves() -> None:
    box, client, _ = moving()
    client.cnx.closed(box.now)
    exclusive = box.client()
    reply = exclusive.request("subscribe", topic=TOPIC, subscription="s", consumer_id=1, subType=EXCLUSIVE)
    assert "try again" in reply.message
    assert not topic_of(box).is_settled()
    assert join_at_once(box).inbox == []
    box.auto = True
    box.turn()
    assert bodies(box) == [b"0"]


def test_a_checkpoint_made_with_the_move_knows_of_it() -> None:
    box, _, _ = moving()
    box.broker.core.commits.ask_checkpoint()
    assert box.commit()
    assert not box.chore(), "a checkpoint that does not know of the acknowledgement would cover the record of it"
    crashed = Box(deepcopy(box.disk))
    assert (bodies(crashed), backlog(crashed)) == ([b"0"], 0)
    assert box.commit()
    assert box.chore()
    again = box.restart()
    assert (bodies(again), backlog(again)) == ([b"0"], 0)


def test_a_checkpoint_does_not_wait_for_a_subscription_that_is_gone() -> None:
    box, _, _ = moving()
    box.broker.core.commits.ask_checkpoint()
    batch = box.broker.take_batch(box.now)
    assert batch is not None
    topic_of(box).delete(box.now)
    box.engine.commit(batch)
    box.broker.committed(batch, box.now)
    while box.commit():
        pass
    assert box.chore()


def test_a_seek_while_it_moves_wins() -> None:
    box, _, at = moving()
    done: list[Any] = []
    subscription_of(box).seek(topic_of(box).ledger.first_position(), [], done.append, done.append, box.now)
    box.auto = True
    box.turn()
    assert done
    again = Box(deepcopy(box.disk))
    for each in (box, again):
        assert join(each).received() == [at]
        assert bodies(each) == [b"0"]


def test_a_seek_and_then_a_move_in_one_batch_stay_in_this_order() -> None:
    box = Box()
    client = join(box)
    set_policy(box, 0)
    first, second = box.client().publish(2)
    client.ack(first)
    client.received()
    box.auto = False
    done: list[Any] = []
    subscription_of(box).seek(topic_of(box).ledger.first_position(), [], done.append, done.append, box.now)
    other = join_at_once(box)
    box.flush()
    subscription_of(box).dead_letters.set_policy(None, box.now)
    give_back(other, second)
    subscription_of(box).cursor.redelivered(second)
    set_policy(box, 0)
    give_back(other, second)
    assert subscription_of(box).dead_letters.moving
    assert box.commit()
    box = box.restart()
    assert join(box).received() == [first]
    assert bodies(box) == [b"1"]


def test_many_at_once_wait_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "MOVING_MAX", 5)
    for sub_type in (SHARED, KEY_SHARED):
        box = Box(dispatcherMaxRoundRobinBatchSize=2, dispatcherMaxReadBatchSize=2)
        client = join(box, sub_type)
        set_policy(box, 0)
        sent = box.client().publish(50)
        assert sorted(client.received()) == sent
        box.auto = False
        give_back(client, *sent)
        assert subscription_of(box).why().reason == Reason.DEAD_LETTERS
        assert len(subscription_of(box).dead_letters._moving) <= 7
        box.auto = True
        box.turn()
        assert sorted(bodies(box)) == sorted(b"%d" % i for i in range(50))
        assert (client.inbox, backlog(box)) == ([], 0)
        assert subscription_of(box).why().reason == Reason.END_OF_LOG


# What moves


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
    client.ack(MessageIdData(ledgerId=at[0], entryId=at[1], ack_set=[0b1010], batch_size=4))  # b and d are left
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
    box.broker.schemas.put(parse_topic(DLQ), other, box.wall)
    producer = box.client()
    schema = Schema(name="x", type=Schema.Json, schema_data=b'{"type":"record"}')
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


# Where it goes


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
    assert len([each for each in caplog.records if "does not take it" in each.message]) == 1
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
    assert "no frame takes more" in subscription_of(box).dead_letters.refused


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


# Keeping


def test_a_dead_letter_topic_without_a_subscription_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    box = Box()
    client = join(box)
    with caplog.at_level(logging.WARNING):
        set_policy(box, 0, deadLetterTopic="graves", initialSubscriptionName="")
        assert not caplog.records
        sent = box.client().publish(2)
        client.received()
        give_back(client, *sent)
        assert [each.message for each in caplog.records if "keeps none" in each.message] == [
            "topic persistent://public/default/graves is for dead letters and keeps none: it has no subscription, and"
            " no retention. `pulsarbox sub create persistent://public/default/graves NAME --at earliest` keeps what"
            " comes, and what is still there"
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
