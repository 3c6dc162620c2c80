"""Publishing in transactions: visibility, and state after a crash."""

from typing import Any

import pytest

from pulsarbox.broker.transactions.transaction import OpenTransaction
from pulsarbox.broker.transactions.transaction_table import TransactionTable
from pulsarbox.errors import PersistenceError
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe, TxnAction
from pulsarbox.storage.transactions import TxnId
from tests.unit.broker.compaction.compacting import compact
from tests.unit.broker.playbook import AS_PULSAR, TOPIC, Box, Client
from tests.unit.broker.roles import TOPIC as ORDERS
from tests.unit.broker.roles import client_of, guarded_box
from tests.unit.broker.transactions_playbook import (
    COORDINATOR_NOT_FOUND,
    INVALID_STATUS,
    MINUTE,
    NOT_ALLOWED,
    NOT_FOUND,
    OTHER,
    TOO_MANY,
    Txn,
    backlog,
    reader,
    topic_of,
)

NOT_AUTHENTICATED, NOT_AUTHORIZED = 3, 4
TYPES = [CommandSubscribe.Exclusive, CommandSubscribe.Failover, CommandSubscribe.Shared, CommandSubscribe.Key_Shared]


def publisher(box: Box) -> Client:
    client = box.client()
    client.producer(1)
    client.producer(2, OTHER)
    return client


def plain(client: Client, sequence_id: int, producer_id: int = 1, **more: Any) -> tuple[int, int]:
    client.send(sequence_id, b"%d" % sequence_id, producer_id, **more)
    receipt = client.take("send_receipt").message_id
    return receipt.ledgerId, receipt.entryId


# Coordinator


def test_a_client_finds_the_coordinator() -> None:
    client = Box().client()
    found = client.request("partitionMetadata", topic="persistent://pulsar/system/transaction_coordinator_assign")
    assert found.partitions == 1
    place = client.request("lookupTopic", topic="persistent://pulsar/system/transaction_coordinator_assign-partition-0")
    assert place.response == place.Connect
    assert not client.request("tcClientConnectRequest", tc_id=0).HasField("error")
    assert client.request("tcClientConnectRequest", tc_id=1).error == COORDINATOR_NOT_FOUND
    assert client.request("newTxn", txn_ttl_seconds=MINUTE, tc_id=7).error == COORDINATOR_NOT_FOUND


def test_without_the_setting_there_are_none() -> None:
    client = Box(transactionCoordinatorEnabled=False).client()
    assert client.request("tcClientConnectRequest", tc_id=0).error == NOT_ALLOWED
    assert client.request("newTxn", txn_ttl_seconds=MINUTE, tc_id=0).message == "Transactions are not enabled."
    assert client.request("endTxn", txnid_least_bits=1, txnid_most_bits=0, txn_action=0).error == NOT_ALLOWED
    assert client.producer(1, txn_enabled=True).error == NOT_ALLOWED


def test_an_id_is_told_when_it_is_durable_and_never_twice() -> None:
    box = Box(auto=False)
    client = box.client()
    client.ask("newTxn", request_id=1, txn_ttl_seconds=MINUTE, tc_id=0)
    assert not client.inbox
    box.commit()
    first = client.take("newTxnResponse").txnid_least_bits
    again = Box(box.disk)
    assert Txn(again.client()).bits["txnid_least_bits"] > first


def test_no_more_than_the_limit_are_open() -> None:
    box = Box(maxActiveTransactionsPerCoordinator=2)
    client = box.client()
    first = Txn(client)
    Txn(client)
    assert client.request("newTxn", txn_ttl_seconds=MINUTE, tc_id=0).error == TOO_MANY
    first.commit()
    Txn(client)


def test_a_time_out_has_a_longest() -> None:
    client = Box(transactionMaxTimeoutSeconds=60).client()
    Txn(client, 60_000)
    refused = client.request("newTxn", txn_ttl_seconds=60_001, tc_id=0)
    assert refused.error == NOT_ALLOWED
    assert "transactionMaxTimeoutSeconds" in refused.message


def test_what_was_never_begun_is_not_found() -> None:
    client = publisher(Box())
    bits = {"txnid_least_bits": 4711, "txnid_most_bits": 0}
    assert client.request("endTxn", txn_action=0, **bits).error == NOT_FOUND
    assert client.request("addPartitionToTxn", partitions=[TOPIC], **bits).error == NOT_FOUND
    txn = Txn(client)
    txn.bits = bits
    txn.post(0)
    assert client.take("send_error").error == NOT_ALLOWED


