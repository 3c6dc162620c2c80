"""``pulsarbox pipeline run`` with real Spark in separate processes: restart, dead letters, state, failures.

Each test checks many properties, because a JVM starts slowly.
"""

import collections
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulsar
import pytest

from pulsarbox.cli.common.exits import EXIT_CONFLICT, EXIT_FAILED, EXIT_OK, EXIT_PARTIAL
from pulsarbox.spark.pipelines.session import FAST
from pulsarbox.spark.pipelines.state import known
from tests.e2e.conftest import Running

SECONDS = 240.0
FILE = """
from helper import doubled
from pulsarbox.pipelines import frame, function


@function(inputs="{raw}", output="{clean}", dead_letter="{dlq}", value="json", options={{"maxEntriesPerTrigger": "40"}})
def clean(value, ctx):
    if value["n"] % 10 == 7:
        raise ValueError(f"seven: {{value['n']}}")
    return {{"n": doubled(value["n"])}}


@function(inputs="{clean}", output="{sums}", value="json", state=True)
def sums(value, ctx):
    total = ctx.state.get(default=0) + value["n"]
    ctx.state.put(total)
    return str(total)


@frame(inputs="{clean}", output="{counts}", mode="update")
def counts(df):
    return df.groupBy("__key").count().selectExpr("__key", "CAST(count AS STRING) AS value")


@function(inputs="{raw}", output="{clean}-never", name="broken")
def broken(value, ctx):
    return value.no_such_thing
"""


class Runner:
    """``pulsarbox pipeline run`` in a process group of its own."""

    def __init__(self, box: Running, file: Path, *more: str) -> None:
        self.log = file.with_suffix(f".{time.monotonic_ns()}.log")
        words = ["pipeline", "run", str(file), "--master", "local[2]", "--state", str(file.parent / "state")]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "pulsarbox", *words, "--url", box.url, "--admin-url", box.web_url, *more],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=os.environ | {"SPARK_SUBMIT_OPTS": " ".join(FAST)},
            )

    def __enter__(self) -> "Runner":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def until(self, what: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not what():
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.1)

    def end(self, number: int | None = None) -> int:
        if number is not None:
            self.process.send_signal(number)
        return self.process.wait(SECONDS)

    def kill(self) -> None:
        """Kill the runner and all its child processes, which share its process group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Topics:
    """Topic names of one test, and the topics' contents."""

    def __init__(self, client: pulsar.Client, fresh: Callable[[str], str]) -> None:
        self.client = client
        self.names = {word: fresh(word) for word in ("raw", "clean", "dlq", "sums", "counts")}
        for word in ("sums", "counts"):  # without a subscription, messages and later the topic are deleted
            client.subscribe(self.names[word], "kept").close()

    def read(self, word: str) -> list[pulsar.Message]:
        """Return all messages; none if the topic does not exist."""
        found: list[pulsar.Message] = []
        try:
            reader = self.client.create_reader(self.names[word], pulsar.MessageId.earliest)
        except pulsar.TopicNotFound:
            return found
        while reader.has_message_available():
            found.append(reader.read_next(10_000))
        reader.close()
        return found

    def values(self, word: str) -> list[str]:
        return [each.data().decode() for each in self.read(word)]


@pytest.fixture
def topics(client: pulsar.Client, fresh: Callable[[str], str]) -> Topics:
    return Topics(client, fresh)


def told(box: Running, name: str) -> dict[str, dict[str, Any]]:
    """Return the box's status of a pipeline, by query."""
    with urllib.request.urlopen(f"{box.web_url}/pulsarbox/v1/top/pipelines", timeout=60) as answer:
        return {row["query"]: row for row in json.load(answer)["rows"] if row["pipeline"] == name}


