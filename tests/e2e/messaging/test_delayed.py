"""Delayed delivery with the official Python client."""

import json
import math
import os
import signal
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pulsar
import pytest

from tests.e2e.clients import EARLIEST, admin_path, connect, is_quiet, take, until
from tests.e2e.commands import run
from tests.e2e.conftest import Running
from tests.e2e.process.test_process import Place

SHARED = pulsar.ConsumerType.Shared
HOLDING_BACK = pytest.mark.parametrize("kind", [SHARED, pulsar.ConsumerType.KeyShared], ids=["shared", "key-shared"])
TICK = 1.0
"""Seconds that a message may be early by default."""


@HOLDING_BACK
def test_deliver_after_and_deliver_at(client: Any, topic: str, kind: Any) -> None:
    consumer = client.subscribe(topic, "s", kind)
    producer = client.create_producer(topic)
    sent = time.time()
    producer.send(b"after", deliver_after=timedelta(seconds=2))
    producer.send(b"at", deliver_at=math.ceil((sent + 3) * 1000))
    producer.send(b"past", deliver_at=int((sent - 60) * 1000))
    producer.send(b"now")
    came = {take(consumer, 1)[0]: time.time() - sent for _ in range(4)}
    assert set(came) == {b"now", b"past", b"after", b"at"}
    assert came[b"after"] >= 2 - TICK
    assert came[b"at"] >= 3 - TICK
    assert is_quiet(consumer)


@pytest.mark.parametrize("kind", [pulsar.ConsumerType.Exclusive, pulsar.ConsumerType.Failover])
def test_where_one_consumer_gets_everything_delays_do_not_count(client: Any, topic: str, kind: Any) -> None:
    consumer = client.subscribe(topic, "s", kind)
    producer = client.create_producer(topic)
    producer.send(b"delayed", deliver_after=timedelta(days=10))
    producer.send(b"now")
    assert take(consumer, 2) == [b"delayed", b"now"]


def test_statistics_and_metrics_tell_what_is_not_due(box: Running, client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s", SHARED)
    producer = client.create_producer(topic)
    for _ in range(3):
        producer.send(b"delayed", deliver_after=timedelta(days=10))
    producer.send(b"now")
    assert take(consumer, 1) == [b"now"]

    def stats() -> Any:
        return json.loads(box.admin("GET", f"{admin_path(topic)}/stats"))

    until(lambda: bool(stats()["subscriptions"]["s"]["msgBacklog"] == 3))  # clients group acknowledgements
    found = stats()
    sub = found["subscriptions"]["s"]
    assert (sub["msgDelayed"], sub["msgBacklogNoDelayed"]) == (3, 0)
    assert sub["delayedMessageIndexSizeInBytes"] == found["delayedMessageIndexSizeInBytes"] > 0
    assert sub["why"]["reason"] == "delayed"
    assert sub["why"]["until"] > time.time() * 1000
    with urlopen(f"{box.web_url}/metrics/", timeout=30) as response:
        lines = [line for line in response.read().decode().splitlines() if f'topic="{topic}"' in line]
    (delayed,) = [line for line in lines if line.startswith("pulsar_subscription_delayed{")]
    assert float(delayed.split("} ")[1].split()[0]) == 3


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.call("stop")


def test_ten_days_pass_at_once_with_a_virtual_clock_and_over_a_kill(place: Place) -> None:
    rows = place.start("--clock", "virtual")
    topic = "persistent://public/default/later"
    client = connect(rows["pulsar"])
    client.subscribe(topic, "s", SHARED).close()
    client.create_producer(topic).send(b"later", deliver_after=timedelta(days=10))
    client.close()
    os.kill(place.started.pop(), signal.SIGKILL)
    until(lambda: place.status()[1]["state"] == "not running")
    rows = place.start("--clock", "virtual")
    client = connect(rows["pulsar"])
    consumer = client.subscribe(topic, "s", SHARED, initial_position=EARLIEST)
    assert is_quiet(consumer)
    place.call("clock", "advance", "9d")
    assert is_quiet(consumer)
    place.call("clock", "advance", "1d")
    assert take(consumer, 1) == [b"later"]
    client.close()


def test_a_delay_that_is_too_long_is_refused_and_the_command_says_so(box: Running, client: Any, topic: str) -> None:
    consumer = client.subscribe(topic, "s", SHARED)
    policy = {"active": True, "tickTime": 1000, "maxDeliveryDelayInMillis": 60_000}
    box.admin("POST", f"{admin_path(topic)}/delayedDelivery", json.dumps(policy))

    def produce(body: str, after: str, code: int) -> str:
        return run("produce", "--url", box.url, topic, body, "--after", after, code=code).stderr.decode()

    said = produce("late", "2m", 1)
    assert "Exceeds max allowed delivery delay of 60000 milliseconds" in said, said
    produce("soon", "1s", 0)
    assert take(consumer, 1) == [b"soon"]
    assert is_quiet(consumer)