@pytest.mark.parametrize("action", [TxnAction.COMMIT, TxnAction.ABORT])
def test_who_may_not_have_heard_of_its_end_is_told_the_same_even_after_a_crash(action: int) -> None:
    box = Box()
    client = publisher(box)
    txn = Txn(client)
    txn.send(0)
    assert not txn.end(action).HasField("error")
    assert txn.end(action).error == NOT_FOUND, "it was told, on this connection"
    assert txn.end(1 - action).error == NOT_FOUND
    assert client.request("addPartitionToTxn", partitions=[TOPIC], **txn.bits).error == NOT_FOUND
    other = txn.of(box.client())
    assert not other.end(action).HasField("error")
    assert other.end(1 - action).error == INVALID_STATUS
    again = box.restart()
    txn = txn.of(again.client())
    assert not txn.end(action).HasField("error")
    assert txn.end(1 - action).error == INVALID_STATUS


def test_only_who_has_begun_it_adds_to_it_or_ends_it() -> None:
    box = guarded_box(proxyRoles="proxy")
    mine = Txn(client_of(box, "producer"))
    for role, original in (("consumer", ""), ("proxy", "consumer"), ("admin", "")):
        other = client_of(box, role, original=original)
        theirs = mine.of(other)
        assert other.request("addPartitionToTxn", partitions=[ORDERS], **mine.bits).error == NOT_AUTHORIZED
        assert theirs.end(TxnAction.COMMIT).error == NOT_AUTHORIZED
    through = client_of(box, "proxy", original="producer")
    assert not through.request("addPartitionToTxn", partitions=[ORDERS], **mine.bits).HasField("error")
    mine.of(client_of(box, "root")).abort()


def test_whoever_has_a_name_may_ask_for_the_coordinator() -> None:
    box = guarded_box()
    name = "persistent://pulsar/system/transaction_coordinator_assign"
    assert client_of(box, "viewer").request("partitionMetadata", topic=name).partitions == 1
    place = client_of(box, "viewer").request("lookupTopic", topic=f"{name}-partition-0")
    assert place.response == place.Connect
    assert client_of(box, None).request("partitionMetadata", topic=name).error == NOT_AUTHENTICATED


# Visibility


@pytest.mark.parametrize("sub_type", TYPES)
def test_what_is_committed_is_seen_from_then_on(sub_type: int) -> None:
    box = Box(activeConsumerFailoverDelayTimeMillis=0)
    client, consumer = publisher(box), reader(box, subType=sub_type)
    before = plain(client, 0)
    txn = Txn(client)
    first = txn.send(1)
    behind = plain(client, 2)
    second = txn.send(3)
    assert consumer.received() == [before], "nobody reads past an open transaction"
    txn.commit()
    assert consumer.received() == [first, behind, second]
    assert backlog(box) == (4, 4)


@pytest.mark.parametrize("sub_type", TYPES)
def test_what_is_aborted_is_never_seen(sub_type: int) -> None:
    box = Box(activeConsumerFailoverDelayTimeMillis=0)
    client, consumer = publisher(box), reader(box, subType=sub_type)
    txn = Txn(client)
    txn.send(0)
    behind = plain(client, 1)
    txn.send(2, batch=5)
    txn.abort()
    assert consumer.received() == [behind]
    assert backlog(box) == (1, 1)
    consumer.ack(behind)
    assert backlog(box) == (0, 0)
    cursor = topic_of(box).subscriptions["s"].cursor
    assert cursor.mark_delete == topic_of(box).ledger.last_confirmed
    assert not cursor.ranges


def test_a_commit_is_seen_when_it_is_durable_and_on_all_topics_at_once() -> None:
    box = Box()
    client, here, there = publisher(box), reader(box), reader(box, topic=OTHER)
    txn = Txn(client)
    at, other = txn.send(0), txn.send(0, 2)
    box.auto = False
    client.ask("endTxn", request_id=1, txn_action=TxnAction.COMMIT, **txn.bits)
    box.turn()
    assert not here.inbox and not there.inbox and not client.inbox
    box.commit()
    assert (here.received(), there.received()) == ([at], [other])
    client.take("endTxnResponse")


def test_an_end_waits_for_what_was_sent_before() -> None:
    box = Box()
    client, consumer = publisher(box), reader(box)
    txn = Txn(client)
    box.auto = False
    txn.post(0)
    client.ask("endTxn", request_id=1, txn_action=TxnAction.COMMIT, **txn.bits)
    txn.post(1)
    assert client.take("send_error").error == NOT_ALLOWED, "it is about to end"
    box.commit()
    assert client.names() == ["send_receipt"]
    assert not consumer.inbox
    box.commit()
    assert client.names() == ["endTxnResponse"]
    assert len(consumer.received()) == 1


