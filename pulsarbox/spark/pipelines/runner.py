"""Runs a pipeline: one JVM, a query of Spark a step, each with a checkpoint and a lock; until it is told to stop.

A query that fails is started again after a while, a few times; the others go on. Topics that are
read by name are made where they are missing. With ``once`` a step begins when those are done that it reads from.
"""

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from pulsarbox.client.admin import Refused, path_of, path_of_subscription
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic
from pulsarbox.spark.pipelines import failure_causes
from pulsarbox.spark.pipelines.declaration import PATTERN, Function, PipelineError, Step
from pulsarbox.spark.pipelines.definition import Pipeline, reads_from
from pulsarbox.spark.pipelines.query_progress import (
    FAILED,
    RUNNING,
    STARTING,
    STOPPED,
    Watched,
    dead_letters_of,
    inputs_of,
)
from pulsarbox.spark.pipelines.requirements import check as check_spark
from pulsarbox.spark.pipelines.run_options import RunOptions
from pulsarbox.spark.pipelines.runner_output import Telling
from pulsarbox.spark.pipelines.session import is_local, jvm_has_ended, session
from pulsarbox.spark.pipelines.session import stop as stop_spark
from pulsarbox.spark.pipelines.spark_log import LOG
from pulsarbox.spark.pipelines.stalled_tasks import Idle
from pulsarbox.spark.pipelines.state import Held, known
from pulsarbox.spark.pipelines.status_report import Reporter, admin_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from pulsarbox.client.admin import Admin

_LOOK_SECONDS: Final = 0.25
_START_SECONDS: Final = 10.0
_FIRST_PAUSE_SECONDS: Final = 1.0
_LONGEST_PAUSE_SECONDS: Final = 60.0
_EARLIEST: Final = {"ledgerId": -1, "entryId": -1}


def run(pipeline: Pipeline, options: RunOptions, say: Callable[[str], None] | None = None) -> list[Watched]:
    """Run a pipeline until SIGTERM or Ctrl-C, with ``once`` until what is there is done; how each query ended.

    ``say``: where to talk; stderr unless given. Raises PipelineError where it cannot begin: something is declared
    wrong, Spark is missing, somebody runs it already, the broker does not answer.
    """
    pipeline = replace(pipeline, name=options.name or pipeline.name)
    pipeline.check()
    check_spark(options.master)
    with contextlib.ExitStack() as stack:
        held: dict[str, Held] = {}
        for name in sorted(step.query for step in pipeline.steps):
            held[name] = Held(options.directory, pipeline.name, name)
            stack.callback(held[name].release)
        for step in pipeline.steps:
            _check_inputs(step, held[step.query], pipeline.name)
        return _Runner(pipeline, options, held, say).run()


class _Query:
    """One query while the runner runs."""

    def __init__(self, step: Step, held: Held, restarts: int) -> None:
        self.step = step
        self.held = held
        self.watched = Watched(step)
        self.query: StreamingQuery | None = None
        self.again_at: float | None = 0.0
        """When to start it; None while it runs, and when it is done."""
        self.failures = 0
        """One after the other, without a micro-batch between."""
        self.left = restarts
        self.started_at: float | None = None
        """When it was started, while it has not come to its first micro-batch."""
        self._seen: tuple[str, int, str] | None = None
        code = getattr(step.code, "__code__", None)
        self.file: str = code.co_filename if code is not None else ""

    def news(self) -> list[Mapping[str, Any]]:
        """What Spark has told of it since the last look."""
        assert self.query is not None
        found: list[Mapping[str, Any]] = []
        told = self.query._jsq.recentProgress()
        for at in reversed(range(len(told))):  # each that is taken is asked of the JVM, and a hundred are kept there
            progress = json.loads(told[at].json())
            mark = (progress["runId"], int(progress["batchId"]), progress["timestamp"])
            if mark == self._seen:
                break
            found.append(progress)
        if found:
            last = found[0]
            self._seen = (last["runId"], int(last["batchId"]), last["timestamp"])
        return found[::-1]

    def is_starting(self, now: float) -> bool:
        """Whether its first micro-batch is still under way; of one that takes long it is not said any more."""
        if self.started_at is None or self.query is None or now - self.started_at > _START_SECONDS:
            return False
        if self._seen is not None or str(self.query.status["message"]).startswith("Waiting"):
            self.started_at = None
            return False
        return True

    @property
    def is_done(self) -> bool:
        """Whether it will not run again."""
        return self.watched.state in (STOPPED, FAILED) and self.again_at is None


