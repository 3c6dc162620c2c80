"""Campaign over the ready-made pipelines: after any kill, output topic and Parquet have every row once."""

import collections
import json
import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import pulsar
import pyarrow.parquet as pq

from tests.spark_faults.pipeline_job import WINDOW_MS
from tests.spark_faults.run import POINTS, Case, Count, Driver, FaultsError, Keeper, Outcome, cluster, of_executors, say

EPOCH: Final = 100
"""Messages in a micro-batch, or in a part of a job."""
STEP_MS: Final = 50
"""Milliseconds between the times of consecutive messages."""
START_MS: Final = 1_700_000_000_000
LATE: Final = 7
"""One in this many messages arrives after its window was emitted."""
SOME: Final = ("worker task-during", "box commit-during", "jvm commit-after", "fail task-after", "jvm task-during")
"""Points struck on a cluster."""
SHORT: Final = ("worker task-during", "box commit-during", "jvm commit-after")
"""Points struck in CI, over one pipeline at a time."""


class Files(threading.Thread):
    """Thread that kills when files appear: Spark's own writes cannot be struck in code."""

    def __init__(self, case: "PipelineCase", driver: Driver) -> None:
        super().__init__(daemon=True)
        self._case = case
        self._driver = driver

    def run(self) -> None:
        folder, found = self._case.folder, self._case.files
        while self._driver.process.poll() is None and found:
            for pattern, whom in list(found.items()):
                if any(folder.glob(pattern)):
                    del found[pattern]
                    self._case.points.append(f"{whom} at {pattern}")
                    os.kill(int((folder / f"{whom}.pid").read_text()), signal.SIGKILL)
            threading.Event().wait(0.002)


class PipelineCase(Case):
    """A folder, a broker, and drivers of a shipped pipeline."""

    def __init__(self, name: str, root: Path, keeper: Keeper, what: str, points: tuple[str, ...]) -> None:
        super().__init__(name, root, keeper, EPOCH * (len(points) + 2), 0)
        self.more = {"module": "tests.spark_faults.pipeline_job", "what": what, "epoch": EPOCH}
        self.topic = f"persistent://public/default/{name}"
        self.parquet = self.folder / "parquet"
        self.files: dict[str, str] = {}
        for epoch, point in enumerate(points, 1):
            self.plan(epoch, point)

    def driver(self, partitions: int, master: str = "", conf: dict[str, str] | None = None) -> Driver:
        """Start a driver, and watch its files."""
        made = super().driver(partitions, master, conf)
        if self.files:
            Files(self, made).start()
        return made

    def run(self, strikes: int = 0) -> None:
        """Run until the work is complete and every point was reached. ``strikes``: deaths planned elsewhere."""
        self.strikes = strikes + len(self.files)
        self.until_written(cycle([2, 3, 1]))
        left = [each.read_text() for each in (self.folder / "faults").iterdir() if each.suffix != ".struck"]
        if left or self.files:
            raise FaultsError(f"points that were never come by: {', '.join([*left, *self.files])}")


def rollup(root: Path, keeper: Keeper, points: tuple[str, ...] = POINTS, files: bool = True) -> Outcome:
    """Roll up messages, some of them late, into a topic and Parquet."""
    return _rollup(PipelineCase("rollup", root, keeper, "rollup", points), files)


def rollup_cluster(root: Path, keeper: Keeper) -> Outcome:
    """Run the rollup on a standalone master with two workers."""
    return _on_a_cluster(PipelineCase("rollup-cluster", root, keeper, "rollup", SOME), _rollup)


def _on_a_cluster(case: PipelineCase, run: Any) -> Outcome:
    with cluster(case.folder) as master:
        case.master, case.conf = master, of_executors(case.folder) | {"spark.driver.host": "127.0.0.1"}
        found: Outcome = run(case, files=False)
        return found


# Rollups


def _rollup(case: PipelineCase, files: bool) -> Outcome:
    if files:
        history = "state/rollup/rollup-parquet/checkpoint"
        case.files = {f"{history}/offsets/0": "jvm", "parquet/*.parquet": "jvm", f"{history}/commits/0": "box"}
    wanted: collections.Counter[int] = collections.Counter()
    client = client_of(case)
    producer = client.create_producer(case.topic)
    for number in range(case.rows):
        time = START_MS + STEP_MS * number
        if number % LATE == LATE - 1:
            time = max(START_MS, time - 10 * WINDOW_MS)
        producer.send(b"%d" % number, event_timestamp=time)
        wanted[time // WINDOW_MS * WINDOW_MS] += 1
    producer.send(b"end", event_timestamp=START_MS + 10**9)
    client.close()
    case.run()
    told = _rolled(case)
    kept = [
        (int(row["windowStart"].timestamp() * 1000), row["late"], row["messages"]) for row in _files_of(case.parquet)
    ]
    late, messages = sum(late for _, late, _ in told), sum(messages for _, _, messages in told)
    say(f"{case.name}: {len(told)} rows, {late} of them late, {messages} messages")
    return case.ended(count_of_rollup(wanted, told, kept))


Rolled = tuple[int, bool, int]
"""A row of a rollup: start of the window, whether it is late, number of messages."""


def count_of_rollup(wanted: Mapping[int, int], told: Sequence[Rolled], kept: Sequence[Rolled]) -> Count:
    """Count the missing and duplicated windows.

    ``wanted``: messages of each window, by its start; ``told``: the rows of the topic; ``kept``: those of the files.
    """
    found: collections.Counter[int] = collections.Counter()
    for start, _, messages in told:
        found[start] += messages
    doubled = [start for start, messages in found.items() if messages > wanted.get(start, 0)]
    missing = [start for start, messages in wanted.items() if messages > found[start]]
    in_time = collections.Counter(start for start, late, _ in told if not late)
    strange = [f"window {start} goes out {times} times" for start, times in in_time.items() if times > 1]
    return Count(missing, doubled, strange + _alone(collections.Counter(told), collections.Counter(kept)))


def _rolled(case: PipelineCase) -> list[Rolled]:
    rows = [json.loads(value) for value in values_of(case, f"{case.topic}-rolled")]
    return [(row["windowStart"], row["late"], row["messages"]) for row in rows]


def _files_of(place: Path) -> list[dict[str, Any]]:
    """Return the rows of the files in Spark's log; other files are leftovers of killed processes."""
    names: set[str] = set()
    for log in (place / "_spark_metadata").iterdir():
        if log.name.isdigit() or log.suffix == ".compact":
            names |= {json.loads(line)["path"] for line in log.read_text().splitlines()[1:]}
    return [row for name in names for row in pq.read_table(name.removeprefix("file://")).to_pylist()]


# Shared by both


def client_of(case: Case) -> pulsar.Client:
    return pulsar.Client(case.keeper.box.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))


def values_of(case: PipelineCase, topic: str) -> Iterator[bytes]:
    client = client_of(case)
    try:
        reader = client.create_reader(topic, pulsar.MessageId.earliest)
        while reader.has_message_available():
            yield reader.read_next(timeout_millis=10_000).data()
    finally:
        client.close()


def _alone(one: "collections.Counter[Any]", other: "collections.Counter[Any]") -> list[str]:
    return [f"in one of topic and Parquet alone: {each}" for each in [*(one - other), *(other - one)]]
