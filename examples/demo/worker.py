"""Worker process: consumes, and reports on stdout what it has done, one JSON document per line.

    python -m examples.demo.worker --url URL --topic T --subscription S --type Shared --name N --log F

A reading takes some time (--takes), as a write to a remote store would, and several are in progress at once. The share
of a worker depends on how many it holds relative to its --weight. It reports a reading before acknowledging it: if
killed in between, the reading is reported twice, never lost. It exits when its stdin is closed.
"""

import argparse
import json
import sys
import threading
import time
from collections import deque
from typing import Any

import pulsar

from examples.demo.readings import Reading, is_poison, read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("url", "topic", "subscription", "type", "name", "log"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--picky", action="store_true", help="give back what nobody can process")
    parser.add_argument("--fails", type=int, default=0, metavar="N", help="give back every Nth, as if it had failed")
    parser.add_argument("--weight", type=int, default=1, help="how much of the work it can take, beside others")
    parser.add_argument("--takes", type=float, default=0.0, metavar="SECONDS", help="from having a reading to done")
    given = parser.parse_args()
    client = pulsar.Client(given.url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Warn, given.log))
    consumer = client.subscribe(
        given.topic,
        given.subscription,
        consumer_type=getattr(pulsar.ConsumerType, given.type),
        consumer_name=given.name,
        initial_position=pulsar.InitialPosition.Earliest,
        negative_ack_redelivery_delay_ms=200,
        receiver_queue_size=20,
        properties={"weight": str(given.weight)},
    )
    ended = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    tell("ready")
    work(consumer, given, ended)
    client.close()


def work(consumer: Any, given: argparse.Namespace, ended: threading.Event) -> None:
    """Receive readings, and finish each after its processing time."""
    count = 0
    under_way: deque[tuple[float, Any]] = deque()
    while not ended.is_set():
        try:
            message = consumer.receive(timeout_millis=20 if under_way else 200)
            under_way.append((time.monotonic() + given.takes, message))
        except pulsar.PulsarException:  # nothing yet, or the box is down: the client reconnects
            pass
        while under_way and under_way[0][0] <= time.monotonic():
            _, message = under_way.popleft()
            count += 1
            reading = read(message.data())
            broken = given.picky and is_poison(reading.number)
            if broken or (given.fails and count % given.fails == 0):
                tell("failed", reading)
                consumer.negative_acknowledge(message)
            else:
                tell("done", reading)
                acknowledge(consumer, message)


def acknowledge(consumer: Any, message: Any) -> None:
    """Acknowledge a message. If the box is down, the message is redelivered later."""
    try:
        consumer.acknowledge(message)
    except pulsar.PulsarException:
        pass


def tell(what: str, reading: Reading | None = None) -> None:
    body = "" if reading is None else reading.body.decode()
    print(json.dumps({"what": what, "at": time.monotonic_ns(), "body": body}), flush=True)


if __name__ == "__main__":
    main()
