"""A transaction: what is published and acknowledged in it counts together or not at all."""

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
    """One that is open: see ``Client.transaction``, ``Producer.enter`` and ``Consumer.acknowledge``::

        with client.transaction(timeout=60) as transaction:  # committed at the end, aborted by an exception
            producer.enter(transaction)
            producer.send(Outgoing(b"paid"))
            consumer.acknowledge(messages, transaction)

    Who has it ended by somebody else (an epoch commit) calls ``settle`` and hands ``id`` on.
    """

    def __init__(self, client: Client, coordinators: Coordinators, most: int, least: int) -> None:
        self.bits = (most, least)
        """The two halves of its id, the coordinator's number first."""
        self.failed: PulsarBoxError | None = None
        """Why it cannot be committed: something of it was refused, or was on its way when a connection was lost."""
        self.ended = ""
        """``committed`` or ``aborted``; empty while it is open."""
        self.on_its_way = 0
        """Frames without a receipt."""
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
        with contextlib.suppress(PulsarBoxError):  # its time-out comes
            self.abort()

    @property
    def id(self) -> str:
        """Its id, as ``0:17``."""
        return f"{self.bits[0]}:{self.bits[1]}"

    def __str__(self) -> str:
        return self.id

    def check_open(self) -> None:
        """Raises InvalidTxnStatus where it has ended."""
        if self.ended:
            raise InvalidTxnStatus(f"Transaction {self.id} is {self.ended}: it takes nothing more in")

    # What producers and consumers tell -------------------------------------------------------------------------------

    def joined(self, producer: TopicProducer) -> None:
        """A producer's messages are in it from now on. Raises InvalidTxnStatus."""
        self.check_open()
        self._producers[producer] = None

    def publishes_to(self, topic: str) -> None:
        """A frame goes to this topic. Raises InvalidTxnStatus, what the coordinator tells, NotConnected, NoAnswer."""
        self.check_open()
        if topic not in self._topics:
            self._ask(CommandAddPartitionToTxn(partitions=[topic]))
            self._topics.add(topic)
        self.on_its_way += 1

    def acknowledges_on(self, consumer: TopicConsumer, subscription: str) -> None:
        """A consumer acknowledges in it. Raises as ``publishes_to``."""
        self.check_open()
        if (consumer.topic, subscription) not in self._subscriptions:
            where = Subscription(topic=consumer.topic, subscription=subscription)
            self._ask(CommandAddSubscriptionToTxn(subscription=[where]))
            self._subscriptions.add((consumer.topic, subscription))
        self._consumers[consumer] = None

    def lost(self, error: PulsarBoxError) -> None:
        """A frame gets no receipt."""
        self.on_its_way -= 1
        self.fail(error)

    def fail(self, error: PulsarBoxError) -> None:
        """It cannot be committed any more."""
        self.failed = self.failed or error

    # The end ---------------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Return when the broker has all that is in it. Raises why it cannot be committed; NotConnected, NoAnswer."""
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
        """Wait for what is on its way, and commit; where something of it failed it is aborted, and this raises why.

        Raises as ``settle``, and what the coordinator tells. Where its answer has not come (NotConnected, NoAnswer, and
        ``ended`` is empty), it may be asked again.
        """
        self.check_open()
        try:
            self.settle()
        except PulsarBoxError:
            with contextlib.suppress(PulsarBoxError):  # its time-out comes
                self._end(TxnAction.ABORT, "aborted")
            raise
        self._end(TxnAction.COMMIT, "committed")

    def abort(self) -> None:
        """Abort it, whatever has become of what is on its way. Raises what the coordinator tells."""
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
