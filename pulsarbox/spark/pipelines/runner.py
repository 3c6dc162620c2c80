"""Runner of a pipeline: one JVM, and a Spark query per step with a checkpoint and a lock, until stopped.

A failed query is restarted with backoff a limited number of times; the others continue. Missing topics that are inputs
by name are created. With ``once``, a step starts when the steps that it reads from are done.
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

from pulsarbox.client.admin import AdminRefused, path_of, path_of_subscription
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic
from pulsarbox.spark.pipelines import delta_output, failure_causes
from pulsarbox.spark.pipelines.declaration import PATTERN, Function, PipelineError, PipelineStep
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
from pulsarbox.spark.pipelines.runner_output import RunnerOutput
from pulsarbox.spark.pipelines.session import is_local, jvm_has_ended, session
from pulsarbox.spark.pipelines.session import stop as stop_spark
from pulsarbox.spark.pipelines.spark_log import LOG
from pulsarbox.spark.pipelines.stalled_tasks import StalledTasks
from pulsarbox.spark.pipelines.state import QueryState, known
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
    """Run a pipeline until SIGTERM or Ctrl-C, or with ``once`` until the available data is processed.

    Returns the queries' final progress. ``say`` receives output lines; stderr by default. Raises PipelineError if the
    run cannot start: an invalid declaration, missing Spark, a lock held by another process, an unreachable broker.
    """
    pipeline = replace(pipeline, name=options.name or pipeline.name)
    pipeline.check()
    check_spark(options.master)
    with contextlib.ExitStack() as stack:
        held: dict[str, QueryState] = {}
        for name in sorted(step.query for step in pipeline.steps):
            held[name] = QueryState(options.directory, pipeline.name, name)
            stack.callback(held[name].release)
        for step in pipeline.steps:
            _check_inputs(step, held[step.query], pipeline.name)
        return _Runner(pipeline, options, held, say).run()


def settings_of(pipeline: Pipeline, options: RunOptions) -> dict[str, str]:
    """Return the Spark settings of a run, with Delta's if a step writes a Delta table."""
    is_delta = any(step.writes().kind == delta_output.KIND for step in pipeline.steps)
    return delta_output.settings(options.settings) if is_delta else options.settings


class _Query:
    """Runtime state of one query."""

    def __init__(self, step: PipelineStep, held: QueryState, restarts: int) -> None:
        self.step = step
        self.held = held
        self.watched = Watched(step)
        self.query: StreamingQuery | None = None
        self.again_at: float | None = 0.0
        """Time of the next start; None while it runs and when it is done."""
        self.failures = 0
        """Consecutive failures without a micro-batch in between."""
        self.left = restarts
        self.started_at: float | None = None
        """Time of the start, until the first micro-batch has completed."""
        self._seen: tuple[str, int, str] | None = None
        code = getattr(step.code, "__code__", None)
        self.file: str = code.co_filename if code is not None else ""

    def news(self) -> list[Mapping[str, Any]]:
        """Return the progress that Spark has reported since the last call."""
        assert self.query is not None
        found: list[Mapping[str, Any]] = []
        told = self.query._jsq.recentProgress()
        for at in reversed(range(len(told))):  # each element is a call to the JVM, which keeps a hundred of them
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
        """Return whether the first micro-batch is still running; false after _START_SECONDS."""
        if self.started_at is None or self.query is None or now - self.started_at > _START_SECONDS:
            return False
        if self._seen is not None or str(self.query.status["message"]).startswith("Waiting"):
            self.started_at = None
            return False
        return True

    @property
    def is_done(self) -> bool:
        """Whether it will not be started again."""
        return self.watched.state in (STOPPED, FAILED) and self.again_at is None


