"""A write without Spark: publishing of its tasks, commit of its driver, and the calls made by Spark."""

import pickle
from typing import Any

import pyarrow as pa
import pytest

from pulsarbox.spark.options import WRITE, OptionError, parse
from pulsarbox.spark.sink import data_sink as adapters
from pulsarbox.spark.sink import staging, write_job
from pulsarbox.spark.sink.epoch_client import Sink, SinkError
from pulsarbox.spark.sink.row_encoder import shape_of
from pulsarbox.spark.sink.write_job import Attempt, Sinking, WriteAttempt
from pulsarbox.spark.topic_segments import Reach

TOPIC = "persistent://public/default/t"
SINK = Sink("public/default/q", "q", "run")
BATCH = pa.RecordBatch.from_pydict({"value": ["a", "b"]})


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("nothing is to be connected here")

    monkeypatch.setattr(write_job, "client_of", refuse)


class Told:
    """Box that records requests and returns scripted responses."""

    def __init__(self) -> None:
        self.checked: list[str] = []
        self.refused: SinkError | None = None
        self.committed: list[tuple[str, int, list[str]]] = []
        self.forgotten: list[str] = []
        self.aborted: list[str] = []
        self.published = True


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    found = Told()

    class Epochs:
        def __init__(self, admin: object, sink: Sink, seconds: float) -> None:
            self.sink = sink

        def check(self) -> None:
            found.checked.append(self.sink.name)
            if found.refused is not None:
                raise found.refused

        def commit(self, epoch: int, transactions: list[str]) -> bool:
            found.committed.append((self.sink.name, epoch, transactions))
            return found.published

        def forget(self) -> None:
            found.forgotten.append(self.sink.name)

        def close(self) -> None:
            pass

    monkeypatch.setattr(write_job, "SinkEpochs", Epochs)
    monkeypatch.setattr(write_job, "_knowing", set())
    monkeypatch.setattr(staging, "abort", lambda connected, ids: found.aborted.extend(ids))
    return found


def write(is_stream: bool = True, **options: Any) -> Sinking:
    given = {name.replace("_", "."): value for name, value in options.items()}
    found = parse({"topic": TOPIC, **given}, WRITE)
    shape = shape_of([("value", "string")], TOPIC, "auto")
    return Sinking(found, Reach("pulsar://h:1", "http://h:2"), shape, "{}", is_stream)


def part(*transactions: str, known: bool = False, sink: Sink = SINK) -> WriteAttempt:
    return WriteAttempt(sink, 7, 0, transactions, known)


class Sent:
    """Client that records the messages of a task."""

    known = False

    def __init__(self, fails: bool = False) -> None:
        self.messages: list[Any] = []
        self.ended: list[str] = []
        self.fails = fails

    def put(self, topic: str, messages: list[Any]) -> None:
        self.messages += messages

    def finish(self) -> list[str]:
        if self.fails:
            raise SinkError("full")
        return ["0:1", "0:2"]

    def abort(self) -> None:
        self.ended.append("aborted")

    def close(self) -> None:
        self.ended.append("closed")


def sent(
    found: Sinking, monkeypatch: pytest.MonkeyPatch, attempt: Attempt, fails: bool = False
) -> tuple[Sent, WriteAttempt]:
    sender = Sent(fails)
    monkeypatch.setattr(Sinking, "_sender", lambda *_: sender)
    try:
        return sender, found.write(attempt, iter([BATCH, BATCH]))
    except SinkError:
        return sender, part()


def test_a_task_tells_what_it_has_staged(monkeypatch: pytest.MonkeyPatch) -> None:
    sender, found = sent(write(), monkeypatch, Attempt(SINK, 7, 3))
    assert sender.messages == [b"a", b"b", b"a", b"b"]
    assert found == WriteAttempt(SINK, 7, 3, ("0:1", "0:2"), False, 4)
    assert sender.ended == ["closed"]


def test_a_task_that_fails_gives_up_what_it_has_staged(monkeypatch: pytest.MonkeyPatch) -> None:
    sender, _ = sent(write(), monkeypatch, Attempt(SINK, 7, 3), fails=True)
    assert sender.ended == ["aborted", "closed"]


def test_an_epoch_is_committed_with_all_that_its_tasks_staged(told: Told) -> None:
    assert write().commit([part("0:1"), part(), part("0:2", "0:3")])
    assert told.committed == [("public/default/q", 7, ["0:1", "0:2", "0:3"])]


def test_an_epoch_without_rows_asks_for_nothing(told: Told) -> None:
    assert write().commit([part(), part()])
    assert write().commit([])
    assert told.committed == []


def test_where_one_task_heard_that_the_epoch_was_published_nothing_of_it_is(told: Told) -> None:
    """A task reports the epoch as published, regardless of the sink's later state."""
    assert not write().commit([part("0:1"), part(known=True)])
    assert (told.committed, told.aborted) == ([], ["0:1"])


