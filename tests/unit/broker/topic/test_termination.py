"""Terminated topics (``broker.topic.termination``): responses as in Pulsar 4.2, but sent once."""

from typing import Any

import pytest

from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic
from pulsarbox.protocol.features import supports_end_of_topic
from pulsarbox.protocol.PulsarApi_pb2 import CommandSubscribe, ProducerAccessMode
from tests.unit.broker.playbook import TOPIC, Box, Client

TERMINATED = 15


class Ends:
    """The outcome of a termination."""

    def __init__(self, box: Box) -> None:
        self.at: Any = None
        self.error: Exception | None = None
        topic = box.broker.topics.find(parse_topic(TOPIC), box.now)
        topic.termination.begin(self._done, self._failed, box.now)  # type: ignore[union-attr]
        box.turn()

    @property
    def done(self) -> bool:
        """Whether success was reported."""
        return self.at is not None

    def _done(self, at: Any, now: Any) -> None:
        self.at = at

    def _failed(self, error: Exception) -> None:
        self.error = error


def java(box: Box) -> Client:
    """Return a client that supports REACHED_END_OF_TOPIC."""
    client = box.client()
    client.cnx.client_version = "Pulsar-Java-v4.2.4"
    return client


def test_it_ends_with_what_was_sent_before() -> None:
    box = Box(auto=False)
    client = box.client()
    client.ask("producer", request_id=1, topic=TOPIC, producer_id=1)
    box.commit()
    client.take("producer_success")
    for i in range(3):
        client.send(i)
    ends = Ends(box)
    client.send(3)  # after the termination, although nothing is committed yet
    refused = client.take("send_error")
    assert (refused.sequence_id, refused.error) == (3, TERMINATED)
    assert not ends.done
    box.commit()
    assert client.names() == ["send_receipt"] * 3
    assert not ends.done, "it is not durable yet"
    box.commit()
    assert client.names() == ["close_producer"]
    assert ends.at is not None and ends.at.entry_id == 2
    client.send(4)
    assert client.names() == []  # the producer may not have received the error yet


def test_entries_that_are_given_up_are_not_the_end() -> None:
    box = Box(auto=False)
    client = box.client()
    client.ask("producer", request_id=1, topic=TOPIC, producer_id=1)
    box.commit()
    client.send(0)
    box.commit()
    client.names()
    client.send(1)
    ends = Ends(box)
    box.commit(OSError("no disk"))
    assert client.names() == ["send_error", "close_producer"]
    box.advance(1.0)
    while box.commit():
        pass
    assert ends.at is not None and ends.at.entry_id == 0


@pytest.mark.parametrize("mode", ProducerAccessMode.values())
def test_nobody_produces_any_more(mode: Any) -> None:
    box = Box()
    box.client().publish(1)
    Ends(box)
    for restarted in (False, True):
        each = box.restart() if restarted else box
        refused = each.client().producer(producer_access_mode=mode, initial_subscription_name="none")
        assert (refused.error, refused.message) == (TERMINATED, "Topic was already terminated")
        topic: Any = each.broker.topics.find(parse_topic(TOPIC), each.now)
        assert not topic.subscriptions


def test_those_that_wait_for_the_topic_are_refused() -> None:
    box = Box()
    one, two = box.client(), box.client()
    one.producer(producer_access_mode=ProducerAccessMode.Exclusive)
    two.producer(producer_access_mode=ProducerAccessMode.WaitForExclusive)
    Ends(box)
    assert one.names() == ["close_producer"]
    assert two.take("error").error == TERMINATED


def test_it_ends_once_and_stays_so_over_an_unload_and_kill_9() -> None:
    box = Box()
    [*_, last] = box.client().publish(3)
    first = Ends(box)
    assert first.at == last
    assert Ends(box).at == last
    done: list[bool] = []
    topic = box.broker.topics.find(parse_topic(TOPIC), box.now)
    assert topic is not None
    box.broker.topics.unload(topic, lambda _: done.append(True), box.now)
    box.turn()
    assert done
    assert Ends(box).at == last
    assert Ends(box.restart()).at == last