class _Runner:
    def __init__(
        self, pipeline: Pipeline, options: RunOptions, held: Mapping[str, QueryState], say: Callable[[str], None] | None
    ) -> None:
        self._pipeline = pipeline
        self._options = options
        self._queries = [_Query(step, held[step.query], options.restarts) for step in pipeline.steps]
        self._telling = RunnerOutput([each.watched for each in self._queries], say)
        self._stop = threading.Event()
        self._log = options.directory / pipeline.name / LOG

    def run(self) -> list[Watched]:
        """Run the pipeline to its end."""
        options = self._options
        _ship_user_modules(self._pipeline.module)
        with (
            self._noting_failures(),
            _made_ready(self._pipeline, options, self._queries, self._telling.print_line) as admin,
            self._signals(),
        ):
            self._telling.print_line(f"{self._pipeline.name}: starting Spark ({options.master})")
            conf = settings_of(self._pipeline, options)
            spark = session(options.master, f"pulsarbox {self._pipeline.name}", conf, fast=options.once, log=self._log)
            try:
                with self._signals(), self._reporter(admin, spark.sparkContext.uiWebUrl):
                    self._work(spark)
            finally:
                stop_spark(spark)
        self._telling.end()
        return [each.watched for each in self._queries]

    def _work(self, spark: "SparkSession") -> None:
        """Run the queries. Raises PipelineError if the JVM ends unexpectedly."""
        try:
            self._until_over(spark)
            self._end()
        except Exception as error:
            if not jvm_has_ended(error):
                raise
            if self._stop.is_set():  # the signal that stopped us reached the JVM too
                self._end()
                return
            text = f"Spark's JVM ended unexpectedly: see {self._log}. The next run continues where this one stopped"
            for each in self._queries:
                if not each.is_done:
                    each.watched.state, each.watched.error, each.query = FAILED, text, None
                    self._note(each)
            raise PipelineError(text) from error

    @contextlib.contextmanager
    def _noting_failures(self) -> Iterator[None]:
        """Record startup failures in the state, for `pipeline list`."""
        try:
            yield
        except PulsarBoxError as error:
            for each in self._queries:
                if each.watched.state == STARTING:
                    each.watched.state, each.watched.error = FAILED, str(error)
                    self._note(each)
            raise

    def _reporter(self, admin: "Admin", ui: str | None) -> "contextlib.AbstractContextManager[object]":
        say = self._telling.print_line
        if ui:
            say(f"Spark's web pages are at {ui}")
        if not self._options.report:
            return contextlib.nullcontext()
        return Reporter(admin, self._pipeline.name, self._options.master, self._rows, say, ui)

    def _rows(self) -> list[dict[str, Any]]:
        now = time.monotonic()
        return [each.watched.row(now) for each in self._queries]

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Stop the queries on SIGTERM, Ctrl-C and, except under nohup, SIGHUP; a second Ctrl-C does not wait for them.
        Spark installs a handler of SIGINT itself, so this is entered again after its start."""
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
        idle = None if is_local(master) else StalledTasks(spark.sparkContext.statusTracker(), master)
        while not self._stop.is_set() and not all(each.is_done for each in self._queries):
            for each in self._queries:
                if each.query is not None:
                    self._check(each)
                if each.again_at is not None and time.monotonic() >= each.again_at and self._is_its_turn(each):
                    self._start(spark, each)
                if self._stop.is_set():
                    break
            if idle is not None and (text := idle.message_at(time.monotonic())):
                self._telling.print_line(text)
            self._telling.show()
            self._stop.wait(_LOOK_SECONDS)

    def _is_its_turn(self, query: _Query) -> bool:
        """Return whether no other query is starting, as concurrent starts of processes could exceed Spark's limit of
        ten seconds. With ``once``, also whether the queries that it reads from are done."""
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
        except (Exception, SystemExit) as error:  # sys.exit() in a frame's function fails only this query
            if jvm_has_ended(error):
                raise
            text, is_users = failure_causes.line_of(error, each.file)
            # Restarting does not fix an error in the user's file.
            self._failed(each, text, for_good=is_users or isinstance(error, PipelineError))
            return
        each.watched.state = RUNNING
        each.started_at = time.monotonic()

    def _check(self, each: _Query) -> None:
        query = each.query
        assert query is not None
        is_active = query.isActive
        for progress in each.news():
            each.watched.progressed(progress)
            if self._options.once and _waits_for_timers(each.step) and _is_empty_batch(progress):
                _stopped(each)  # for the timers' sake Spark would continue for ever
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
            text, is_misfit = (
                failure_causes.innermost_exception(str(error), each.file),
                failure_causes.is_misfit(str(error)),
            )
            if is_misfit:
                text += (
                    ". The query no longer matches its checkpoint: undo the change, or start anew, with another name= "
                    f"or after `pulsarbox pipeline reset {self._pipeline.name} {each.step.query}`"
                )
            self._failed(each, text, for_good=is_misfit)

    def _failed(self, each: _Query, text: str, *, for_good: bool) -> None:
        each.watched.state, each.watched.error = FAILED, text
        each.failures += 1
        self._note(each)
        if for_good or each.failures > each.left:
            self._telling.print_line(f"{each.step.query} has failed: {text}")
            return
        pause = min(_FIRST_PAUSE_SECONDS * 2 ** (each.failures - 1), _LONGEST_PAUSE_SECONDS)
        each.again_at = time.monotonic() + pause
        again = f"restarting in {pause:g} s ({each.failures} of {each.left})"
        self._telling.print_line(f"{each.step.query} has failed, {again}: {text}")

    def _end(self) -> None:
        """Stop the running queries; the next run repeats micro-batches that were not committed."""
        running = [each for each in self._queries if each.query is not None]
        if running:
            self._telling.print_line(f"stopping {len(running)} quer{'y' if len(running) == 1 else 'ies'}")
        threads = [threading.Thread(target=_stopped, args=(each,)) for each in running]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for each in running:
            self._check_finally(each)
        for each in self._queries:
            if each.watched.state in (STARTING, RUNNING):
                # No progress since the last failure: still failed.
                each.watched.state = FAILED if each.failures else STOPPED
            self._note(each)

    def _check_finally(self, each: _Query) -> None:
        with contextlib.suppress(Exception):  # Spark may have forgotten the query
            for progress in each.news():
                each.watched.progressed(progress)
        each.query = None

    def _note(self, each: _Query) -> None:
        watched = each.watched
        more = {"state": watched.state, "lastError": watched.error, "batch": watched.batch}
        try:
            each.held.note(**more, stoppedAt=round(time.time() * 1000))
        except PipelineError as error:  # the queries may continue, and must be stopped in any case
            self._telling.print_line(str(error))


def _waits_for_timers(step: PipelineStep) -> bool:
    return isinstance(step, Function) and step.on_timer is not None


def _is_empty_batch(progress: Mapping[str, Any]) -> bool:
    return "addBatch" in (progress.get("durationMs") or {}) and not progress.get("numInputRows")


def _stopped(each: _Query) -> None:
    assert each.query is not None
    with contextlib.suppress(Exception):  # errors during the stop are irrelevant
        each.query.stop()


def subscription_of(pipeline: str, step: PipelineStep) -> str:
    """Return the subscription that retains what a query has not read yet; without it, only retention policies would."""
    return subscription_named(pipeline, step.query)


def subscription_named(pipeline: str, query: str) -> str:
    """Return the subscription's name for the query's name."""
    return f"pipeline-{pipeline}-{query}"


# Preparation


def _check_inputs(step: PipelineStep, held: QueryState, pipeline: str) -> None:
    """Check that a checkpoint's query read at least one of the inputs; otherwise it would continue from unrelated
    positions. Raises PipelineError."""
    before, now = [] if held.is_new else held.about().get("inputs") or [], inputs_of(step)
    if not before or set(before) & set(now) or any(each.startswith(PATTERN) for each in (*before, *now)):
        return
    raise step.wrong(
        f"its checkpoint in {held.place} belongs to a query that read {', '.join(before)}, but this one reads "
        f"{', '.join(now)}: use another --name or another --state, or start anew after `pulsarbox pipeline reset "
        f"{pipeline} {step.query}`"
    )


@contextlib.contextmanager
def _made_ready(
    pipeline: Pipeline, options: RunOptions, queries: "list[_Query]", say: Callable[[str], None]
) -> "Iterator[Admin]":
    """Record the queries, and create missing topics and new queries' subscriptions. Raises PipelineError."""
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
    _report_undeclared(pipeline, options.directory, say)
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


