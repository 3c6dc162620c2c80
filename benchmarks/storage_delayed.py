"""Storage benchmark of many delayed messages: memory, startup, and the punctuality of others beside them."""

import threading
import time
from collections.abc import Iterator
from random import Random
from statistics import quantiles
from typing import Any, Final

import pulsar

from benchmarks.storage_box import TOPIC, box_in, client_of, disk_bytes, memory_of
from benchmarks.storage_table import Line, Options, folder, say
from tests.tools.box import BoxProcess

MESSAGES: Final = 10_000_000
SIZE: Final = 100
DAY_MS: Final = 86_400_000
PENDING: Final = 5_000
SOON: Final = 10_000
"""Messages that fall due while punctuality is measured."""
SOON_SECONDS: Final = 10
FIRST_AFTER_SECONDS: Final = 5
SUBSCRIPTION: Final = "workers"
PATIENCE_MS: Final = 120_000
STEP: Final = 1_000_000
SHARED: Final = pulsar.ConsumerType.Shared
NOW: Final = b"now"
"""Body of a message that is not delayed."""


def subscribed(client: Any) -> Any:
    earliest = pulsar.InitialPosition.Earliest
    return client.subscribe(TOPIC, SUBSCRIPTION, SHARED, initial_position=earliest, receiver_queue_size=1000)


def fill(box: BoxProcess, count: int) -> None:
    """Publish messages due at random times within a day that begins in ten days."""
    random, body = Random(1), b"x" * SIZE
    client = client_of(box)
    producer = client.create_producer(
        TOPIC, block_if_queue_full=True, max_pending_messages=PENDING, batching_enabled=False, send_timeout_millis=0
    )
    begin = int(time.time() * 1000) + 10 * DAY_MS
    for number in range(count):
        producer.send_async(body, _sent, deliver_at=begin + random.randrange(DAY_MS))
        if number % STEP == STEP - 1:
            say(f"delayed: {number + 1:,} of {count:,} messages")
    producer.flush()
    client.close()


def _sent(result: Any, message_id: Any) -> None:
    if result != pulsar.Result.Ok:
        say(f"delayed: a message was refused: {result}")


def passed_by(box: BoxProcess) -> float:
    """Return the seconds until a new consumer receives a message published after all delayed ones."""
    begin = time.monotonic()
    client = client_of(box)
    client.create_producer(TOPIC).send(NOW)
    consumer = subscribed(client)
    message = consumer.receive(timeout_millis=PATIENCE_MS)
    assert message.data() == NOW, message.data()[:20]
    seconds = time.monotonic() - begin
    consumer.acknowledge(message)
    client.close()
    return seconds


def lateness(box: BoxProcess) -> list[float]:
    """Return the sorted delays in ms from due time to arrival, for messages that fall due in succession."""
    client = client_of(box)
    consumer = subscribed(client)
    found: list[float] = []

    def receive() -> None:
        while len(found) < SOON:
            message = consumer.receive(timeout_millis=PATIENCE_MS)
            if message.data() != NOW:  # possibly redelivered, if its acknowledgement was lost
                found.append(time.time() * 1000 - int(message.data()))
            consumer.acknowledge(message)

    receiver = threading.Thread(target=receive)
    receiver.start()
    producer = client.create_producer(TOPIC, block_if_queue_full=True, batching_enabled=False)
    first = time.time() + FIRST_AFTER_SECONDS
    for number in range(SOON):
        at = int((first + number * SOON_SECONDS / SOON) * 1000)
        producer.send_async(b"%d" % at, _sent, deliver_at=at)
    producer.flush()
    receiver.join()
    client.close()
    return sorted(found)


def delayed(options: Options) -> Iterator[Line]:
    """Measure ten million messages delayed by ten days."""
    count = max(1000, int(MESSAGES * options.scale))
    title = f"{count:,} delayed messages of {SIZE} bytes"
    with folder(options) as path, box_in(path) as box:
        box.start()
        client = client_of(box)
        subscribed(client).close()
        client.close()
        empty = memory_of(box.pid)["PSS, anonymous"]
        yield Line("the same box while it is empty", "PSS, anonymous", empty, "MiB")
        fill(box, count)
        yield Line(title, "PSS, anonymous, at once", memory_of(box.pid)["PSS, anonymous"], "MiB")
        yield Line(title, "a consumer comes, and a message behind them all", passed_by(box), "s")
        time.sleep(options.rest_seconds)
        yield Line(
            title, f"PSS, anonymous, after {options.rest_seconds:g} s", memory_of(box.pid)["PSS, anonymous"], "MiB"
        )
        yield Line(title, "disk", disk_bytes(box.data) / 2**20, "MiB")
        box.kill()
        yield Line(title, "restart after a kill: port serves", box.start(), "s")
        yield Line(title, "the same: a message behind them all", passed_by(box), "s")
        yield Line(title, "PSS, anonymous, then", memory_of(box.pid)["PSS, anonymous"], "MiB")
        late = lateness(box)
    title = f"{SOON:,} others that fall due beside them in {SOON_SECONDS} s"
    cuts = quantiles(late, n=100)
    for name, value in (("earliest", late[0]), ("median", cuts[49]), ("p99", cuts[98]), ("latest", late[-1])):
        yield Line(title, f"after its time, {name}", value, "ms")
