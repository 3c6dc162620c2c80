"""A runner when queries fail, end or stop, with a simulated Spark. tests/e2e/spark covers real Spark."""

import contextlib
import json
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pulsarbox.client.admin import AdminRefused
from pulsarbox.client.errors import NotConnected
from pulsarbox.pipelines import Frame, Function, Pipeline, PipelineError
from pulsarbox.spark.pipelines import requirements, runner, state, step_query
from pulsarbox.spark.pipelines.delta_output import EXTENSION
from pulsarbox.spark.pipelines.query_progress import FAILED, STOPPED, Watched
from pulsarbox.spark.pipelines.run_options import RunOptions
from pulsarbox.spark.pipelines.state import QueryState, known


@dataclass
class Played:
    """Simulated Spark query that reports the given micro-batches, then ends with the given error."""

    error: str | None = None
    batches: list[dict[str, Any]] = field(default_factory=list)
    stopped: bool = False
    on_start: Callable[[], None] = lambda: None
    endless: bool = False

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        return self.endless and not self.stopped

    @property
    def status(self) -> dict[str, str]:
        return {"message": "Waiting for data to arrive"}

    def exception(self) -> Exception | None:
        return None if self.error is None else RuntimeError(self.error)

    def stop(self) -> None:
        self.stopped = True

    @property
    def _jsq(self) -> "Played":
        return self

    def recentProgress(self) -> "list[Any]":  # noqa: N802 - Spark's name
        return [_Json(each) for each in self.batches]


class _Json:
    def __init__(self, progress: dict[str, Any]) -> None:
        self._progress = progress

    def json(self) -> str:
        return json.dumps(self._progress)


def batch(number: int, rows: int = 1) -> dict[str, Any]:
    durations = {"addBatch": 1, "triggerExecution": 2}
    return {"runId": "r", "batchId": number, "timestamp": str(number), "numInputRows": rows, "durationMs": durations}