def _report_undeclared(pipeline: Pipeline, directory: Path, say: Callable[[str], None]) -> None:
    """Report queries of earlier runs that are not declared any more. A renamed query starts anew, and the old
    subscription still retains messages."""
    declared = {step.query for step in pipeline.steps}
    for each in known(directory, pipeline.name):
        if each.query not in declared:
            say(
                f"{pipeline.name}/{each.query} ran before and is no longer declared. If it was renamed, "
                f"name={each.query!r} continues it. Otherwise delete subscription "
                f"{subscription_named(pipeline.name, each.query)}, which retains its unread messages, and run "
                f"`pulsarbox pipeline reset {pipeline.name} {each.query}`"
            )


def _make_inputs(pipeline: Pipeline, admin: "Admin", say: Callable[[str], None]) -> None:
    """Create missing topics that are inputs by name, as for a consumer. Reading reports missing permissions."""
    there: dict[tuple[str, str], set[str]] = {}
    for topic in sorted({each for step in pipeline.steps for each in inputs_of(step) if not each.startswith(PATTERN)}):
        name = parse_topic(topic)
        of = (name.namespace, name.domain)
        with _refused_before(401, 403, 404, 409):
            if of not in there:
                there[of] = {*admin.topics(*of), *admin.partitioned_topics(*of)}
            if topic not in there[of] and name.partition_index < 0:
                admin.ask("PUT", path_of(name))
                say(f"{topic} did not exist: created")