def test_a_stream_is_named_by_its_query_or_as_told() -> None:
    assert write().sink_of_query("q", "r") == Sink("public/default/q", "q", "r")
    assert write(sinkId="mine", sinkEpoch="reset").sink_of_query("q", "r") == Sink(
        "public/default/mine", "q", "r", True
    )
    assert write(sinkNamespace="a/b").sink_of_query("q", "r").name == "a/b/q"


def test_a_batch_is_forgotten_unless_it_has_a_name(told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    batch = write(is_stream=False)
    sink = batch.sink_of_batch()
    assert sink != write(is_stream=False).sink_of_batch()
    assert pickle.loads(pickle.dumps(batch)).sink_of_batch() == sink  # noqa: S301 - the test's own
    adapters.BatchWriter(batch).commit([adapters.Written(part("0:1", sink=sink)), None])
    assert told.forgotten == [sink.name]
    named = write(is_stream=False, jobId="nightly")
    told.published = False
    adapters.BatchWriter(named).commit([adapters.Written(part("0:2", sink=named.sink_of_batch()))])
    assert told.committed[-1] == ("public/default/job-nightly", 7, ["0:2"])
    assert len(told.forgotten) == 1
    assert "job nightly was already written: nothing is published" in capsys.readouterr().err
    adapters.BatchWriter(named).commit([])
    assert told.committed[-1] == ("public/default/job-nightly", 0, [])
    third = adapters.BatchWriter(write(is_stream=False, jobId="nightly", jobPart="3"))
    third.commit([])
    assert told.committed[-1] == ("public/default/job-nightly", 3, [])
    assert "part 3 of job nightly was already written" in capsys.readouterr().err


def test_what_is_aborted_is_what_was_staged(told: Told) -> None:
    adapters.StreamWriter(write()).abort([adapters.Written(part("0:1")), None], 7)
    adapters.BatchWriter(write()).abort([None])
    assert told.aborted == ["0:1"]


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_what_an_epoch_is_is_durable_before_it_is_published(
    told: Told, delivery: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut, Spark would rebuild this epoch under the same number, and the broker would discard it."""
    settled: list[tuple[str, int, int]] = []
    monkeypatch.setattr(
        adapters, "make_durable", lambda where, epoch: settled.append((where, epoch, len(told.committed)))
    )
    writer = adapters.StreamWriter(write(delivery=delivery), "/c")
    monkeypatch.setattr(writer, "_named", lambda _: (SINK, 7))
    monkeypatch.setattr(adapters, "_context", Task)
    monkeypatch.setattr(Sinking, "_sender", lambda *_: Sent())
    writer.write(iter([BATCH]))
    assert settled == []
    writer.commit([adapters.Written(part("0:1"))], 7)
    assert settled == ([("/c", 7, 0)] if delivery == "exactly-once" else [])
    assert adapters.checkpoint_of({"checkpointLocation": "/c", "topic": "t"}) == "/c"


class Task:
    """Substitute for a Spark task context."""

    def partitionId(self) -> int:  # noqa: N802 - Spark's name
        return 0


def test_what_can_be_found_wrong_is_found_on_the_driver(told: Told) -> None:
    with pytest.raises(OptionError, match="option router"):
        write(router="nowhere").check()
    with pytest.raises(OptionError, match=r"option router\.options"):
        write(router_options="partition").check()
    write(router="single", router_options="partition=3", delivery="at-least-once").check()
    assert not told.checked
    told.refused = SinkError("needs the epoch commit of a box")
    for _ in range(2):
        with pytest.raises(SinkError):
            write().check()
    told.refused = None
    for _ in range(3):
        write().check()
    assert len(told.checked) == 3, "whether the broker knows of epochs is asked before any task runs, until it said so"
    write(sinkNamespace="a/b").check()
    assert len(told.checked) == 4


def test_rows_for_topics_that_keep_nothing_are_sent_at_once_or_not_at_all() -> None:
    topic = "non-persistent://public/default/t"
    with pytest.raises(
        SinkError, match=r"t: delivery=exactly-once requires a persistent topic: use delivery=at-least-once"
    ):
        write()._producing(topic)
    assert write(delivery="at-least-once")._producing(topic).name is None


def test_what_spark_shows_in_a_task_names_the_epoch() -> None:
    class Context:
        def __init__(self, **said: str) -> None:
            self.said = said

        def getLocalProperty(self, name: str) -> str | None:  # noqa: N802 - Spark's name
            return self.said.get(name)

    writer = adapters.StreamWriter(write())
    context: Any = Context(**{adapters.QUERY: "q", adapters.EPOCH: "12", adapters.RUN: "r"})
    assert writer._named(context) == (Sink("public/default/q", "q", "r"), 12)
    silent: Any = Context()
    with pytest.raises(SinkError, match="does not report which query"):
        writer._named(silent)
