"""Exclusive producers, and topics that grow while in use."""

import threading
from collections.abc import Iterator
from typing import Any

import pulsar
import pytest

from tests.e2e.clients import (
    EARLIEST,
    PATIENCE_SECONDS,
    QUIET_MS,
    connect,
    numbered,
    read_to_end,
    send_all,
    take,
    until,
)
from tests.e2e.conftest import Running
from tests.tools.box import BoxProcess

SHARED = pulsar.ProducerAccessMode.Shared
EXCLUSIVE = pulsar.ProducerAccessMode.Exclusive
WAIT = pulsar.ProducerAccessMode.WaitForExclusive
FENCING = pulsar.ProducerAccessMode.ExclusiveWithFencing


class Opening:
    """Producer opened by another thread, because the client blocks."""

    def __init__(self, client: Any, topic: str, mode: Any) -> None:
        self.producer: Any = None
        self.error: Exception | None = None
        self._begins = threading.Event()
        self._thread = threading.Thread(target=self._open, args=(client, topic, mode), daemon=True)
        self._thread.start()

    def _open(self, client: Any, topic: str, mode: Any) -> None:
        self._begins.set()
        try:
            self.producer = client.create_producer(topic, access_mode=mode)
        except Exception as error:
            self.error = error

    def waits(self) -> bool:
        """Check that the producer is not open after a while. Later requests of its client wait as well; other clients
        do not.
        """
        self._begins.wait()
        self._thread.join(QUIET_MS / 1000)
        return self._thread.is_alive()

    def opened(self) -> Any:
        """Return the producer once it is open."""
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "waits although the topic is free"
        if self.error is not None:
            raise self.error
        return self.producer


@pytest.fixture
def other(box: Running) -> Iterator[Any]:
    """Return a second client, with its own connection."""
    opened = connect(box.url)
    yield opened
    opened.close()


@pytest.fixture(params=["persistent", "non-persistent"])
def either(request: pytest.FixtureRequest, topic: str) -> str:
    """Return a topic of each kind."""
    return topic.replace("persistent", str(request.param))


def test_an_exclusive_producer_keeps_others_away(client: Any, either: str) -> None:
    first = client.create_producer(either, access_mode=EXCLUSIVE)
    with pytest.raises(pulsar.ProducerFenced):
        client.create_producer(either, access_mode=EXCLUSIVE)
    with pytest.raises(pulsar.ProducerBusy):
        client.create_producer(either)
    first.close()
    client.create_producer(either, access_mode=EXCLUSIVE).send(b"mine")


def test_shared_producers_keep_an_exclusive_one_away(client: Any, either: str) -> None:
    client.create_producer(either)
    with pytest.raises(pulsar.ProducerFenced):
        client.create_producer(either, access_mode=EXCLUSIVE)


@pytest.mark.parametrize("present", [SHARED, EXCLUSIVE])
def test_one_that_waits_takes_over(client: Any, other: Any, either: str, present: Any) -> None:
    first = client.create_producer(either, access_mode=present)
    second = Opening(other, either, WAIT)
    assert second.waits()
    third = Opening(other, either, WAIT)
    assert third.waits()
    first.close()
    producer = second.opened()
    producer.send(b"second")
    assert third.waits()
    producer.close()
    third.opened().send(b"third")


def test_one_that_waits_takes_over_from_a_client_that_goes(client: Any, box: Running, either: str) -> None:
    first = connect(box.url)
    first.create_producer(either, access_mode=EXCLUSIVE)
    second = Opening(client, either, WAIT)
    assert second.waits()
    first.shutdown()
    second.opened().send(b"second")