def _hold_letters(admin: "Admin", pipeline: str, step: PipelineStep, say: Callable[[str], None]) -> None:
    """Create the subscription that retains dead letters; without one, they would be deleted like any message."""
    letters = dead_letters_of(step)
    if letters is None:
        return
    name = parse_topic(letters)
    try:
        if not admin.partitions(name):
            with _refused_before(401, 403, 409):  # permission to subscribe does not require permission to create topics
                admin.ask("PUT", path_of(name))
        with _refused_before(409):
            admin.ask("PUT", path_of_subscription(name, subscription_of(pipeline, step)), _EARLIEST)
    except AdminRefused as error:
        if error.status not in (401, 403, 404):
            raise
        say(f"{letters} cannot have a subscription ({error}): dead letters are deleted, unless retention keeps them")


def _subscribe(admin: "Admin", pipeline: str, step: PipelineStep) -> None:
    """Create the subscriptions that retain existing messages until the first micro-batch has read them."""
    if any(name.lower() in ("subscription", "predefinedsubscription") for name in step.options):
        return
    for name, selection in step.reads().items():
        subscription = "-".join(each for each in (subscription_of(pipeline, step), name) if each)
        for topic in selection.get("topics", "").split(",") if "topics" in selection else ():
            with _refused_before(404, 409):
                admin.ask("PUT", path_of_subscription(parse_topic(topic), subscription), _EARLIEST)


@contextlib.contextmanager
def _refused_before(*statuses: int) -> Iterator[None]:
    """Ignore some rejections: the goal is already met, or its later use reports the error better."""
    try:
        yield
    except AdminRefused as error:
        if error.status not in statuses:
            raise


def _ship_user_modules(module: ModuleType | None) -> None:
    """Ship the user's file, and the modules imported from its directory, to the workers by value."""
    if module is None:
        return
    from pyspark.cloudpickle import register_pickle_by_value

    for each in travelling(module):
        register_pickle_by_value(each)  # type: ignore[no-untyped-call]


def travelling(module: ModuleType) -> list[ModuleType]:
    """Return the user's file and the modules imported from its directory, except installed packages, which may lie
    below a home directory."""
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
