"""Clients, producers and consumers that close while an open request is pending."""

import json
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pulsar
import pytest

from pulsarbox.protocol.commands import COMMANDS, encode_frame
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand
from tests.e2e.clients import admin_path, connect, until
from tests.e2e.conftest import Running
from tests.e2e.raw import Raw
from tests.tools.campaigns import short

CLOSINGS = 1000
STEP_SECONDS = 4e-6
"""Delay that each of a thousand clients adds to the one before; the last clients have their response by then."""
SERVICE_NOT_READY = 6


def connected(box: Running, topic: str) -> tuple[int, int]:
    """Return the producers and consumers of a topic."""
    stats = json.loads(box.admin("GET", f"{admin_path(topic)}/stats"))
    return len(stats["publishers"]), sum(len(each["consumers"]) for each in stats["subscriptions"].values())


def check_free(box: Running, client: Any, topic: str) -> None:
    """Check that nothing remains on the topic: a producer and a consumer can have exclusive access."""
    until(lambda: connected(box, topic) == (0, 0))
    producer = client.create_producer(topic, access_mode=pulsar.ProducerAccessMode.Exclusive)
    consumer = client.subscribe(topic, "s")
    producer.close()
    consumer.close()


def open_producer(client: Any, topic: str, opened: Callable[[Any, Any], None]) -> None:
    client._client.create_producer_async(topic, pulsar._pulsar.ProducerConfiguration(), opened)


def open_consumer(client: Any, topic: str, opened: Callable[[Any, Any], None]) -> None:
    client._client.subscribe_async(topic, "s", pulsar._pulsar.ConsumerConfiguration(), opened)


@pytest.mark.parametrize("clients", short([60, CLOSINGS], 1))
@pytest.mark.parametrize("open_one", [open_producer, open_consumer])
def test_clients_that_are_closed_while_they_open_something(
    box: Running, client: Any, topic: str, open_one: Any, clients: int
) -> None:
    """Half of the programs also close the objects that they receive. If the client is closing the same object, its
    ``close`` may raise AlreadyClosed, whatever the broker answers.
    """
    client.create_producer(topic).close()
    results: Counter[tuple[bool, str]] = Counter()

    def close(result: Any, producer_or_consumer: Any) -> None:
        if result == pulsar.Result.Ok:
            producer_or_consumer.close_async(lambda result: None)

    def leave(result: Any, producer_or_consumer: Any) -> None:
        """Close the client."""

    for number in range(clients):
        closes = number % 2 == 0
        closing = connect(box.url)
        open_one(closing, topic, close if closes else leave)
        end = time.perf_counter() + number * STEP_SECONDS * CLOSINGS / clients
        while time.perf_counter() < end:
            pass
        try:
            closing.close()
            results[closes, "Ok"] += 1
        except pulsar.AlreadyClosed:
            results[closes, "AlreadyClosed"] += 1
    assert results[False, "Ok"] == clients // 2, results
    check_free(box, client, topic)


ASKED = {
    "producer": ("close_producer", {"producer_id": 1, "producer_name": "p", "producer_access_mode": 1}),
    "subscribe": ("close_consumer", {"consumer_id": 1, "subscription": "s", "subType": 0}),
}
"""Exclusive producer and exclusive consumer: the closing command of each, and the fields of the opening command."""


def frame(field: str, **fields: Any) -> bytes:
    """Return a command by the name of its field in BaseCommand."""
    number = next(number for number, spec in COMMANDS.items() if spec.field == field)
    command = BaseCommand(type=number)  # type: ignore[arg-type]
    body = getattr(command, field)
    body.MergeFrom(type(body)(**fields))
    return encode_frame(command)


@pytest.mark.parametrize("kind", ASKED)
@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
def test_a_thousand_commands_that_are_abandoned_in_one_write(
    box: Running, client: Any, topic: str, kind: str, domain: str
) -> None:
    """Each command opens its own topic, and so waits for the disk, or a topic that other commands have just closed."""
    if not box.is_ours:
        pytest.skip("Pulsar does not answer a command that is abandoned")
    close, fields = ASKED[kind]
    topics = [topic.replace("persistent", domain) + f"-{number % (CLOSINGS // 2)}" for number in range(CLOSINGS)]
    ids = {name: number for name, number in fields.items() if name.endswith("_id")}
    frames = []
    for number, name in enumerate(topics):
        frames.append(frame(kind, topic=name, request_id=2 * number + 1, **fields))
        frames.append(frame(close, request_id=2 * number + 2, **ids))
    frames.append(frame(kind, topic=topics[0], request_id=2 * CLOSINGS + 1, **fields))
    with Raw(box.url) as raw:
        raw.tell(b"".join(frames))
        answers = [raw.answer() for _ in frames]
        assert [request_id for request_id, _ in answers] == list(range(1, len(frames) + 1)), "every one, in order"
        codes = Counter(code for _, code in answers[:-1:2])
        assert not codes.keys() - {None, SERVICE_NOT_READY}
        assert domain == "non-persistent" or codes[SERVICE_NOT_READY] > CLOSINGS // 4
        assert all(code is None for _, code in (*answers[1::2], answers[-1]))
        assert sum(connected(box, topics[0])) == 1
        assert sum(connected(box, topics[1])) == 0
        raw.tell(frame(kind, topic=topics[1], request_id=1, **fields | dict.fromkeys(ids, 2)))
        assert raw.answer() == (1, None)
    for name in topics[:2]:
        check_free(box, client, name)