def test_what_was_not_stored_is_not_committed() -> None:
    box = Box()
    client, consumer = publisher(box), reader(box)
    txn = Txn(client)
    kept = txn.send(0)
    box.auto = False
    txn.post(1)
    client.ask("endTxn", request_id=1, txn_action=TxnAction.COMMIT, **txn.bits)
    box.commit(PersistenceError("no room"))
    assert client.names()[:1] == ["send_error"]
    box.auto = True
    box.advance(1)
    assert "endTxnResponse" in client.names()
    assert consumer.received() == [kept]
    assert backlog(box) == (1, 1)


def test_a_failed_end_is_tried_again() -> None:
    box = Box()
    client, consumer = publisher(box), reader(box)
    txn = Txn(client)
    at = txn.send(0)
    box.auto = False
    client.ask("endTxn", request_id=1, txn_action=TxnAction.COMMIT, **txn.bits)
    box.commit(PersistenceError("no room"))
    assert not consumer.inbox and not client.inbox
    box.auto = True
    box.advance(1)
    assert client.names() == ["endTxnResponse"]
    assert consumer.received() == [at]


def test_two_transactions_are_seen_in_the_order_of_the_log() -> None:
    box = Box()
    client, consumer = publisher(box), reader(box)
    first, second = Txn(client), Txn(client)
    a, b, c = first.send(0), second.send(1), first.send(2)
    second.commit()
    assert consumer.received() == []
    first.commit()
    assert consumer.received() == [a, b, c]


def test_who_comes_later_or_starts_again_sees_nothing_of_what_was_aborted() -> None:
    box = Box()
    client, consumer = publisher(box), reader(box)
    kept = plain(client, 0)
    gone = Txn(client)
    gone.send(1)
    gone.send(2)
    gone.abort()
    last = plain(client, 3)
    assert consumer.received() == [kept, last]
    assert reader(box, "late").received() == [kept, last]
    consumer.ack(kept, last)
    consumer.request("seek", consumer_id=1, message_id={"ledgerId": kept[0], "entryId": kept[1]})
    assert backlog(box) == (2, 2)
    assert reader(box).received() == [kept, last]
    again = box.restart()
    assert backlog(again) == (2, 2)
    assert reader(again, "s").received() == [kept, last]
    assert reader(again, "later").received() == [kept, last]


def test_a_reader_that_is_not_durable_sees_no_more() -> None:
    box = Box()
    client, consumer = publisher(box), reader(box, "r", durable=False)
    txn = Txn(client)
    txn.send(0)
    txn.abort()
    at = plain(client, 1)
    assert consumer.received() == [at]
    assert reader(box, "r2", durable=False).received() == [at]


def test_the_last_message_is_the_last_that_can_be_seen() -> None:
    box = Box()
    client, consumer = publisher(box), reader(box)

    def last() -> tuple[int, int]:
        found = consumer.request("getLastMessageId", consumer_id=1).last_message_id
        return found.ledgerId, found.entryId

    nothing = last()
    txn = Txn(client)
    txn.send(0)
    assert last() == nothing
    txn.abort()
    assert last() == nothing
    kept = plain(client, 1, batch=3)
    assert last() == kept
    txn = Txn(client)
    txn.send(2)
    assert last() == kept
    assert consumer.request("getLastMessageId", consumer_id=1).last_message_id.batch_index == 2
    txn.abort()
    assert last() == kept
    txn = Txn(client)
    committed = txn.send(3)
    txn.commit()
    assert last() == committed


def test_metadata_alone_makes_no_transaction() -> None:
    """For example, a client forwards a message with the metadata received in a transaction."""
    box = Box()
    client, consumer = publisher(box), reader(box)
    at = plain(client, 0, txnid_least_bits=1, txnid_most_bits=0)
    assert consumer.received() == [at]


def test_delayed_messages_wait_for_their_time_and_for_the_commit() -> None:
    box = Box()
    client, consumer = publisher(box), reader(box, subType=CommandSubscribe.Shared)
    early, late, gone = Txn(client), Txn(client), Txn(client)
    first = early.send(0, deliver_at_time=box.wall + 10_000)
    second = late.send(1, deliver_at_time=box.wall + 1_000)
    gone.send(2, deliver_at_time=box.wall + 1_000)
    early.commit()
    gone.abort()
    box.advance(5)
    assert consumer.received() == [], "the first is not due, the second not committed"
    late.commit()
    assert consumer.received() == [second]
    box.advance(6)
    assert consumer.received() == [first]
    box.advance(15)
    assert consumer.received() == []
    assert backlog(box) == (2, 2)