class _Runner:
    def __init__(
        self, pipeline: Pipeline, options: RunOptions, held: Mapping[str, Held], say: Callable[[str], None] | None
    ) -> None:
        self._pipeline = pipeline
        self._options = options
        self._queries = [_Query(step, held[step.query], options.restarts) for step in pipeline.steps]
        self._telling = Telling([each.watched for each in self._queries], say)
        self._stop = threading.Event()
        self._log = options.directory / pipeline.name / LOG

    def run(self) -> list[Watched]:
        """Run it to its end."""
        options = self._options
        _let_travel(self._pipeline.module)
        with (
            self._noting_failures(),
            _made_ready(self._pipeline, options, self._queries, self._telling.say) as admin,
            self._signals(),
        ):
            self._telling.say(f"{self._pipeline.name}: starting Spark ({options.master})")
            spark = session(
                options.master, f"pulsarbox {self._pipeline.name}", options.conf, fast=options.once, log=self._log
            )
            try:
                with self._signals(), self._reporter(admin):
                    self._work(spark)
            finally:
                stop_spark(spark)
        self._telling.end()
        return [each.watched for each in self._queries]

    def _work(self, spark: "SparkSession") -> None:
        """Raises PipelineError where Spark ends by itself."""
        try:
            self._until_over(spark)
            self._end()
        except Exception as error:
            if not jvm_has_ended(error):
                raise
            if self._stop.is_set():  # whoever told us to end has told the JVM, too
                self._end()
                return
            text = f"Spark's JVM has ended by itself: {self._log} may say why. The next run goes on where this one was"
            for each in self._queries:
                if not each.is_done:
                    each.watched.state, each.watched.error, each.query = FAILED, text, None
                    self._note(each)
            raise PipelineError(text) from error

    @contextlib.contextmanager
    def _noting_failures(self) -> Iterator[None]:
        """What it cannot begin with, `pipeline list` has as well."""
        try:
            yield
        except PulsarBoxError as error:
            for each in self._queries:
                if each.watched.state == STARTING:
                    each.watched.state, each.watched.error = FAILED, str(error)
                    self._note(each)
            raise

    def _reporter(self, admin: "Admin") -> "contextlib.AbstractContextManager[object]":
        if not self._options.report:
            return contextlib.nullcontext()
        return Reporter(admin, self._pipeline.name, self._options.master, self._rows, self._telling.say)

    def _rows(self) -> list[dict[str, Any]]:
        now = time.monotonic()
        return [each.watched.row(now) for each in self._queries]

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """SIGTERM, Ctrl-C and the end of the terminal, unless nohup was said, stop the queries; Ctrl-C once more does
        not wait for them. Spark sets a handler itself."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def stop(number: int, frame: FrameType | None) -> None:
            if self._stop.is_set() and number == signal.SIGINT:
                raise KeyboardInterrupt
            self._stop.set()

        closed = () if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else (signal.SIGHUP,)
        before = {each: signal.signal(each, stop) for each in (signal.SIGTERM, signal.SIGINT, *closed)}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    # Queries

    def _until_over(self, spark: "SparkSession") -> None:
        master = self._options.master
        idle = None if is_local(master) else Idle(spark.sparkContext.statusTracker(), master)
        while not self._stop.is_set() and not all(each.is_done for each in self._queries):
            for each in self._queries:
                if each.query is not None:
                    self._look(each)
                if each.again_at is not None and time.monotonic() >= each.again_at and self._is_its_turn(each):
                    self._start(spark, each)
                if self._stop.is_set():
                    break
            if idle is not None and (text := idle.look(time.monotonic())):
                self._telling.say(text)
            self._telling.show()
            self._stop.wait(_LOOK_SECONDS)

    def _is_its_turn(self, query: _Query) -> bool:
        """Whether no other one is just starting: each starts processes, which wait ten seconds for each other at most.
        With ``once`` also whether those are done that it reads from."""
        if any(each.is_starting(time.monotonic()) for each in self._queries):
            return False
        return not self._options.once or all(
            each.is_done for each in self._queries if each is not query and reads_from(query.step, each.step)
        )

    def _start(self, spark: "SparkSession", each: _Query) -> None:
        from pulsarbox.spark.pipelines.step_query import started

        each.watched.state, each.again_at = STARTING, None
        each.watched.starts += 1
        about = each.held.about()
        given = {
            "box": self._options.box,
            "subscription": subscription_of(self._pipeline.name, each.step),
            "sinkNamespace": about["sinkNamespace"],
        }
        try:
            each.query = started(spark, each.step, str(each.held.checkpoint), given, once=self._options.once)
        except (Exception, SystemExit) as error:  # sys.exit() in a frame's function is a failure of that one
            if jvm_has_ended(error):
                raise
            text, is_users = failure_causes.line_of(error, each.file)
            # What stands wrong in the file does not get better by being started again.
            self._failed(each, text, for_good=is_users or isinstance(error, PipelineError))
            return
        each.watched.state = RUNNING
        each.started_at = time.monotonic()

    def _look(self, each: _Query) -> None:
        query = each.query
        assert query is not None
        is_active = query.isActive
        for progress in each.news():
            each.watched.progressed(progress)
            if self._options.once and _waits_for_timers(each.step) and _is_empty_batch(progress):
                _stopped(each)  # Spark would go on for the timers' sake, and never end
                is_active = False
            if each.watched.error and "addBatch" in (progress.get("durationMs") or {}):
                each.failures, each.watched.error = 0, None
        if is_active:
            return
        error = query.exception()
        each.query = None
        if error is None:
            each.watched.state = STOPPED
            self._note(each)
        else:
            text, is_misfit = failure_causes.told(str(error), each.file), failure_causes.is_misfit(str(error))
            if is_misfit:
                text += (
                    ". It is not the query of its checkpoint any more: undo that; or give it another name=, by which "
                    f"it begins anew, or do so here: `pulsarbox pipeline reset {self._pipeline.name} {each.step.query}`"
                )
            self._failed(each, text, for_good=is_misfit)

    def _failed(self, each: _Query, text: str, *, for_good: bool) -> None:
        each.watched.state, each.watched.error = FAILED, text
        each.failures += 1
        self._note(each)
        if for_good or each.failures > each.left:
            self._telling.say(f"{each.step.query} has failed: {text}")
            return
        pause = min(_FIRST_PAUSE_SECONDS * 2 ** (each.failures - 1), _LONGEST_PAUSE_SECONDS)
        each.again_at = time.monotonic() + pause
        again = f"is started again in {pause:g} s ({each.failures} of {each.left})"
        self._telling.say(f"{each.step.query} has failed, and {again}: {text}")

    def _end(self) -> None:
        """Stop what runs; what a micro-batch has not committed is done again by the next start."""
        running = [each for each in self._queries if each.query is not None]
        if running:
            self._telling.say(f"stopping {len(running)} quer{'y' if len(running) == 1 else 'ies'}")
        threads = [threading.Thread(target=_stopped, args=(each,)) for each in running]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for each in running:
            self._look_last(each)
        for each in self._queries:
            if each.watched.state in (STARTING, RUNNING):
                # One that has not done anything since it failed has not got over it.
                each.watched.state = FAILED if each.failures else STOPPED
            self._note(each)

    def _look_last(self, each: _Query) -> None:
        with contextlib.suppress(Exception):  # Spark may have forgotten it
            for progress in each.news():
                each.watched.progressed(progress)
        each.query = None

    def _note(self, each: _Query) -> None:
        watched = each.watched
        more = {"state": watched.state, "lastError": watched.error, "batch": watched.batch}
        try:
            each.held.note(**more, stoppedAt=round(time.time() * 1000))
        except PipelineError as error:  # the queries themselves may go on, and have to be stopped in any case
            self._telling.say(str(error))


def _waits_for_timers(step: Step) -> bool:
    return isinstance(step, Function) and step.on_timer is not None


def _is_empty_batch(progress: Mapping[str, Any]) -> bool:
    return "addBatch" in (progress.get("durationMs") or {}) and not progress.get("numInputRows")


def _stopped(each: _Query) -> None:
    assert each.query is not None
    with contextlib.suppress(Exception):  # what it fails with while it is stopped is of no interest any more
        each.query.stop()


def subscription_of(pipeline: str, step: Step) -> str:
    """The subscription that holds what a query has not read: without one, retention alone would."""
    return subscription_named(pipeline, step.query)


def subscription_named(pipeline: str, query: str) -> str:
    """The same, by the name of the query."""
    return f"pipeline-{pipeline}-{query}"


# Before it begins


def _check_inputs(step: Step, held: Held, pipeline: str) -> None:
    """Raises PipelineError where a checkpoint is of a query that read something else: it would go on in its place."""
    before, now = [] if held.is_new else held.about().get("inputs") or [], inputs_of(step)
    if not before or set(before) & set(now) or any(each.startswith(PATTERN) for each in (*before, *now)):
        return
    raise step.wrong(
        f"its checkpoint in {held.place} is of a query that read {', '.join(before)}, and this one reads "
        f"{', '.join(now)}: give this pipeline another --name, or another --state; or, where it is to begin anew, "
        f"`pulsarbox pipeline reset {pipeline} {step.query}`"
    )


@contextlib.contextmanager
def _made_ready(
    pipeline: Pipeline, options: RunOptions, queries: "list[_Query]", say: Callable[[str], None]
) -> "Iterator[Admin]":
    """Note what will run; make topics that are read; subscribe what is new. Raises PipelineError."""
    from pulsarbox.spark.pipelines.step_query import check_files, namespace_of

    for each in queries:
        check_files(each.step, each.held.is_new)
        about = each.held.about() if not each.held.is_new else {}
        each.held.note(
            pipeline=pipeline.name,
            query=each.step.query,
            inputs=inputs_of(each.step),
            output=str(each.step.writes()),
            deadLetter=dead_letters_of(each.step),
            file=each.file,
            sinkNamespace=about.get("sinkNamespace") or namespace_of(each.step),
            master=options.master,
            pid=os.getpid(),
            startedAt=round(time.time() * 1000),
            state=STARTING,
            lastError=None,
        )
    _tell_of_others(pipeline, options.directory, say)
    with admin_for(options.box) as admin:
        try:
            _make_inputs(pipeline, admin, say)
            for each in queries:
                if each.held.is_new:
                    _hold_letters(admin, pipeline.name, each.step, say)
                    _subscribe(admin, pipeline.name, each.step)
        except PulsarBoxError as error:
            for each in queries:
                each.held.note(state=FAILED, lastError=str(error))
            raise
        yield admin


def _tell_of_others(pipeline: Pipeline, directory: Path, say: Callable[[str], None]) -> None:
    """Queries that ran before and are not declared any more: one that was renamed begins anew, and what the old one has
    not read is held for it."""
    declared = {step.query for step in pipeline.steps}
    for each in known(directory, pipeline.name):
        if each.query not in declared:
            say(
                f"{pipeline.name}/{each.query} ran before and is not declared any more. Was it renamed? Then name="
                f"{each.query!r} goes on. Else delete subscription {subscription_named(pipeline.name, each.query)}, "
                f"which holds what it has not read, and `pulsarbox pipeline reset {pipeline.name} {each.query}`"
            )


def _make_inputs(pipeline: Pipeline, admin: "Admin", say: Callable[[str], None]) -> None:
    """Topics that are read by name have to be there: as for a consumer, they are made. Who may not, hears it later."""
    there: dict[tuple[str, str], set[str]] = {}
    for topic in sorted({each for step in pipeline.steps for each in inputs_of(step) if not each.startswith(PATTERN)}):
        name = parse_topic(topic)
        of = (name.namespace, name.domain)
        with _refused_before(401, 403, 404, 409):
            if of not in there:
                there[of] = {*admin.topics(*of), *admin.partitioned_topics(*of)}
            if topic not in there[of] and name.partition_index < 0:
                admin.ask("PUT", path_of(name))
                say(f"{topic} did not exist: made")


def _hold_letters(admin: "Admin", pipeline: str, step: Step, say: Callable[[str], None]) -> None:
    """Have dead letters kept until somebody looks: without a subscription they would go, as everything that is sent."""
    letters = dead_letters_of(step)
    if letters is None:
        return
    name = parse_topic(letters)
    try:
        if not admin.partitions(name):
            with _refused_before(401, 403, 409):  # who may not make topics may subscribe all the same
                admin.ask("PUT", path_of(name))
        with _refused_before(409):
            admin.ask("PUT", path_of_subscription(name, subscription_of(pipeline, step)), _EARLIEST)
    except Refused as error:
        if error.status not in (401, 403, 404):
            raise
        say(f"{letters} cannot be given a subscription ({error}): dead letters go, unless retention keeps them")


def _subscribe(admin: "Admin", pipeline: str, step: Step) -> None:
    """Hold what is there before the first micro-batch has been read."""
    if any(name.lower() in ("subscription", "predefinedsubscription") for name in step.options):
        return
    for name, selection in step.reads().items():
        subscription = "-".join(each for each in (subscription_of(pipeline, step), name) if each)
        for topic in selection.get("topics", "").split(",") if "topics" in selection else ():
            with _refused_before(404, 409):
                admin.ask("PUT", path_of_subscription(parse_topic(topic), subscription), _EARLIEST)


@contextlib.contextmanager
def _refused_before(*statuses: int) -> Iterator[None]:
    """It is so already, or is not there: whoever needs it says so better."""
    try:
        yield
    except Refused as error:
        if error.status not in statuses:
            raise


def _let_travel(module: ModuleType | None) -> None:
    """Workers are sent the user's file, and what it has imported from beside it, instead of its name."""
    if module is None:
        return
    from pyspark.cloudpickle import register_pickle_by_value

    for each in travelling(module):
        register_pickle_by_value(each)  # type: ignore[no-untyped-call]


def travelling(module: ModuleType) -> list[ModuleType]:
    """A user's file, and the modules that were imported from the folder in which it is; not what is installed, which a
    home directory may have below it too."""
    folder = Path(module.__file__ or "").parent
    found = [module]
    for name, each in list(sys.modules.items()):
        file = getattr(each, "__file__", None)
        if not file or each is module or name.partition(".")[0] in _ON_WORKERS:
            continue
        if folder in Path(file).parents and not _INSTALLED & set(Path(file).parts):
            found.append(each)
    return found


_ON_WORKERS: Final = sys.stdlib_module_names | {"pulsarbox", "__main__"}
_INSTALLED: Final = {"site-packages", "dist-packages"}
