"""Runner with real Spark and a real box in the shared session: files across a restart, timers."""

import base64
import collections
import csv
import io
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulsar
import pytest
from click.testing import CliRunner, Result

from pulsarbox.cli.common.exits import EXIT_FAILED, EXIT_OK
from pulsarbox.cli.main import main
from pulsarbox.spark.pipelines import runner
from pulsarbox.spark.pipelines.state import CHECKPOINT
from tests.e2e.conftest import Running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    Command = Callable[..., Result]

SECONDS = 120.0


@pytest.fixture
def command(spark: "SparkSession", box: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Command":
    """Run a command of the group in this process, with that session, on a state directory of the test's own."""
    monkeypatch.setattr(runner, "session", lambda *_args, **_more: spark)
    monkeypatch.setattr(runner, "stop_spark", lambda _spark: None)

    def run(*words: str, ends_with: int = EXIT_OK) -> Result:
        broker = () if words[0] == "reset" else ("--url", box.url, "--admin-url", box.web_url)
        asked = ["pipeline", *words, "--state", str(tmp_path / "state"), *broker]
        result = CliRunner().invoke(main, asked)
        assert result.exit_code == ends_with, (result.output, result.exception)
        return result

    return run


FILES = """
from pulsarbox.pipelines import frame

STEPS = {{"options": {{"maxEntriesPerTrigger": "4"}}, "inputs": "{topic}"}}


@frame(output="parquet:file://{folder}/parquet", **STEPS)
def parquet(df):
    return df.selectExpr("CAST(value AS STRING) AS value")


@frame(output="json:{folder}/json", **STEPS)
def json(df):
    return df.selectExpr("CAST(value AS STRING) AS value")


@frame(output="csv:{folder}/csv", **STEPS)
def csv(df):
    return df.selectExpr("CAST(value AS STRING) AS value")
"""


@pytest.mark.campaign
def test_files_have_every_row_once_over_a_restart(
    command: "Command", spark: "SparkSession", client: Any, topic: str, tmp_path: Path
) -> None:
    """Between the runs, each query is in the state of a kill in its last micro-batch. One was killed before its files
    counted, the others after, before Spark committed the micro-batch.
    """
    name = topic.rpartition("/")[2].replace("-", "_")
    file, kinds = tmp_path / f"{name}.py", ("parquet", "json", "csv")
    file.write_text(FILES.format(topic=topic, folder=tmp_path))
    producer = client.create_producer(topic, batching_enabled=False)
    for number in range(10):
        producer.send(b"%d" % number)
    command("run", str(file), "--once")
    for kind in kinds:
        commits = tmp_path / "state" / name / kind / "checkpoint" / "commits"
        last = max((each for each in commits.iterdir() if each.name.isdigit()), key=lambda each: int(each.name))
        assert int(last.name) >= 2, "ten messages are several micro-batches of about four"
        last.unlink()
        if kind == "json":
            (tmp_path / kind / "_spark_metadata" / last.name).unlink()
    for number in range(10, 15):
        producer.send(b"%d" % number)
    command("run", str(file), "--once")
    wanted = collections.Counter(range(15))
    for kind in kinds:
        rows = spark.read.format(kind).schema("value string").load(str(tmp_path / kind)).collect()
        assert collections.Counter(int(row.value) for row in rows) == wanted, kind

    # A new checkpoint does not continue in the files of another one, wherever these are.
    told = command("reset", name, "parquet", "--yes")
    assert f"delete file://{tmp_path}/parquet before the next run" in told.stderr
    told = command("run", str(file), "--once", ends_with=8)
    assert f"parquet has failed: parquet ({name}.py:7): file://{tmp_path}/parquet has output of a" in told.stderr
    command("reset", name, "json", "--yes")
    told = command("run", str(file), "--once", ends_with=EXIT_FAILED)
    assert f"json ({name}.py:12): {tmp_path}/json has output of a checkpoint that no longer exists" in told.stderr


NESTED = """
from pulsarbox.pipelines import frame


@frame(inputs="{topic}", output="csv:{folder}/nested", name="nested")
def nested(df):
    return df.selectExpr("CAST(value AS STRING) AS text", "value", "__messageProperties AS more")
"""


def test_a_step_writes_csv_without_loss(command: "Command", client: Any, topic: str, tmp_path: Path) -> None:
    file = tmp_path / f"{topic.rpartition('/')[2].replace('-', '_')}.py"
    file.write_text(NESTED.format(topic=topic, folder=tmp_path))
    producer = client.create_producer(topic)
    texts = [" a ", "", '"', "a\nb\r\nc", "\t,", "x" * 100]
    for each in texts:
        producer.send(each.encode(), {"k": each})
    command("run", str(file), "--once")
    files = [each.read_bytes().decode() for each in (tmp_path / "nested").glob("*.csv")]
    rows = [row for text in files for row in csv.DictReader(io.StringIO(text, newline=""))]
    found = [(row["text"], base64.b64decode(row["value"]).decode(), json.loads(row["more"])) for row in rows]
    assert sorted(found, key=repr) == sorted([(each, each, {"k": each}) for each in texts], key=repr)


TIMERS = """
from pulsarbox.pipelines import function


def silent(name, ctx):
    total = ctx.state.get()
    ctx.state.delete()
    return {{"key": ctx.key, "total": total}}


@function(inputs="{topic}", output="{topic}-sums", value="json", state=True, on_timer=silent, trigger="200ms")
def sums(value, ctx):
    ctx.state.put(ctx.state.get(default=0) + value)
    ctx.state.timer(after="3s")
"""


@pytest.fixture
def sigterm() -> Iterator[None]:
    """Ignore SIGTERM while no runner handles the signal."""
    before = signal.signal(signal.SIGTERM, lambda number, frame: None)
    yield
    signal.signal(signal.SIGTERM, before)


def end_between_batches(checkpoint: Path) -> None:
    """Restore the state of a query that ends with no micro-batch in progress."""
    assert any(checkpoint.glob("commits/*"))
    for each in checkpoint.glob("offsets/*"):
        if not (checkpoint / "commits" / each.name).exists():
            each.unlink()


@pytest.mark.campaign
@pytest.mark.usefixtures("with_state", "sigterm")
def test_timers_that_were_set_before_a_restart_come_due_though_nothing_comes(
    command: "Command", client: Any, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / f"{topic.rpartition('/')[2].replace('-', '_')}.py"
    file.write_text(TIMERS.format(topic=topic))
    consumer = client.subscribe(f"{topic}-sums", "kept", initial_position=pulsar.InitialPosition.Earliest)
    producer = client.create_producer(topic)
    for key, number in (("ann", 3), ("bob", 5), ("ann", 4)):
        producer.send(b"%d" % number, partition_key=key)
    command("run", str(file), "--once")
    end_between_batches(tmp_path / "state" / file.stem / "sums" / CHECKPOINT)
    found: list[dict[str, Any]] = []
    over = threading.Event()

    def take() -> None:
        deadline = time.monotonic() + SECONDS
        while sum(each["total"] for each in found) < 12 and time.monotonic() < deadline:
            try:
                found.append(json.loads(consumer.receive(timeout_millis=500).data()))
            except pulsar.Timeout:
                continue
        while not over.wait(0.5):
            os.kill(os.getpid(), signal.SIGTERM)  # like an operator who stops a runner

    taking = threading.Thread(target=take)
    taking.start()
    try:
        command("run", str(file))
    finally:
        over.set()
        taking.join()
    assert sorted((each["key"], each["total"]) for each in found) == [("ann", 7), ("bob", 5)]