def test_killed_before_it_is_durable_it_goes_on() -> None:
    box = Box()
    client = box.client()
    client.producer()
    box.auto = False
    client.send(0)
    ends = Ends(box)
    box.commit()
    assert not ends.done
    again = box.restart()
    assert again.client().publish(1)


def test_an_empty_topic_ends_before_its_first_message() -> None:
    box = Box()
    java(box).subscribe()
    at = Ends(box).at
    assert at is not None and at.entry_id == -1


def test_a_topic_that_is_deleted_meanwhile() -> None:
    box = Box()
    box.client().publish(1)
    box.auto = False
    ends = Ends(box)
    box.broker.topics.delete(parse_topic(TOPIC), box.now, force=True)
    while box.commit():
        pass
    assert isinstance(ends.error, PulsarBoxError) and "deleted" in str(ends.error)
    box.auto = True
    assert box.client().publish(1)


def test_it_is_not_unloaded_under_a_termination() -> None:
    box = Box()
    box.client().publish(1)
    box.auto = False
    ends = Ends(box)
    topic: Any = box.broker.topics.find(parse_topic(TOPIC), box.now)
    topic.close(box.now)
    assert not topic.is_settled()
    while box.commit():
        pass
    assert ends.at is not None
    assert topic.is_settled()


@pytest.mark.parametrize("kind", CommandSubscribe.SubType.values())
def test_consumers_hear_of_it_when_they_have_acknowledged_everything(kind: Any) -> None:
    box = Box(activeConsumerFailoverDelayTimeMillis=0)
    client = java(box)
    ids = box.client().publish(3)
    client.subscribe(subType=kind)
    client.flow(2)
    client.names()
    Ends(box)
    assert client.names() == []
    client.flow(10)
    assert client.received() == ids[2:]
    client.ack(*ids[:2])
    assert client.names() == []
    client.ack(ids[2])
    assert client.take("reachedEndOfTopic").consumer_id == 1
    client.ack(ids[2])
    client.flow(1)
    assert client.names() == [], "once is enough"


def test_those_that_have_are_told_at_once_and_others_when_they_come() -> None:
    box = Box()
    client = java(box)
    [only] = box.client().publish(1)
    client.subscribe()
    client.flow(10)
    client.ack(only)
    client.subscribe("behind", 2)
    client.names()
    Ends(box)
    assert client.take("reachedEndOfTopic").consumer_id == 1
    assert client.names() == []
    again = box.restart()
    later = java(again)
    later.subscribe()
    assert later.names() == []
    later.flow(1)
    assert later.names() == ["reachedEndOfTopic"]


def test_an_operator_who_skips_the_rest_ends_it_too() -> None:
    box = Box()
    client = java(box)
    box.client().publish(3)
    client.subscribe()
    Ends(box)
    topic: Any = box.broker.topics.find(parse_topic(TOPIC), box.now)
    topic.subscriptions["s"].clearing.clear(lambda _: None, box.now)
    box.turn()
    assert client.names() == ["reachedEndOfTopic"]


@pytest.mark.parametrize(
    ("version", "protocol", "told"),
    [
        ("Pulsar-Java-v4.2.4", 21, True),
        ("Pulsar-Java-v4.2.4", 8, False),
        ("pulsar-rs-v6.4.0", 12, True),
        ("pulsarbox-0.1.0", 21, True),
        ("Pulsar-CPP-v3.7.0", 21, False),
        ("Pulsar-Go-version-unknown", 21, False),
        ("Pulsar Go 0.14.0", 21, False),
        ("somebody else", 21, False),
    ],
)
def test_who_knows_what_it_means(version: str, protocol: int, told: bool) -> None:
    assert supports_end_of_topic(version, protocol) is told


def test_a_client_that_does_not_know_is_not_told() -> None:
    box = Box()
    client = box.client()  # with an unknown client version
    [only] = box.client().publish(1)
    client.subscribe()
    client.flow(1)
    client.ack(only)
    client.names()
    Ends(box)
    client.flow(1)
    assert client.names() == []