class Stage:
    """Runner of pipelines with simulated queries; each query has a list of consecutive lives."""

    def __init__(self, directory: Path) -> None:
        self.lives: dict[str, list[Played | Exception]] = {}
        self.started: list[str] = []
        self.said: list[str] = []
        self.asked: list[tuple[str, str]] = []
        self.there: list[str] = []
        self.refuses = "refused"
        """Suffix of paths that are not accessible."""
        self._directory = directory

    def start(self, spark: object, step: Any, checkpoint: str, given: Any, *, once: bool) -> Played:
        self.started.append(step.query)
        life = self.lives[step.query].pop(0)
        if isinstance(life, Exception):
            raise life
        life.on_start()
        return life

    # The Admin API

    def topics(self, namespace: str, domain: str) -> list[str]:
        return self.there

    def partitioned_topics(self, namespace: str, domain: str) -> list[str]:
        return []

    def partitions(self, topic: object) -> int:
        return 0

    def ask(self, method: str, path: str, body: Any = None) -> None:
        self.asked.append((method, path.removeprefix("/persistent/public/default/")))
        if path.endswith(self.refuses):
            raise AdminRefused(403, "no", method)

    def run(self, *steps: Any, restarts: int = 2, once: bool = True) -> dict[str, Watched]:
        options = RunOptions(state=self._directory, once=once, restarts=restarts, report=False)
        ended = runner.run(Pipeline("p", steps), options, self.said.append)
        return {each.step.query: each for each in ended}


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    made = Stage(tmp_path)
    spark = SimpleNamespace(sparkContext=SimpleNamespace(uiWebUrl=None))
    monkeypatch.setattr(runner, "session", lambda *args, **kwargs: spark)
    monkeypatch.setattr(runner, "stop_spark", lambda spark: None)
    monkeypatch.setattr(runner, "check_spark", lambda master: None)
    monkeypatch.setattr(runner, "admin_for", lambda box: contextlib.nullcontext(made))
    monkeypatch.setattr(step_query, "started", made.start)
    monkeypatch.setattr(runner, "jvm_has_ended", lambda error: False)
    monkeypatch.setattr(runner, "_FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(runner, "_LOOK_SECONDS", 0.001)
    return made


def same(value: Any, ctx: Any) -> Any:
    """Step on messages."""
    return value


def step(name: str, inputs: str | list[str] = "raw", output: str = "out", **more: Any) -> Function:
    return Function(process=same, inputs=inputs, output=output, name=name, **more)


def test_a_query_that_fails_is_started_again_and_the_others_go_on(stage: Stage, tmp_path: Path) -> None:
    stage.lives = {"bad": [Played("x: no"), Played("x: no"), Played("x: no")], "good": [Played(batches=[batch(0, 7)])]}
    ended = stage.run(step("bad"), step("good"))
    assert {name: each.state for name, each in ended.items()} == {"bad": FAILED, "good": STOPPED}
    assert (ended["bad"].starts, ended["bad"].error, ended["good"].rows) == (3, "x: no", 7)
    assert [each for each in stage.said if "has failed" in each] == [
        "bad has failed, restarting in 0.01 s (1 of 2): x: no",
        "bad has failed, restarting in 0.02 s (2 of 2): x: no",
        "bad has failed: x: no",
    ]
    kept = {each.query: each for each in known(tmp_path)}
    assert (kept["bad"].about["state"], kept["bad"].about["lastError"], kept["bad"].pid) == ("failed", "x: no", None)


def test_a_micro_batch_between_makes_the_next_failure_the_first(stage: Stage) -> None:
    failing = [Played("x", [batch(number)]) for number in range(3)]
    stage.lives = {"q": [Played("x"), *failing, Played()]}
    ended = stage.run(step("q"), restarts=1)
    assert (ended["q"].state, ended["q"].starts, ended["q"].rows) == (STOPPED, 5, 3)


def test_what_failed_and_was_just_started_again_has_failed_when_all_is_stopped(stage: Stage) -> None:
    again = Played(endless=True, on_start=lambda: signal.raise_signal(signal.SIGTERM))
    stage.lives = {"bad": [Played("x: no"), again], "good": [Played(endless=True)]}
    ended = stage.run(step("bad"), step("good"), once=False)
    assert {name: each.state for name, each in ended.items()} == {"bad": FAILED, "good": STOPPED}
    assert again.stopped


def wrong() -> None:
    raise ValueError("no such column")


def test_what_stands_wrong_in_the_file_is_not_tried_again_and_what_is_not_ready_is(stage: Stage) -> None:
    users, not_ready = PipelineError("gives no DataFrame"), OSError("not yet")
    stage.lives = {"users": [users], "line": [Played(on_start=wrong)], "not_ready": [not_ready, not_ready, Played()]}
    elsewhere = Function(process=max, inputs="raw", output="out", name="not_ready")  # not defined in this file
    ended = stage.run(step("users"), step("line"), elsewhere)
    assert {name: (each.state, each.starts) for name, each in ended.items()} == {
        "users": (FAILED, 1),
        "line": (FAILED, 1),
        "not_ready": (STOPPED, 3),
    }
    line = wrong.__code__.co_firstlineno + 1
    assert ended["line"].error == f"test_runner.py:{line}: ValueError: no such column"


def test_a_frame_that_ends_the_process_fails_alone(stage: Stage) -> None:
    stage.lives = {"q": [Played(on_start=sys.exit)], "r": [Played()]}
    ended = stage.run(step("q"), step("r"))
    assert (ended["q"].state, ended["r"].state) == (FAILED, STOPPED)
    assert "SystemExit" in str(ended["q"].error)


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGHUP])
def test_it_is_stopped_by_who_ends_it_and_by_the_end_of_its_terminal(stage: Stage, by: signal.Signals) -> None:
    before = signal.getsignal(by)
    stage.lives = {"q": [Played(endless=True, on_start=lambda: signal.raise_signal(by))]}
    assert stage.run(step("q"), once=False)["q"].state == STOPPED
    assert signal.getsignal(by) == before


def test_what_is_to_stay_when_its_terminal_ends_stays(stage: Stage) -> None:
    def closed() -> None:
        signal.raise_signal(signal.SIGHUP)
        stage.said.append("it goes on")
        signal.raise_signal(signal.SIGTERM)

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        stage.lives = {"q": [Played(endless=True, on_start=closed)]}
        stage.run(step("q"), once=False)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert "it goes on" in stage.said


