"""Transaction outcomes reported to a topic or subscription, as between Pulsar brokers."""

from typing import Any

import pytest

from pulsarbox.protocol.PulsarApi_pb2 import Subscription, TxnAction
from tests.unit.broker.playbook import TOPIC, Box
from tests.unit.broker.transactions.test_transaction import plain, publisher
from tests.unit.broker.transactions_playbook import OTHER, Txn, reader


@pytest.mark.parametrize("action", [TxnAction.COMMIT, TxnAction.ABORT])
@pytest.mark.parametrize("on", ["topic", "subscription"])
def test_an_end_that_a_topic_or_a_subscription_is_told_is_one_everywhere(on: str, action: int) -> None:
    box = Box()
    client, consumer = publisher(box), reader(box)
    outside = plain(client, 0)
    assert consumer.received() == [outside]
    txn, other = Txn(client), box.client()
    sent = txn.send(1), txn.send(1, 2)
    assert not txn.of(consumer).ack(outside).HasField("error")
    where: dict[str, Any] = {"topic": TOPIC}
    if on == "subscription":
        where = {"subscription": Subscription(topic=TOPIC, subscription="s")}
    field = f"endTxnOn{'Partition' if on == 'topic' else 'Subscription'}"
    assert not other.request(field, txn_action=action, **where, **txn.bits).HasField("error")
    assert not other.request(field, txn_action=action, **where, **txn.bits).HasField("error"), "once more"
    assert not txn.end(action).HasField("error"), "and by who began it"
    committed = action == TxnAction.COMMIT
    for topic, at in zip((TOPIC, OTHER), sent, strict=True):
        assert (at in reader(box, "new", topic=topic).received()) == committed
    left = reader(box.restart()).received()
    assert left == ([sent[0]] if committed else [outside])


def test_who_tells_of_what_takes_no_part_ends_nothing() -> None:
    box = Box()
    client = publisher(box)
    txn = Txn(client)
    txn.send(0)
    for field, where in (
        ("endTxnOnPartition", {"topic": OTHER}),
        ("endTxnOnSubscription", {"subscription": Subscription(topic=TOPIC, subscription="s")}),
    ):
        never = {"txnid_most_bits": 0, "txnid_least_bits": 2**40}
        for bits in (txn.bits, never):
            assert not client.request(field, txn_action=TxnAction.COMMIT, **where, **bits).HasField("error")
    assert client.request("endTxnOnPartition", topic="a/b", txn_action=0, **txn.bits).HasField("error")
    assert len(list(box.broker.transactions)) == 1
