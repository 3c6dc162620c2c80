"""Transactions of pulsarbox.client with a box, and the official client on the other side."""

import uuid
from collections.abc import Iterator
from typing import Any

import pulsar
import pytest

from pulsarbox.client.admin import Admin, AdminRefused
from pulsarbox.client.client import Client
from pulsarbox.client.compression import CODECS
from pulsarbox.client.message_decoder import ReceivedMessage
from pulsarbox.client.multi_topic_consumer import TYPES, MultiTopicConsumer, Subscribing
from pulsarbox.client.producer import Options, Producer
from pulsarbox.errors import InvalidTxnStatus, TransactionConflict, TransactionNotFound
from pulsarbox.names import parse_topic
from pulsarbox.protocol.message_encoder import Outgoing
from tests.e2e.clients import PATIENCE_SECONDS, admin_path, read_to_end, until
from tests.e2e.conftest import Running


@pytest.fixture
def ours(box: Running) -> Iterator[Client]:
    host, _, port = box.url.removeprefix("pulsar://").rpartition(":")
    made = Client([(host, int(port))], timeout=PATIENCE_SECONDS)
    yield made
    made.close()


@pytest.fixture
def admin(box: Running) -> Iterator[Admin]:
    host, _, port = box.web_url.removeprefix("http://").rpartition(":")
    with Admin([(host, int(port))]) as made:
        yield made


def nothing(*told: Any) -> None:
    pass


def seen(client: Any, topic: str) -> list[bytes]:
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    found = read_to_end(reader)
    reader.close()
    return found


def taken(consumer: MultiTopicConsumer, count: int) -> list[ReceivedMessage]:
    found: list[ReceivedMessage] = []
    while len(found) < count:
        more = consumer.take(count, PATIENCE_SECONDS)
        assert more, "nothing comes"
        found += more
    return found


def backlog(admin: Admin, topic: str) -> int:
    found = admin.stats(parse_topic(topic), 0)["subscriptions"]["s"]["msgBacklog"]
    assert isinstance(found, int)
    return found


def test_all_of_it_or_nothing_over_several_topics(box: Running, ours: Client, client: Any, topic: str) -> None:
    """Messages to topics with and without partitions, batched, compressed or single: visible with the commit, never
    after an abort.
    """
    parted = f"{topic}-parted"
    box.admin("PUT", f"{admin_path(parted)}/partitions", "3")
    sent = [b"%d" % number for number in range(2500)]
    plain = Producer(ours, topic, Options(compression=CODECS["zstd"]), nothing)
    spread = Producer(ours, parted, Options(batching=False), nothing)
    for commit in (False, True):
        txn = ours.transaction(600)
        for each in (plain, spread):
            each.enter(txn)
        plain.send_plain(sent)
        spread.send_plain(sent[:20])
        txn.settle()
        assert (seen(client, topic), seen(client, parted)) == ([], [])
        if commit:
            txn.commit()
        else:
            txn.abort()
            assert (seen(client, topic), seen(client, parted)) == ([], [])
    assert seen(client, topic) == sent
    assert sorted(seen(client, parted), key=int) == sent[:20]


def test_chunks(ours: Client, client: Any, topic: str) -> None:
    big = bytes(6 << 20)
    producer = Producer(ours, topic, Options(), nothing)
    with ours.transaction(600) as txn:
        producer.enter(txn)
        producer.send(Outgoing(big))
    assert seen(client, topic) == [big]


def consumed(ours: Client, topic: str, kind: str = "shared") -> MultiTopicConsumer:
    consumer = MultiTopicConsumer(ours, Subscribing("s", TYPES[kind]))
    consumer.add(topic)
    return consumer


@pytest.mark.parametrize("batching", [True, False])
def test_acknowledgements_are_kept_with_the_commit_and_given_back_by_an_abort(
    ours: Client, admin: Admin, topic: str, batching: bool
) -> None:
    producer, consumer = Producer(ours, topic, Options(batching=batching), nothing), consumed(ours, topic)
    producer.send_plain([b"%d" % number for number in range(6)])
    producer.flush()
    first = taken(consumer, 6)
    txn = ours.transaction(600)
    consumer.acknowledge(first[:4], txn)
    txn.abort()
    assert backlog(admin, topic) == (1 if batching else 6)  # entries, as in Pulsar
    again = {each.payload: each for each in taken(consumer, 4)}
    with ours.transaction(600) as txn:
        consumer.acknowledge([again[b"0"], again[b"2"]], txn)
        consumer.acknowledge([again[b"3"]], txn)
    consumer.close()
    kept = {each.payload for each in taken(consumed(ours, topic), 3)}
    assert kept == {b"1", b"4", b"5"}


@pytest.mark.parametrize("batching", [True, False])
def test_a_cumulative_one(ours: Client, topic: str, batching: bool) -> None:
    producer, consumer = Producer(ours, topic, Options(batching=batching), nothing), consumed(ours, topic, "exclusive")
    producer.send_plain([b"%d" % number for number in range(6)])
    producer.flush()
    found = taken(consumer, 6)
    with ours.transaction(600) as txn:
        consumer.acknowledge_all_up_to(found[:3], txn)
    consumer.close()
    left = taken(consumed(ours, topic, "exclusive"), 3)
    assert [each.payload for each in left] == [b"3", b"4", b"5"]


def test_a_conflict_fails_the_second(ours: Client, topic: str) -> None:
    producer, consumer = Producer(ours, topic, Options(), nothing), consumed(ours, topic)
    producer.send_plain([b"a"])
    producer.flush()
    found = taken(consumer, 1)
    first, second = ours.transaction(600), ours.transaction(600)
    consumer.acknowledge(found, first)
    consumer.acknowledge(found, second)
    with pytest.raises(TransactionConflict):
        second.commit()
    assert second.ended == "aborted"
    first.commit()


def test_one_that_has_timed_out(ours: Client, admin: Admin) -> None:
    txn = ours.transaction(0.05)
    until(lambda: str(txn.bits).replace(" ", "") not in admin.transactions())
    with pytest.raises((InvalidTxnStatus, TransactionNotFound)):
        txn.commit()


def test_an_epoch_is_published_once(box: Running, ours: Client, admin: Admin, client: Any, topic: str) -> None:
    if not box.is_ours:
        pytest.skip("epoch commit is a box's")
    sink = f"public/default/sink-{uuid.uuid4()}"
    staged = []
    for task in range(2):
        producer, txn = Producer(ours, topic, Options(), nothing), ours.transaction(600)
        producer.enter(txn)
        producer.send(Outgoing(b"%d" % task))
        txn.settle()
        producer.close()
        staged.append(txn.id)
    assert (admin.last_epoch(sink), seen(client, topic)) == (None, [])
    assert admin.commit_epoch(sink, 1, staged) is True
    assert sorted(seen(client, topic)) == [b"0", b"1"]
    assert admin.commit_epoch(sink, 1, staged) is False
    last = admin.last_epoch(sink)
    assert last is not None and last["epoch"] == 1
    with pytest.raises(AdminRefused, match="is behind") as caught:
        admin.commit_epoch(sink, 0, [])
    assert caught.value.status == 409
    admin.forget_sink(sink)
    assert admin.last_epoch(sink) is None