def test_a_state_that_cannot_be_written_while_it_runs_is_said_and_all_is_stopped(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill() -> None:
        monkeypatch.setattr(state, "put", full)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    stage.lives = {"q": [Played("no", on_start=fill)], "r": [Played()]}
    ended = stage.run(step("q"), step("r"), restarts=0)
    assert (ended["q"].state, ended["r"].state) == (FAILED, STOPPED)
    assert any("q cannot be used: No space left on device" in each for each in stage.said)


def test_a_query_that_its_checkpoint_does_not_fit_is_not_tried_again(stage: Stage) -> None:
    stage.lives = {"q": [Played("There are [1] sources in the checkpoint offsets and now there are [2]")]}
    ended = stage.run(step("q"))
    assert (ended["q"].state, ended["q"].starts) == (FAILED, 1)
    assert "start anew, with another name=" in str(ended["q"].error)
    assert "`pulsarbox pipeline reset p q`" in str(ended["q"].error)


def test_a_jvm_that_ends_by_itself_fails_what_runs(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "jvm_has_ended", lambda error: True)
    stage.lives = {"q": [OSError("connection refused")]}
    with pytest.raises(PipelineError, match=r"Spark's JVM ended unexpectedly: see .*spark\.log"):
        stage.run(step("q"))
    (kept,) = known(tmp_path)
    assert (kept.about["state"], kept.pid) == ("failed", None)


def test_a_jvm_that_was_told_to_end_with_its_runner_is_no_failure(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A supervisor's SIGTERM reaches the whole process group."""

    def end() -> None:
        signal.raise_signal(signal.SIGTERM)
        raise OSError("connection refused")

    monkeypatch.setattr(runner, "jvm_has_ended", lambda error: True)
    stage.lives = {"q": [Played(on_start=end)], "r": [Played(endless=True)]}
    ended = stage.run(step("r"), step("q"), once=False)
    assert {name: each.state for name, each in ended.items()} == {"q": STOPPED, "r": STOPPED}
    assert {each.query: each.about["state"] for each in known(tmp_path)} == {"q": "stopped", "r": "stopped"}


def test_once_a_step_waits_for_those_that_it_reads_from(stage: Stage) -> None:
    stage.lives = {name: [Played()] for name in ("third", "second", "first")}
    stage.run(step("third", "b", "c"), step("second", "a", "b"), step("first", "raw", "a"))
    assert stage.started == ["first", "second", "third"]


def test_once_a_step_waits_for_the_dead_letters_that_it_reads(stage: Stage) -> None:
    stage.lives = {name: [Played()] for name in ("letters", "first")}
    stage.run(step("letters", "a-DLQ", "b"), step("first", "raw", "a", dead_letter="a-DLQ"))
    assert stage.started == ["first", "letters"]


def test_once_a_query_with_timers_ends_when_there_is_nothing_more(stage: Stage) -> None:
    with_timers = Played(batches=[batch(0), batch(1, 0)], endless=True)
    stage.lives = {"q": [with_timers]}
    ended = stage.run(step("q", state=True, on_timer=same))
    assert (ended["q"].state, with_timers.stopped) == (STOPPED, True)


def test_topics_that_are_read_are_made_and_subscribed(stage: Stage) -> None:
    stage.there = ["persistent://public/default/there"]
    stage.lives = {name: [Played()] for name in ("one", "two", "three")}
    stage.run(
        step("one", "there", "a", dead_letter="letters"),
        step("two", "missing", "a", options={"subscription": "mine"}),
        step("three", "regex:public/default/x.*", "refused"),
    )
    assert stage.asked == [
        ("PUT", "missing"),
        ("PUT", "letters"),
        ("PUT", "letters/subscription/pipeline-p-one"),
        ("PUT", "there/subscription/pipeline-p-one"),
    ]
    assert "persistent://public/default/missing did not exist: created" in stage.said


def test_dead_letters_are_held_by_who_may_not_make_topics_and_what_cannot_be_held_is_said(stage: Stage) -> None:
    stage.there = ["persistent://public/default/raw"]
    stage.lives = {"one": [Played()], "two": [Played()]}
    stage.run(step("one", dead_letter="refused"))
    assert ("PUT", "refused/subscription/pipeline-p-one") in stage.asked
    assert stage.said[-1].startswith("one: stopped")
    assert not [each for each in stage.said if "dead letters are deleted" in each]
    stage.refuses = "letters/subscription/pipeline-p-two"
    stage.run(step("two", dead_letter="letters"))
    (told,) = [each for each in stage.said if "dead letters are deleted" in each]
    assert told.startswith("persistent://public/default/letters cannot have a subscription (")


def test_a_query_that_is_not_declared_any_more_is_told_of(stage: Stage) -> None:
    stage.lives = {"old": [Played()], "new": [Played()]}
    stage.run(step("old"))
    assert not [each for each in stage.said if "no longer declared" in each]
    stage.run(step("new"))
    (told,) = [each for each in stage.said if "no longer declared" in each]
    assert told.startswith("p/old ran before and is no longer declared.")
    assert "name='old'" in told
    assert "subscription pipeline-p-old" in told
    assert "`pulsarbox pipeline reset p old`" in told


def test_without_spark_or_java_nothing_is_made(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "check_spark", requirements.check)
    monkeypatch.setattr(requirements, "find_spec", lambda name: None if name == "pyspark" else object())
    with pytest.raises(PipelineError, match=r"module pyspark not found\): pip install 'pulsarbox\[spark\]'"):
        stage.run(step("q"))
    monkeypatch.setattr(requirements, "find_spec", lambda name: object())
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(PipelineError, match="Java is not installed: Spark requires Java 17"):
        stage.run(step("q"))
    assert (stage.asked, list(tmp_path.iterdir())) == ([], [])


def test_a_broker_that_is_not_there_is_what_went_wrong_last(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise NotConnected("Connection refused")

    monkeypatch.setattr(stage, "topics", away)
    with pytest.raises(NotConnected):
        stage.run(step("q"))
    (kept,) = known(tmp_path)
    assert (kept.about["state"], kept.about["lastError"], kept.pid) == ("failed", "Connection refused", None)


def test_a_pipeline_is_run_by_one_at_a_time(stage: Stage, tmp_path: Path) -> None:
    held = QueryState(tmp_path, "p", "q")
    with pytest.raises(PipelineError, match="p/q is already running"):
        stage.run(step("a"), step("q"))
    held.release()
    stage.lives = {"q": [Played()]}
    assert stage.run(step("q"))["q"].state == STOPPED


def test_the_settings_of_delta_are_for_pipelines_that_write_its_tables() -> None:
    options = RunOptions(conf={"a": "b"})
    made = Frame(build=lambda df: df, inputs="raw", output="delta:/lake/orders", name="table")
    assert runner.settings_of(Pipeline("p", [step("q")]), options) == {"a": "b"}
    found = runner.settings_of(Pipeline("p", [step("q"), made]), options)
    assert found == {"a": "b", "spark.sql.extensions": EXTENSION}


def test_files_of_a_checkpoint_that_is_gone_are_not_written_on(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "out" / "_spark_metadata").mkdir(parents=True)
    made = Frame(build=lambda df: df, inputs="raw", output=f"parquet:{tmp_path / 'out'}", name="files")
    with pytest.raises(PipelineError, match="output of a checkpoint that no longer exists"):
        stage.run(made)


def test_a_checkpoint_of_another_pipeline_is_not_gone_on_with(stage: Stage, tmp_path: Path) -> None:
    stage.lives = {"q": [Played(), Played()]}
    stage.run(step("q", "raw"))
    (tmp_path / "p" / "q" / "checkpoint").mkdir()
    (tmp_path / "p" / "q" / "checkpoint" / "metadata").touch()
    with pytest.raises(PipelineError, match=r"query that read persistent://public/default/raw, .* reset p q`"):
        stage.run(step("q", "others"))
    (kept,) = known(tmp_path)
    assert (kept.pid, kept.about["state"], kept.about["lastError"]) == (None, "stopped", None)
    stage.run(step("q", ["raw", "others"]))  # an additional topic does not change the identity of the query


def test_what_keeps_it_from_beginning_is_noted(stage: Stage, tmp_path: Path) -> None:
    def away(namespace: str, domain: str) -> list[str]:
        raise NotConnected("refused")

    stage.topics = away  # type: ignore[method-assign]
    with pytest.raises(NotConnected):
        stage.run(step("q"))
    (kept,) = known(tmp_path)
    assert (kept.pid, kept.about["state"], kept.about["lastError"]) == (None, "failed", "refused")


def test_the_namespace_of_a_sink_stays_what_it_was(stage: Stage, tmp_path: Path) -> None:
    stage.lives = {"q": [Played(), Played()]}
    stage.run(step("q", output="acme/shop/out"))
    (tmp_path / "p" / "q" / "checkpoint").mkdir()
    (tmp_path / "p" / "q" / "checkpoint" / "metadata").touch()
    stage.run(step("q", output="out"))
    (kept,) = known(tmp_path)
    assert (kept.about["sinkNamespace"], kept.about["output"]) == ("acme/shop", "persistent://public/default/out")


def test_what_lies_beside_a_file_travels_and_what_is_installed_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file may be in a home directory with a Python installation below it, or in a clone of pulsarbox."""

    def module(name: str, *place: str) -> ModuleType:
        made = ModuleType(name)
        made.__file__ = str(tmp_path.joinpath(*place))
        monkeypatch.setitem(sys.modules, name, made)
        return made

    own = module("pulsarbox_pipeline_shop", "shop.py")
    beside, below = module("prices", "prices.py"), module("shared.rates", "shared", "rates.py")
    module("json.decoder", ".pyenv", "lib", "python3.11", "json", "decoder.py")
    module("pulsarbox.names", "pulsarbox", "names.py")
    module("attr", ".venv", "lib", "python3.11", "site-packages", "attr", "__init__.py")
    module("yaml", "usr", "lib", "python3", "dist-packages", "yaml.py")
    assert runner.travelling(own) == [own, beside, below]
