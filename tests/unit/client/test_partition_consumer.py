"""Acknowledgements of a consumer after the broker closes it, and after the connection is lost."""

from collections.abc import Callable
from itertools import count
from typing import Any, cast

import pytest

from pulsarbox.client.client import Client
from pulsarbox.client.errors import NotConnected
from pulsarbox.client.message_decoder import ReceivedMessage
from pulsarbox.client.partition_consumer import Subscribing, TopicConsumer
from pulsarbox.client.transaction import Transaction
from pulsarbox.protocol.metadata import encode_entry
from pulsarbox.protocol.PulsarApi_pb2 import (
    BaseCommand,
    CommandAck,
    CommandAckResponse,
    CommandCloseConsumer,
    CommandMessage,
    MessageIdData,
    MessageMetadata,
    MetadataError,
)


class Wire:
    """A connection whose acknowledgements the test answers."""

    def __init__(self) -> None:
        self.consumers: dict[int, Any] = {}
        self.closed = ""
        self.acks: list[CommandAck] = []
        self.answers: dict[int, BaseCommand] = {}

    def ask_later(self, command: BaseCommand, request_id: int) -> None:
        self.acks.append(command.ack)

    def send(self, frame: bytes) -> None:
        pass

    def forget(self, request_id: int) -> None:
        self.answers.pop(request_id, None)

    def answered(self, request_id: int) -> bool:
        return bool(self.closed) or request_id in self.answers

    def acknowledged(self, request_id: int) -> bool:
        return request_id in self.answers and not self.answers[request_id].ackResponse.HasField("error")

    def answer(self, request_id: int, seconds: float, what: str) -> BaseCommand:
        if request_id not in self.answers:
            raise NotConnected(self.closed or "no answer")
        return self.answers.pop(request_id)

    def respond(self, ack: CommandAck, error: bool = False) -> None:
        response = CommandAckResponse(consumer_id=ack.consumer_id, request_id=ack.request_id)
        if error:
            response.error, response.message = MetadataError, "Consumer not found"
        self.answers[ack.request_id] = BaseCommand(type=BaseCommand.ACK_RESPONSE, ackResponse=response)


class Side:
    """A client with one connection at a time."""

    timeout = 1.0

    def __init__(self) -> None:
        self.numbers = count(1)
        self.wire = Wire()
        self.comebacks: list[Any] = []

    def broker_of(self, topic: str) -> Wire:
        return self.wire

    def ask(self, connection: Wire, command: BaseCommand, request_id: int) -> BaseCommand:
        return BaseCommand()

    def turn(self, seconds: float) -> None:
        raise AssertionError("nothing to wait for")


@pytest.fixture
def side() -> Side:
    return Side()


@pytest.fixture
def consumer(side: Side) -> TopicConsumer:
    made = TopicConsumer(cast(Client, side), "persistent://public/default/t", -1, Subscribing("s"), lambda _: None)
    made.open()
    return made


def arrive(consumer: TopicConsumer, *entries: int) -> list[ReceivedMessage]:
    for entry in entries:
        payload = encode_entry(MessageMetadata(producer_name="p", sequence_id=entry, publish_time=1), b"x")
        consumer.message(CommandMessage(consumer_id=1, message_id=MessageIdData(ledgerId=1, entryId=entry)), payload)
    return consumer.take(100)


def close_by_broker(consumer: TopicConsumer) -> None:
    closing = CommandCloseConsumer(consumer_id=1, request_id=0)
    consumer.handle_command(BaseCommand(type=BaseCommand.CLOSE_CONSUMER, close_consumer=closing))


def lose(side: Side, consumer: TopicConsumer) -> None:
    lost, side.wire = side.wire, Wire()
    lost.closed = "lost"
    consumer.lost("lost")


Ending = Callable[[Side, TopicConsumer], None]


@pytest.mark.parametrize("end", [lambda side, consumer: close_by_broker(consumer), lose])
def test_an_answered_acknowledgement_is_not_sent_again(side: Side, consumer: TopicConsumer, end: Ending) -> None:
    wire = side.wire
    consumer.acknowledge(arrive(consumer, 0))
    wire.respond(wire.acks[0])
    end(side, consumer)
    consumer.open()
    assert len(wire.acks) + (len(side.wire.acks) if side.wire is not wire else 0) == 1
    consumer.settle()


def test_a_lost_acknowledgement_is_sent_again(side: Side, consumer: TopicConsumer) -> None:
    received = arrive(consumer, 0, 1)
    consumer.acknowledge(received[:1])
    lose(side, consumer)
    consumer.acknowledge(received[1:])
    consumer.open()
    assert [[each.entryId for each in ack.message_id] for ack in side.wire.acks] == [[0], [1]]


@pytest.mark.parametrize("refused", [False, True])
def test_after_a_close_by_the_broker_earlier_messages_are_not_acknowledged(
    side: Side, consumer: TopicConsumer, refused: bool
) -> None:
    """A seek closes the consumers: an acknowledgement after it would undo it."""
    wire, received = side.wire, arrive(consumer, 0, 1)
    consumer.acknowledge(received[:1])
    close_by_broker(consumer)
    consumer.acknowledge(received[1:])
    consumer.acknowledge_up_to(received)
    consumer.open()
    wire.respond(wire.acks[0], error=refused)
    consumer.settle()
    assert len(wire.acks) == 1
    consumer.acknowledge(arrive(consumer, 0))
    assert [each.entryId for each in wire.acks[1].message_id] == [0]


def test_after_a_close_by_the_broker_and_the_loss_of_the_connection_nothing_is_owed(
    side: Side, consumer: TopicConsumer
) -> None:
    consumer.acknowledge(arrive(consumer, 0))
    close_by_broker(consumer)
    side.wire.closed = "lost"
    side.wire = Wire()
    consumer.settle()
    consumer.open()
    assert side.wire.acks == []


def test_a_transaction_fails_if_the_broker_closed_the_consumer_of_its_messages(
    side: Side, consumer: TopicConsumer
) -> None:
    failures: list[Exception] = []

    class Failing:
        def acknowledges_on(self, consumer: TopicConsumer, subscription: str) -> None:
            pass

        def fail(self, error: Exception) -> None:
            failures.append(error)

    received = arrive(consumer, 0)
    close_by_broker(consumer)
    consumer.open()
    consumer.acknowledge_in(cast(Transaction, Failing()), received)
    consumer.acknowledge_up_to(received, cast(Transaction, Failing()))
    assert [str(each) for each in failures] == ["the broker closed the consumer"] * 2
    assert side.wire.acks == []
