"""One worker: a process that consumes, and tells on stdout what it has done, one JSON document a line.

    python -m examples.demo.worker --url URL --topic T --subscription S --type Shared --name N --log F

It tells of a reading before it acknowledges it: killed in between, it is told of twice, never not at all. It ends when
its stdin is closed.
"""

import argparse
import json
import sys
import threading
import time
from typing import Any

import pulsar

from examples.demo.readings import Reading, is_poison, read

MAX_REDELIVERIES = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("url", "topic", "subscription", "type", "name", "log"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--dead-letters", help="topic of what was given back too often")
    parser.add_argument("--fails", type=int, default=0, metavar="N", help="give back every Nth, as if it had failed")
    given = parser.parse_args()
    client = pulsar.Client(given.url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Warn, given.log))
    options: dict[str, Any] = {}
    if given.dead_letters:
        options["dead_letter_policy"] = pulsar.ConsumerDeadLetterPolicy(MAX_REDELIVERIES, given.dead_letters)
    consumer = client.subscribe(
        given.topic,
        given.subscription,
        consumer_type=getattr(pulsar.ConsumerType, given.type),
        consumer_name=given.name,
        initial_position=pulsar.InitialPosition.Earliest,
        negative_ack_redelivery_delay_ms=200,
        receiver_queue_size=20,
        **options,
    )
    ended = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_the_end, daemon=True).start()
    tell("ready")
    count = 0
    while not ended.is_set():
        try:
            message = consumer.receive(timeout_millis=200)
        except pulsar.PulsarException:  # nothing yet, or the box is away: the client connects again by itself
            continue
        count += 1
        reading = read(message.data())
        broken = bool(given.dead_letters) and is_poison(reading.number)
        if broken or (given.fails and count % given.fails == 0):
            tell("failed", reading)
            consumer.negative_acknowledge(message)
        else:
            tell("done", reading)
            acknowledge(consumer, message)
    client.close()


def acknowledge(consumer: Any, message: Any) -> None:
    """Where the box is away, the reading comes again, to whomever."""
    try:
        consumer.acknowledge(message)
    except pulsar.PulsarException:
        pass


def tell(what: str, reading: Reading | None = None) -> None:
    body = "" if reading is None else reading.body.decode()
    print(json.dumps({"what": what, "at": time.monotonic_ns(), "body": body}), flush=True)


if __name__ == "__main__":
    main()