def test_sequence_ids_of_what_was_aborted_are_used_up() -> None:
    box = Box(brokerDeduplicationEnabled=True)
    client, consumer = box.client(), reader(box)
    client.producer(1, producer_name="p")
    txn = Txn(client)
    txn.send(5)
    txn.abort()
    client.send(5, b"again", 1)
    assert client.take("send_receipt").message_id.entryId == 2**64 - 1, "a duplicate"
    at = plain(client, 6)
    assert consumer.received() == [at]
    assert box.restart().client().producer(1, producer_name="p").last_sequence_id == 6


# Timeouts


def test_nobody_ends_it_in_time() -> None:
    box = Box()
    client, consumer = publisher(box), reader(box)
    txn = Txn(client, 5_000)
    txn.send(0)
    behind = plain(client, 1)
    box.advance(4.9)
    assert consumer.received() == []
    box.advance(0.2)
    assert consumer.received() == [behind]
    assert txn.end(TxnAction.COMMIT).error == INVALID_STATUS
    assert not txn.end(TxnAction.ABORT).HasField("error")
    assert box.broker.transactions.timed_out == 1


def test_time_goes_on_over_a_restart() -> None:
    box = Box()
    txn = Txn(publisher(box), 5_000)
    txn.send(0)
    box.advance(3)
    again = Box(box.disk, wall=box.wall)
    consumer = reader(again)
    behind = plain(publisher(again), 1)
    again.advance(1.9)
    assert consumer.received() == []
    again.advance(0.2)
    assert consumer.received() == [behind]


# Crashes


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("action", [TxnAction.COMMIT, TxnAction.ABORT])
def test_an_open_transaction_is_open_after_a_crash(action: int, checkpoint: bool) -> None:
    box = Box()
    client = publisher(box)
    reader(box)
    kept, txn = plain(client, 0), Txn(client)
    at = txn.send(1)
    if checkpoint:
        box.broker.commits.ask_checkpoint()
        box.turn()
    second = txn.send(2)
    behind = plain(client, 3)
    again = box.restart()
    consumer = reader(again)
    assert consumer.received() == [kept]
    assert backlog(again) == (4, 4)
    txn = txn.of(publisher(again))
    third = txn.send(4)
    assert not txn.end(action).HasField("error")
    assert consumer.received() == ([at, second, behind, third] if action == TxnAction.COMMIT else [behind])
    assert backlog(again) == ((5, 5) if action == TxnAction.COMMIT else (2, 2))


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("action", [TxnAction.COMMIT, TxnAction.ABORT])
def test_what_has_ended_stays_so(action: int, checkpoint: bool) -> None:
    box = Box()
    client = publisher(box)
    reader(box)
    txn = Txn(client)
    at = txn.send(0)
    if checkpoint:
        box.broker.commits.ask_checkpoint()
        box.turn()
    behind = plain(client, 1)
    assert not txn.end(action).HasField("error")
    again = box.restart()
    seen = [at, behind] if action == TxnAction.COMMIT else [behind]
    assert backlog(again) == (len(seen), len(seen))
    assert reader(again).received() == seen
    assert not again.broker.transactions.open
    assert not topic_of(again).stored.open
    third = again.restart()
    assert reader(third).received() == seen


def test_an_end_that_was_not_durable_has_not_been() -> None:
    box = Box()
    client = publisher(box)
    reader(box)
    txn = Txn(client)
    at, other = txn.send(0), txn.send(0, 2)
    box.auto = False
    client.ask("endTxn", request_id=1, txn_action=TxnAction.ABORT, **txn.bits)
    again = box.restart()
    txn = txn.of(again.client())
    txn.commit()
    assert reader(again).received() == [at]
    assert reader(again, topic=OTHER).received() == [other]


# Miscellaneous


def test_a_topic_may_be_deleted_or_unloaded_meanwhile() -> None:
    box = Box(brokerUnloadIdleTopicsAfterSeconds=1)
    client = box.client()
    client.producer(1)
    client.producer(2, OTHER)
    txn = Txn(client, 10 * MINUTE)
    at = txn.send(0)
    txn.send(0, 2)
    for each in (1, 2):
        client.request("close_producer", producer_id=each)
    box.advance(5)
    assert box.broker.topics.loaded(topic_of(box).name) is not None
    box.broker.topics.delete(topic_of(box, OTHER).name, box.now, force=True)
    box.turn()
    box.advance(5)
    consumer = reader(box)
    assert consumer.received() == []
    txn.commit()
    assert consumer.received() == [at]