@pytest.mark.campaign
@pytest.mark.timeout(900)
def test_a_pipeline_goes_on_where_it_was_killed(box: Running, topics: Topics, tmp_path: Path) -> None:
    name = f"shop{os.getpid()}"
    file = tmp_path / f"{name}.py"
    file.write_text(FILE.format(**topics.names))
    (tmp_path / "helper.py").write_text("def doubled(number):\n    return 2 * number\n")
    producer = topics.client.create_producer(topics.names["raw"], batching_enabled=False)

    def send(numbers: range) -> None:
        for number in numbers:
            producer.send(b'{"n": %d}' % number, partition_key="ab"[number % 2])

    send(range(120))
    with Runner(box, file, "--restarts", "2") as first:
        # Some micro-batches of 40 messages are complete, and no query has finished.
        first.until(lambda: bool(topics.values("clean")))
        second = subprocess.run(first.process.args, capture_output=True, check=False, text=True, timeout=250)
        assert second.returncode == EXIT_CONFLICT
        assert "is already running" in second.stderr
        first.kill()
    send(range(120, 200))
    producer.send(b"nonsense")

    sent = [number for number in range(200) if number % 10 != 7]
    last = {"a": sum(2 * n for n in sent if n % 2 == 0), "b": sum(2 * n for n in sent if n % 2)}
    with Runner(box, file, "--restarts", "2") as again:
        again.until(lambda: {str(each) for each in last.values()} <= set(topics.values("sums")))
        again.until(lambda: told(box, name).get("clean", {}).get("lag") == 0)
        again.until(lambda: told(box, name)["broken"]["state"] == "failed")
        again.until(lambda: collections.Counter(topics.values("counts"))["100"] == 1)
        rows = told(box, name)
        assert (rows["sums"]["state"], rows["clean"]["output"]) == ("running", topics.names["clean"])
        assert again.end(signal.SIGTERM) == EXIT_PARTIAL, again.said()
    assert "broken has failed" in again.said()
    assert f"{name}.py:27: AttributeError: 'bytes' object has no attribute 'no_such_thing'" in again.said()
    assert told(box, name)["clean"]["state"] == "stopped"

    assert sorted(json.loads(each)["n"] for each in topics.values("clean")) == [2 * number for number in sent]
    letters = {each.data().decode(): each.properties() for each in topics.read("dlq")}
    assert len(topics.read("dlq")) == len(letters) == 21
    assert letters["nonsense"]["FAILURE_REASON"].startswith(f"{name}.py:")
    assert letters['{"n": 17}']["FAILURE_REASON"] == f"{name}.py:9: ValueError: seven: 17"
    # Each sum was written once, from the state that survived the kill.
    steps: dict[str, list[int]] = collections.defaultdict(list)
    for each in topics.read("sums"):
        steps[each.partition_key()].append(int(each.data()))
    assert {key: (len(found), found == sorted(found), found[-1]) for key, found in steps.items()} == {
        "a": (100, True, last["a"]),
        "b": (80, True, last["b"]),
    }


@pytest.mark.campaign
@pytest.mark.timeout(600)
def test_what_is_scaffolded_runs(
    box: Running, client: pulsar.Client, fresh: Callable[[str], str], tmp_path: Path
) -> None:
    name = fresh("shop").rpartition("/")[2].replace("-", "_")
    file = tmp_path / f"{name}.py"
    made = subprocess.run(
        [sys.executable, "-m", "pulsarbox", "pipeline", "new", str(file)], capture_output=True, check=False, timeout=250
    )
    assert made.returncode == EXIT_OK, made.stderr
    producer = client.create_producer(f"{name}-raw")
    for price in (3, -1, 4):
        producer.send(b'{"price": %d}' % price, partition_key="ann")
    with Runner(box, file, "--once") as runner:
        assert runner.end() == EXIT_OK, runner.said()
    reader = client.create_reader(f"{name}-orders", pulsar.MessageId.earliest)
    assert [json.loads(reader.read_next(10_000).data())["price"] for _ in range(2)] == [3, 4]
    assert not reader.has_message_available()
    letters = client.create_reader(f"{name}-DLQ", pulsar.MessageId.earliest)
    assert "negative price: -1" in letters.read_next(10_000).properties()["FAILURE_REASON"]


