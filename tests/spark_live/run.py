"""Campaign: the JVM's reader beside writers, packing and trimming returns every planned message, and no other.

The box has volumes of 1 MB, so that they are sealed, packed and removed all the time. Producers number the messages of
their topic. Each read is planned as Spark's are, for all topics, split into a few tasks; its rows must be the planned
entries with consecutive numbers, and the numbers of its ends must be those that the producers got receipts for. A read
may end early, where entries have moved: Python would go on there. ``--seconds`` or ``--reads`` end the campaign.

Progress on stderr, a summary on stdout; exits with 1 if a read was wrong.
"""

import argparse
import ast
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pulsar

from pulsarbox import PulsarBox
from pulsarbox.spark.connect.broker_api import LATEST, Range, Service
from pulsarbox.spark.source.jvm_plan import jvm_plan
from pulsarbox.spark.source.partition_plan import partitions
from pulsarbox.spark.topic_segments import BEGINNING, Reach, TopicSegment
from tests.spark_live.plan_reader import PlanReader
from tests.tools import build_jar

SOURCE: Final = Path(__file__).with_name("PlannedReads.java")
SMALL: Final[dict[str, Any]] = {
    "journalVolumeSizeMbytes": 1,
    "journalCheckpointMbytes": 1,
    "journalMaxBatchMbytes": 1,
    "maxMessageSize": 200_000,
    "managedLedgerMaxEntriesPerLedger": 300,
    "compressionAtRest": "zstd",
    "compressionAtRestCpuPercent": 100,
    "brokerDeleteInactiveTopicsEnabled": False,
}
TOPICS: Final = ("small", "batched", "large", "zipped")
_SIZES: Final = {"small": 60, "batched": 120, "large": 15_000, "zipped": 3_000}


class Writers:
    """Producers of all topics, each in a thread, and a consumer that has the box trim what it read."""

    def __init__(self, url: str) -> None:
        self._client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
        self.numbers: dict[str, dict[tuple[int, int], int]] = {topic: {} for topic in TOPICS}
        """By topic, the first number of each entry."""
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(topic,)) for topic in TOPICS]
        self._subscriptions = [self._client.subscribe(topic, "keeps") for topic in TOPICS]
        for thread in self._threads:
            thread.start()

    def _write(self, topic: str) -> None:
        batched = topic in ("batched", "zipped")
        codec = pulsar.CompressionType.LZ4 if topic == "zipped" else pulsar.CompressionType.NONE
        producer = self._client.create_producer(
            topic, batching_enabled=batched, batching_max_messages=7, block_if_queue_full=True, compression_type=codec
        )
        number, dice = 0, random.Random(topic)
        while not self._over.is_set():
            for _ in range(dice.randrange(1, 40)):
                body = b"%d " % number + dice.randbytes(8) * (dice.randrange(_SIZES[topic]) // 8)
                producer.send_async(body, self._noter(topic, number))
                number += 1
            time.sleep(dice.random() / 4)
        producer.flush()

    def _noter(self, topic: str, number: int) -> Any:
        def note(result: Any, message_id: Any) -> None:
            if message_id.batch_index() <= 0:
                self.numbers[topic][message_id.ledger_id(), message_id.entry_id()] = number

        return note

    def trim(self, dice: random.Random) -> None:
        """Acknowledge a part of a topic's messages."""
        subscription = dice.choice(self._subscriptions)
        last = None
        with suppress(pulsar.Timeout):
            for _ in range(dice.randrange(1000)):
                last = subscription.receive(timeout_millis=200)
        if last is not None:
            subscription.acknowledge_cumulative(last)

    def close(self) -> None:
        """End the producers."""
        self._over.set()
        for thread in self._threads:
            thread.join()
        self._client.close()


def seen_by(reader: PlanReader, plan: bytes) -> tuple[str, list[list[int]]]:
    """Return why a read ended early, or nothing, and what it saw of each segment. Raises RuntimeError if it failed."""
    answer = reader.answer(plan)
    if answer.startswith("!"):
        raise RuntimeError(answer)
    reason, *seen = answer.split("\t")
    return reason, [ast.literal_eval(each) for each in seen]


def wrong(segment: TopicSegment, seen: list[int], numbers: dict[tuple[int, int], int]) -> str:
    """Return what is wrong with the rows of a segment, or nothing."""
    rows, first, last, low, high, rest, consecutive = seen
    if not rows:
        return "" if rest == segment.first else "no rows, but entries that count as read"
    if not consecutive or high - low + 1 != rows:
        return "the numbers are not consecutive"
    if first != segment.first or last != rest - 1:
        return f"entries {first} to {last} of those from {segment.first} up to {rest}"
    if numbers.get((segment.ledger, first), low) != low:
        return f"entry {first} begins with {low} instead of {numbers[segment.ledger, first]}"
    behind = numbers.get((segment.ledger, rest))
    return f"entry {last} ends with {high}, the next one begins with {behind}" if behind not in (None, high + 1) else ""


def campaign(box: PulsarBox, data: Path, folder: Path, seconds: float, reads: int, seed: int) -> Counter[str]:
    """Read until the time or the number of reads is over; return what happened."""
    counts: Counter[str] = Counter()
    dice = random.Random(seed)
    writers, reader = Writers(box.service_url), PlanReader(SOURCE, folder)
    reach = Reach(box.service_url, box.admin_url, str(data), "mmap")
    names = [f"persistent://public/default/{topic}" for topic in TOPICS]
    deadline = time.monotonic() + seconds
    try:
        time.sleep(2)
        while time.monotonic() < deadline and counts["reads"] < reads:
            with Service(reach) as service:
                found = service.many_segments([Range(name, BEGINNING, LATEST, 0) for name in names])
            if dice.random() < 0.1:
                time.sleep(dice.random() / 2)  # so that what was planned may move
            for part in partitions([each for some in found for each in some], dice.choice((10, 100, 400)), 1 << 24, 8):
                _check(reader, part, reach, writers, counts)
            if dice.random() < 0.2:
                writers.trim(dice)
            print(dict(counts), file=sys.stderr, flush=True)
    finally:
        writers.close()
        reader.close()
    return counts


def _check(
    reader: PlanReader, part: tuple[TopicSegment, ...], reach: Reach, writers: Writers, counts: Counter[str]
) -> None:
    plan = jvm_plan(part, reach, is_raw=True)
    if not plan:
        counts["without a plan"] += 1
        return
    reason, seen = seen_by(reader, plan)
    counts["reads"] += 1
    counts["handed over"] += bool(reason)
    counts["rows"] += sum(each[0] for each in seen)
    for segment, each in zip(part, seen, strict=True):
        said = wrong(segment, each, writers.numbers[segment.topic.rpartition("/")[2]])
        if not said and not reason and each[5] <= segment.last:
            said = "it ended early without a reason"
        if said:
            counts["wrong"] += 1
            print(f"WRONG: {segment}: {said}: {each} {reason}", file=sys.stderr, flush=True)
    if reason and counts["handed over"] < 20:
        print(f"handed over: {reason}", file=sys.stderr, flush=True)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--reads", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(words)
    if build_jar.compiler() is None:
        print("javac is missing", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        data, classes = Path(folder) / "data", Path(folder) / "classes"
        classes.mkdir()
        with PulsarBox(data_dir=data, process=True, **SMALL) as box:
            counts = campaign(box, data, classes, arguments.seconds, arguments.reads, arguments.seed)
    print(f"{counts['reads']} reads of {counts['rows']} rows, {counts['handed over']} handed over to Python, "
          f"{counts['wrong']} wrong")  # fmt: skip
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
