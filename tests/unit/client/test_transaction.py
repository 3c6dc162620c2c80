"""Transactions of the client, against a scripted peer."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from pulsarbox.client.client import Client
from pulsarbox.client.errors import NotConnected
from pulsarbox.client.producer import Options, Producer
from pulsarbox.errors import InvalidTxnStatus, NotAllowed, TransactionCoordinatorNotFound, TransactionNotFound
from pulsarbox.protocol import replies
from pulsarbox.protocol.commands import encode_frame
from pulsarbox.protocol.message_encoder import Outgoing
from pulsarbox.protocol.metadata import parse_entry
from pulsarbox.protocol.PulsarApi_pb2 import (
    BaseCommand,
    CommandAddPartitionToTxnResponse,
    CommandEndTxnResponse,
    CommandNewTxnResponse,
    CommandSendError,
    TxnAction,
)
from pulsarbox.protocol.send_receipt import ReceiptEncoder
from tests.unit.client.scripted import connected, peer
from tests.unit.client.test_client import lookup

COORDINATOR_NOT_FOUND, NOT_FOUND, NOT_ALLOWED = (
    TransactionCoordinatorNotFound.server_error,
    TransactionNotFound.server_error,
    NotAllowed.server_error,
)


class Broker:
    """Broker with two coordinators and scripted responses to connects, sends and transaction ends."""

    def __init__(self) -> None:
        self.url = ""
        self.coordinators = 2
        self.on_connect: list[str] = []
        self.on_send: list[str] = []
        self.on_end: list[str] = []
        self.entries: list[tuple[str, int | None, int]] = []
        """For each SEND: topic of the producer, low half of the transaction ID, number of messages."""
        self.asked: list[str] = []
        self._topics: dict[int, str] = {}
        self._begun = 16

    def answer(self, command: BaseCommand, rest: bytes) -> list[bytes] | None:
        kind = command.type
        if kind == BaseCommand.CONNECT:
            return [connected()]
        if kind == BaseCommand.LOOKUP:
            return [lookup(command.lookupTopic.request_id, self.url)]
        if kind == BaseCommand.PARTITIONED_METADATA:
            asked = command.partitionMetadata
            count = self.coordinators if "transaction_coordinator_assign" in asked.topic else 0
            return [replies.partition_metadata(asked.request_id, count)]
        if kind == BaseCommand.PRODUCER:
            self._topics[command.producer.producer_id] = command.producer.topic
            return [replies.producer_success(command.producer.request_id, "name", -1, b"")]
        if kind == BaseCommand.SEND:
            return self._send(command, rest)
        return self._coordinate(command)

    def _send(self, command: BaseCommand, rest: bytes) -> list[bytes] | None:
        send, metadata = command.send, parse_entry(rest).metadata
        txn = send.txnid_least_bits if send.HasField("txnid_least_bits") else None
        assert txn == (metadata.txnid_least_bits if metadata.HasField("txnid_least_bits") else None)
        self.entries.append((self._topics[send.producer_id].rsplit("/")[-1], txn, send.num_messages))
        what = self.on_send.pop(0) if self.on_send else "ok"
        if what == "end":
            return None
        if what == "refused":
            error = CommandSendError(
                producer_id=send.producer_id, sequence_id=send.sequence_id, error="NotAllowedError", message=what
            )
            return [encode_frame(BaseCommand(type=BaseCommand.SEND_ERROR, send_error=error))]
        return [ReceiptEncoder(send.producer_id).encode(send.sequence_id, 0, 7, send.sequence_id)]

    def _coordinate(self, command: BaseCommand) -> list[bytes] | None:
        kind = command.type
        if kind == BaseCommand.TC_CLIENT_CONNECT_REQUEST:
            connect = command.tcClientConnectRequest
            self.asked.append(f"connect {connect.tc_id}")
            refused = COORDINATOR_NOT_FOUND if self.on_connect and self.on_connect.pop(0) == "gone" else None
            return [replies.tc_client_connect_response(connect.request_id, refused)]
        if kind == BaseCommand.NEW_TXN:
            self._begun += 1
            self.asked.append(f"new {command.newTxn.tc_id} {command.newTxn.txn_ttl_seconds}")
            return [
                replies.transaction_response(
                    CommandNewTxnResponse, command.newTxn.request_id, self._begun, command.newTxn.tc_id
                )
            ]
        if kind == BaseCommand.ADD_PARTITION_TO_TXN:
            add = command.addPartitionToTxn
            self.asked.append(f"add {' '.join(each.rsplit('/')[-1] for each in add.partitions)}")
            least, most = add.txnid_least_bits, add.txnid_most_bits
            return [replies.transaction_response(CommandAddPartitionToTxnResponse, add.request_id, least, most)]
        if kind == BaseCommand.END_TXN:
            return self._end(command)
        return []

    def _end(self, command: BaseCommand) -> list[bytes] | None:
        end = command.endTxn
        self.asked.append("commit" if end.txn_action == TxnAction.COMMIT else "abort")
        what = self.on_end.pop(0) if self.on_end else "ok"
        if what == "end":
            return None
        refused = NOT_FOUND if what == "not found" else None
        least, most = end.txnid_least_bits, end.txnid_most_bits
        return [replies.transaction_response(CommandEndTxnResponse, end.request_id, least, most, refused, what)]


@pytest.fixture
def broker() -> Broker:
    return Broker()


@contextmanager
def client_of(broker: Broker) -> Iterator[Client]:
    with peer(broker.answer) as one:
        broker.url = one.url
        client = Client([one.address], timeout=30.0)
        try:
            yield client
        finally:
            client.close()


def producer(client: Client, topic: str = "t", **options: bool) -> Producer:
    return Producer(client, topic, Options(**options), lambda *told: None)  # type: ignore[arg-type]


def test_one_after_the_other_at_every_coordinator(broker: Broker) -> None:
    with client_of(broker) as client:
        begun = [client.transaction(1.5).id for _ in range(3)]
    assert begun == ["0:17", "1:18", "0:19"]
    assert broker.asked == ["connect 0", "new 0 1500", "connect 1", "new 1 1500", "new 0 1500"]


def test_where_there_are_none(broker: Broker) -> None:
    broker.coordinators = 0
    with client_of(broker) as client, pytest.raises(NotAllowed, match="are disabled on the broker"):
        client.transaction(1)


def test_a_coordinator_that_is_somewhere_else_for_a_moment(broker: Broker) -> None:
    broker.on_connect = ["gone", "gone"]
    with client_of(broker) as client:
        assert client.transaction(1).id == "0:17"
    assert broker.asked == ["connect 0"] * 3 + ["new 0 1000"]


def test_what_is_inside_and_what_is_outside_share_no_batch(broker: Broker) -> None:
    with client_of(broker) as client:
        one, other = producer(client), producer(client, "u", batching=False)
        first, second = client.transaction(60), client.transaction(60)
        one.send(Outgoing(b"outside"))
        for txn in (first, second):
            one.enter(txn)
            one.send_plain([b"a", b"b", b"c"])
        other.enter(second)
        other.send_plain([b"d", b"e"])
        second.commit()
        first.abort()
        one.enter(None)
        one.send_plain([b"x", b"y"])
        one.flush()
    assert sorted(broker.entries, key=str) == [
        ("t", 17, 3), ("t", 18, 3), ("t", None, 1), ("t", None, 2), ("u", 18, 1), ("u", 18, 1),
    ]  # fmt: skip
    told = broker.asked[4:]
    assert sorted(told) == ["abort", "add t", "add t", "add u", "commit"]
    assert told.index("commit") > told.index("add u")


def test_one_that_has_ended_takes_nothing_in(broker: Broker) -> None:
    with client_of(broker) as client:
        one = producer(client)
        with client.transaction(60) as txn:
            one.enter(txn)
            one.send(Outgoing(b"a"))
        assert txn.ended == "committed"
        sends = [partial(one.send, Outgoing(b"b")), partial(one.send_plain, [b"b"])]
        takers: list[Callable[[], None]] = [*sends, txn.commit, txn.abort]
        for take in takers:
            with pytest.raises(InvalidTxnStatus, match="0:17 is committed"):
                take()
    assert broker.entries == [("t", 17, 1)]


def test_what_is_refused_fails_it_and_not_the_producer(broker: Broker) -> None:
    broker.on_send = ["ok", "refused"]
    with client_of(broker) as client:
        one = producer(client, batching=False)
        txn = client.transaction(60)
        one.enter(txn)
        one.send_plain([b"a", b"b", b"c"])
        with pytest.raises(NotAllowed, match="refused"):
            txn.commit()
        assert (txn.ended, broker.asked[-1]) == ("aborted", "abort")
        one.enter(None)
        one.send_plain([b"d"])
        one.flush()


def test_what_was_on_its_way_is_not_sent_again(broker: Broker) -> None:
    """Resending could store a duplicate. Outside a transaction the message is sent again; inside, the transaction
    fails."""
    broker.on_send = ["ok", "end"]
    with client_of(broker) as client:
        one = producer(client, batching=False)
        txn = client.transaction(60)
        one.enter(txn)
        one.send_plain([b"a", b"b"])
        with pytest.raises(NotConnected):
            txn.settle()
        one.enter(None)
        one.send_plain([b"c"])
        one.flush()
        txn.abort()
    assert [each[1] for each in broker.entries] == [17, 17, None]
    assert broker.asked[-1] == "abort"


def test_a_lost_answer_is_asked_for_again(broker: Broker) -> None:
    broker.on_end = ["end"]
    with client_of(broker) as client:
        client.transaction(60).commit()
    assert broker.asked == ["connect 0", "new 0 60000", "commit", "connect 0", "commit"]


def test_one_that_has_timed_out(broker: Broker) -> None:
    broker.on_end = ["not found"]
    with client_of(broker) as client:
        txn = client.transaction(60)
        with pytest.raises(TransactionNotFound):
            txn.commit()
    assert broker.asked[-1] == "commit"


def test_an_exception_aborts_it(broker: Broker) -> None:
    with client_of(broker) as client:
        with pytest.raises(KeyError, match="mine"), client.transaction(60) as txn:
            raise KeyError("mine")
        assert txn.ended == "aborted"
    assert broker.asked[-1] == "abort"
