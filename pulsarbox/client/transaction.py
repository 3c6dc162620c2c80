"""Transactions: messages and acknowledgements that take effect together or not at all."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import TYPE_CHECKING

from pulsarbox.errors import InvalidTxnStatus, PulsarBoxError
from pulsarbox.protocol.PulsarApi_pb2 import (
    CommandAddPartitionToTxn,
    CommandAddSubscriptionToTxn,
    CommandEndTxn,
    Subscription,
    TxnAction,
)

if TYPE_CHECKING:
    from pulsarbox.client.client import Client
    from pulsarbox.client.partition_consumer import TopicConsumer
    from pulsarbox.client.partition_producer import TopicProducer
    from pulsarbox.client.transaction_coordinators import Coordinators


class Transaction:
    """An open transaction: see ``Client.transaction``, ``Producer.enter`` and ``Consumer.acknowledge``::

        with client.transaction(timeout=60) as transaction:  # commits at the end, aborts on an exception
            producer.enter(transaction)
            producer.send(Outgoing(b"paid"))
            consumer.acknowledge(messages, transaction)

    If another component ends the transaction (an epoch commit), call ``settle`` and pass on ``id``.
    """

    def __init__(self, client: Client, coordinators: Coordinators, most: int, least: int) -> None:
        self.bits = (most, least)
        """Most and least significant bits of the ID; the former is the coordinator's number."""
        self.failed: PulsarBoxError | None = None
        """Why the transaction cannot commit: an operation was rejected, or pending when a connection was lost."""
        self.ended = ""
        """``committed`` or ``aborted``; empty while the transaction is open."""
        self.on_its_way = 0
        """Number of frames without a receipt."""
        self._client = client
        self._coordinators = coordinators
        self._topics: set[str] = set()
        self._subscriptions: set[tuple[str, str]] = set()
        self._producers: dict[TopicProducer, None] = {}
        self._consumers: dict[TopicConsumer, None] = {}

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.ended:
            return
        if error is None:
            self.commit()
            return
        with contextlib.suppress(PulsarBoxError):  # the coordinator aborts it on timeout
            self.abort()

    @property
    def id(self) -> str:
        """The transaction ID, for example ``0:17``."""
        return f"{self.bits[0]}:{self.bits[1]}"

    def __str__(self) -> str:
        return self.id

    def check_open(self) -> None:
        """Raise InvalidTxnStatus if the transaction has ended."""
        if self.ended:
            raise InvalidTxnStatus(f"Transaction {self.id} is {self.ended}: nothing can be added to it")

    # Producer and consumer callbacks ---------------------------------------------------------------------------------

    def joined(self, producer: TopicProducer) -> None:
        """Register a producer that publishes in the transaction. Raises InvalidTxnStatus."""
        self.check_open()
        self._producers[producer] = None

    def publishes_to(self, topic: str) -> None:
        """Register a frame for a topic. Raises InvalidTxnStatus, the coordinator's error, NotConnected, NoAnswer."""
        self.check_open()
        if topic not in self._topics:
            self._ask(CommandAddPartitionToTxn(partitions=[topic]))
            self._topics.add(topic)
        self.on_its_way += 1

    def acknowledges_on(self, consumer: TopicConsumer, subscription: str) -> None:
        """Register a consumer that acknowledges in the transaction. Raises as ``publishes_to``."""
        self.check_open()
        if (consumer.topic, subscription) not in self._subscriptions:
            where = Subscription(topic=consumer.topic, subscription=subscription)
            self._ask(CommandAddSubscriptionToTxn(subscription=[where]))
            self._subscriptions.add((consumer.topic, subscription))
        self._consumers[consumer] = None

    def lost(self, error: PulsarBoxError) -> None:
        """Record a frame that gets no receipt, and fail the transaction."""
        self.on_its_way -= 1
        self.fail(error)

    def fail(self, error: PulsarBoxError) -> None:
        """Prevent the transaction from committing."""
        self.failed = self.failed or error

    # Completion ------------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Wait until the broker has stored all operations. Raises why it cannot commit; NotConnected, NoAnswer."""
        self.check_open()
        for producer in self._producers:
            producer.send_batch()
        while self.on_its_way and self.failed is None:
            self._client.turn(1.0)
            for producer in self._producers:
                producer.check()
        for consumer in self._consumers:
            consumer.settle()
        if self.failed is not None:
            raise self.failed

    def commit(self) -> None:
        """Wait for pending operations and commit. If one failed, abort and raise its error.

        Raises as ``settle``, and the coordinator's error. After NotConnected or NoAnswer with an empty ``ended`` the
        outcome is unknown, and the call may be repeated.
        """
        self.check_open()
        try:
            self.settle()
        except PulsarBoxError:
            with contextlib.suppress(PulsarBoxError):  # the coordinator aborts it on timeout
                self._end(TxnAction.ABORT, "aborted")
            raise
        self._end(TxnAction.COMMIT, "committed")

    def abort(self) -> None:
        """Abort the transaction regardless of pending operations. Raises the coordinator's error."""
        self.check_open()
        with contextlib.suppress(PulsarBoxError):
            self.settle()
        self._end(TxnAction.ABORT, "aborted")

    def _end(self, action: TxnAction, outcome: str) -> None:
        self._ask(CommandEndTxn(txn_action=TxnAction.Name(action)))
        self.ended = outcome

    def _ask(self, request: CommandAddPartitionToTxn | CommandAddSubscriptionToTxn | CommandEndTxn) -> None:
        request.txnid_most_bits, request.txnid_least_bits = self.bits
        self._coordinators.ask(self.bits[0], request)