ENDED = """
from pulsarbox.pipelines import frame, function


def silent(name, ctx):
    total = ctx.state.get()
    ctx.state.delete()
    return str(total)


@function(inputs="{raw}", output="{sums}", value="json", state=True, on_timer=silent, trigger="300ms")
def sums(value, ctx):
    ctx.state.put(ctx.state.get(default=0) + value)
    ctx.state.timer(after="1s")


@frame(inputs="{raw}", output="json:{folder}/lines", trigger="300ms")
def lines(df):
    return df.selectExpr("CAST(value AS STRING) AS value")
"""


def lines_in(folder: Path) -> "collections.Counter[int]":
    """Return the lines of the files that Spark counts: a killed runner leaves others."""
    names = {
        json.loads(line)["path"]
        for log in folder.glob("_spark_metadata/*")
        if not log.name.startswith(".")
        for line in log.read_text().splitlines()[1:]
    }
    rows = (row for name in names for row in Path(name.removeprefix("file://")).read_text().splitlines())
    return collections.Counter(int(json.loads(row)["value"]) for row in rows)


@pytest.mark.campaign
@pytest.mark.timeout(900)
def test_a_pipeline_goes_on_behind_ctrl_c_and_behind_the_death_of_its_jvm(
    box: Running, topics: Topics, tmp_path: Path
) -> None:
    name = f"ended{os.getpid()}"
    file, lines, state = tmp_path / f"{name}.py", tmp_path / "lines", tmp_path / "state"
    file.write_text(ENDED.format(**topics.names, folder=tmp_path))
    producer = topics.client.create_producer(topics.names["raw"])

    def send(numbers: range) -> None:
        for number in numbers:
            producer.send(b"%d" % number, partition_key="abc"[number % 3])

    def summed() -> int:
        return sum(map(int, topics.values("sums")))

    send(range(30))
    with Runner(box, file) as first:
        first.until(lambda: summed() >= sum(range(30)) and len(lines_in(lines)) == 30)
        send(range(30, 40))  # some are in progress at that time
        os.killpg(first.process.pid, signal.SIGINT)  # to the whole process group, as a terminal does
        assert first.end() == EXIT_OK, first.said()
    assert "stopping 2 queries" in first.said()
    assert "Traceback" not in first.said()
    assert {row["state"] for row in told(box, name).values()} == {"stopped"}
    assert {each.pid for each in known(state, name)} == {None}

    send(range(40, 50))
    with Runner(box, file) as second:
        second.until(lambda: set(range(50)) <= lines_in(lines).keys())
        send(range(50, 60))
        (jvm,) = jvms_of(second.process.pid)
        os.kill(jvm, signal.SIGKILL)
        assert second.end() == EXIT_FAILED, second.said()
    assert "Spark's JVM ended unexpectedly: see " in second.said()
    assert "The next run continues where this one stopped" in second.said()
    assert "Traceback" not in second.said()
    assert {(each.pid, each.about["state"]) for each in known(state, name)} == {(None, "failed")}

    send(range(60, 65))
    with Runner(box, file) as third:
        third.until(lambda: summed() >= sum(range(65)) and len(lines_in(lines)) == 65)
        assert third.end(signal.SIGTERM) == EXIT_OK, third.said()
    assert summed() == sum(range(65)), "each message is in one sum"
    assert lines_in(lines) == collections.Counter(range(65))


def jvms_of(runner: int) -> list[int]:
    """Return the Java processes that a runner has started."""
    children = Path(f"/proc/{runner}/task/{runner}/children").read_text().split()
    return [int(each) for each in children if Path(f"/proc/{each}/comm").read_text().strip() == "java"]