def test_a_fenced_producer_sends_no_more(client: Any, other: Any, either: str) -> None:
    first = client.create_producer(either, access_mode=EXCLUSIVE)
    beside = client.create_producer(either + "-beside")
    first.send(b"first")
    waiting = Opening(other, either, WAIT)
    assert waiting.waits()
    second = other.create_producer(either, access_mode=FENCING)
    with pytest.raises(pulsar.ProducerFenced):
        waiting.opened()
    with pytest.raises(pulsar.ProducerFenced):
        first.send(b"late")
    second.send(b"second")
    beside.send(b"the client goes on")
    with pytest.raises(pulsar.ProducerFenced):
        first.send(b"still late")


def test_nothing_of_a_fenced_producer_comes_behind_its_successor(client: Any, other: Any, topic: str) -> None:
    first = client.create_producer(topic, access_mode=EXCLUSIVE, max_pending_messages=10_000)
    answers: list[tuple[int, Any]] = []

    def answered(number: int) -> Any:
        return lambda result, _: answers.append((number, result))

    for number in range(2000):
        first.send_async(b"old %d" % number, answered(number))
    second = other.create_producer(topic, access_mode=FENCING)
    second.send(b"new")
    for number in range(2000, 2100):
        first.send_async(b"old %d" % number, answered(number))
    until(lambda: len(answers) == 2100)
    kept = read_to_end(other.create_reader(topic, pulsar.MessageId.earliest))
    old = kept[: kept.index(b"new")]
    assert kept == [*old, b"new"]
    assert old == [b"old %d" % number for number in range(len(old))]
    receipted = [number for number, result in sorted(answers) if result == pulsar.Result.Ok]
    assert receipted == list(range(len(receipted)))
    assert len(receipted) <= len(old)


@pytest.mark.parametrize("end", [BoxProcess.stop, BoxProcess.kill])
def test_who_had_a_topic_before_a_restart_has_it_after_it(own_box: BoxProcess, end: Any) -> None:
    topic = "persistent://public/default/mine"
    own_box.start()
    client, other = connect(own_box.url), connect(own_box.url)
    first = client.create_producer(topic, access_mode=EXCLUSIVE)
    first.send(b"first")
    second = other.create_producer(topic, access_mode=FENCING)
    second.send(b"second")
    end(own_box)
    own_box.process = None
    own_box.start()
    # Both reconnect with their previous epoch, in either order.
    second.send(b"second again")
    with pytest.raises(pulsar.ProducerFenced):
        first.send(b"late")
    with pytest.raises(pulsar.ProducerFenced):
        other.create_producer(topic, access_mode=EXCLUSIVE)
    kept = read_to_end(other.create_reader(topic, pulsar.MessageId.earliest))
    assert kept == [b"first", b"second", b"second again"]
    client.close()
    other.close()


def test_an_exclusive_producer_of_all_partitions(box: Running, client: Any, topic: str) -> None:
    box.admin("PUT", f"{topic.replace('://', '/')}/partitions", "3")
    consumer = client.subscribe(topic, "s")
    producer = client.create_producer(topic, access_mode=EXCLUSIVE)
    with pytest.raises(pulsar.ProducerFenced):
        client.create_producer(topic, access_mode=EXCLUSIVE)
    send_all(producer, numbered(9))
    assert sorted(take(consumer, 9)) == numbered(9)


def test_a_topic_grows_under_those_that_use_it(box: Running, client: Any, other: Any, topic: str) -> None:
    path = f"{topic.replace('://', '/')}/partitions"
    box.admin("PUT", path, "2")
    before = client.subscribe(topic, "s", initial_position=EARLIEST)
    old = client.create_producer(topic)
    box.admin("POST", path, "4")
    assert len(other.get_topic_partitions(topic)) == 4
    new = other.create_producer(topic)
    places = {each.partition() for each in send_all(new, numbered(40))}
    assert places == {0, 1, 2, 3}
    send_all(old, numbered(10, start=40))
    before.close()
    # The subscription exists from the start of the new partitions, although no consumer subscribed to it there.
    after = other.subscribe(topic, "s")
    assert sorted(take(after, 50), key=int) == numbered(50)