def test_an_idle_topic_is_let_go_with_its_open_transaction() -> None:
    box = Box(brokerUnloadIdleTopicsAfterSeconds=1)
    client = publisher(box)
    txn = Txn(client, 10 * MINUTE)
    at = txn.send(0)
    for each in (1, 2):
        client.request("close_producer", producer_id=each)
    name = topic_of(box).name
    box.advance(5)
    assert box.broker.topics.loaded(name) is None
    txn.commit()
    assert reader(box).received() == [at]


def test_ledgers_with_open_entries_stay() -> None:
    box = Box(managedLedgerMaxEntriesPerLedger=2, **AS_PULSAR)
    client = publisher(box)
    txn = Txn(client, 10 * MINUTE)
    first = txn.send(0)
    for i in range(1, 8):
        plain(client, i)
    assert first[0] in topic_of(box).ledger.ledgers, "nobody is subscribed, and yet"
    txn.abort()
    assert first[0] not in topic_of(box).ledger.ledgers
    assert not list(box.broker.catalog.items("aborted/")), "the rows went with it"


def test_past_aborts_take_no_memory() -> None:
    box = Box()
    client, consumer = publisher(box), reader(box)
    for i in range(50):
        txn = Txn(client)
        txn.send(2 * i)
        txn.abort()
        consumer.ack(plain(client, 2 * i + 1))
    topic = topic_of(box)
    assert not topic.stored.open
    assert not topic.subscriptions["s"].cursor.ranges
    assert not box.broker.transactions.open


def test_a_terminated_topic_ends_with_its_last_transaction() -> None:
    box = Box()
    client, consumer = publisher(box), reader(box)
    consumer.cnx.client_version = "Pulsar-Java-v4.2.4"
    txn = Txn(client)
    txn.send(0)
    topic_of(box).termination.begin(lambda at, now: None, lambda error: None, box.now)
    box.turn()
    assert consumer.names() == []
    txn.abort()
    assert consumer.names() == ["reachedEndOfTopic"]


def test_compaction_stops_at_what_is_open_and_leaves_out_what_was_aborted() -> None:
    box = Box()
    client = publisher(box)
    topic = topic_of(box)
    one = plain(client, 0, partition_key="a")
    gone = Txn(client)
    gone.send(1, partition_key="a")
    gone.abort()
    two = plain(client, 2, partition_key="b")
    txn = Txn(client)
    txn.send(3, partition_key="b")
    behind = plain(client, 4, partition_key="c")
    compact(box)
    view = topic.compaction.view
    assert view is not None and view.horizon == two
    consumer = reader(box, "c", read_compacted=True)
    assert consumer.received() == [one, two]
    txn.abort()
    assert consumer.received() == [behind]
    compact(box)
    assert reader(box, "d", read_compacted=True).received() == [one, two, behind]


def test_only_a_send_that_names_one_is_of_a_transaction() -> None:
    box = Box()
    client, consumer = publisher(box), reader(box)
    txn = Txn(client)
    begun = txn.bits
    txn.bits = {"txnid_least_bits": 0, "txnid_most_bits": 0}
    ordinary = txn.send(0)
    assert consumer.received() == [ordinary]
    txn.bits = {"txnid_least_bits": 0, "txnid_most_bits": 3}
    txn.post(1)
    assert client.take("send_error").error == NOT_ALLOWED, "another's coordinator has begun it, if anybody has"
    txn.bits = begun
    txn.commit()


def test_a_transaction_is_looked_up_once_for_a_producer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[TxnId] = []
    find = TransactionTable.find

    def counted(self: TransactionTable, txn_id: TxnId, who: Any) -> OpenTransaction:
        asked.append(txn_id)
        return find(self, txn_id, who)

    monkeypatch.setattr(TransactionTable, "find", counted)
    client = publisher(Box())
    txn = Txn(client)
    sent = [txn.send(number, producer_id) for number in range(5) for producer_id in (1, 2)]
    assert len(asked) == 2
    assert len(topic_of(client.box).stored.open.runs(asked[0])) == 1
    txn.commit()
    assert sorted(reader(client.box).received()) == sorted(sent[::2])
