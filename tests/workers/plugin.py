"""Worker processes for tests that are forks of the process that has collected them: ``--workers N``.

Collecting twelve thousand tests takes as long as running several thousand of them. With pytest-xdist each worker
collects on its own; here that is done once. The order of the tests is that of the list: worker k begins with the k-th
part, and a worker without tests takes half of those that another one has not begun with.

A worker that dies fails the test that it was running, and another fork continues with those it had still to run.
"""

import atexit
import os
import signal
import sys
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import pytest

AHEAD: Final = 3
"""Tests that a worker has been told to run: the current one, the next one, which decides what is torn down after the
current one, and one more, so that the worker does not wait for the answer."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    description = "run tests in N forks of this process, which collects them once; 0: in this process"
    parser.getgroup("workers").addoption("--workers", type=int, default=0, metavar="N", help=description)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the collected tests in forks, unless there are none, or no forks were asked for."""
    option = session.config.option
    if option.collectonly or session.testsfailed or option.workers < 1 or not session.items:
        return None
    pool = Pool(session, min(option.workers, len(session.items)))
    with warnings.catch_warnings():
        # Python 3.12 and later warn of a fork beside other threads; nothing has started one during the collection.
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        pool.run()
    return True


class Queues:
    """The numbers of the tests that no worker has been told to run, by worker."""

    def __init__(self, tests: int, workers: int) -> None:
        bounds = [tests * number // workers for number in range(workers + 1)]
        self._waiting = [deque(range(*bounds[number : number + 2])) for number in range(workers)]

    def take(self, worker: int) -> int | None:
        """Return the next number for a worker; None if all tests have been taken."""
        own = self._waiting[worker]
        if not own:
            longest = max(self._waiting, key=len)
            stolen = [longest.pop() for _ in range((len(longest) + 1) // 2)]
            own.extend(reversed(stolen))
        return own.popleft() if own else None

    def give_back(self, worker: int, tests: Sequence[int]) -> None:
        """Put tests that were not run in front of the others of a worker."""
        self._waiting[worker].extendleft(reversed(tests))


class Worker:
    """A fork, as its parent sees it."""

    def __init__(self, number: int, pid: int, connection: Connection) -> None:
        self.number = number
        self.pid = pid
        self.connection = connection
        self.told: deque[int] = deque()
        """Numbers of the tests that it has and that have not ended."""
        self.node = _Node(number)
        self.last_told = False

    def tell(self, test: int | None) -> None:
        """Send the number of a test, or that there are no more. A worker that has died is noticed when it is read."""
        if self.last_told:
            return
        self.last_told = test is None
        if test is not None:
            self.told.append(test)
        try:
            self.connection.send(test)
        except OSError:
            pass


class _Node:
    """The attributes that pytest's terminal reporter reads from reports of other processes."""

    def __init__(self, number: int) -> None:
        self.gateway = SimpleNamespace(id=f"gw{number}")
        self._workerinfocache = f"[gw{number}]"  # the line above a traceback


class Pool:
    """The workers of a session."""

    def __init__(self, session: pytest.Session, workers: int) -> None:
        self._session = session
        self._config = session.config
        self._queues = Queues(len(session.items), workers)
        self._workers: dict[Connection, Worker] = {}
        self._forks = 0
        self._count = workers
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None:
            terminal.showfspath = False  # the tests of several files end by turns
        # Made here, as the folders of all workers are in it, and removed at the end of the session.
        factory: pytest.TempPathFactory = self._config._tmp_path_factory  # type: ignore[attr-defined]
        self._folder = factory.getbasetemp()

    def run(self) -> None:
        """Run all tests. Raises what ends a session early: Session.Failed for --maxfail, KeyboardInterrupt."""
        try:
            for number in range(self._count):
                self._fork(number)
            while self._workers:
                for connection in wait(list(self._workers)):
                    assert isinstance(connection, Connection)
                    self._read(self._workers[connection])
        except KeyboardInterrupt:
            for worker in self._workers.values():
                os.kill(worker.pid, signal.SIGINT)
            raise
        finally:
            self._end()

    def _fork(self, number: int) -> None:
        """Fork a worker and give it its first tests."""
        ours, theirs = Pipe()
        self._forks += 1
        _flush()
        pid = os.fork()
        if pid == 0:
            for connection in (ours, *self._workers):  # of which the end is noticed only if nobody else holds it
                connection.close()
            _become(self._session, theirs, self._folder / f"worker-{self._forks}")
        theirs.close()
        worker = Worker(number, pid, ours)
        self._workers[ours] = worker
        for _ in range(AHEAD):
            worker.tell(self._queues.take(number))

    def _read(self, worker: Worker) -> None:
        try:
            kind, *given = worker.connection.recv()
        except (EOFError, OSError):
            self._ended(worker)
            return
        getattr(self, f"_on_{kind}")(worker, *given)
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)

    def _on_warning(self, _: Worker, given: dict[str, Any]) -> None:
        self._config.hook.pytest_warning_recorded.call_historic(kwargs=given)

    def _on_stop(self, _: Worker, why: str) -> None:
        self._session.shouldstop = why

    def _on_done(self, worker: Worker, test: int, reports: list["SentReport"]) -> None:
        item = self._session.items[test]
        worker.told.remove(test)
        for sent in reports:
            self._log(worker, _received(self._config, item, sent))
        self._config.hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        worker.tell(self._queues.take(worker.number))

    def _log(self, worker: Worker, report: pytest.TestReport) -> None:
        report.node = worker.node  # type: ignore[attr-defined]
        self._config.hook.pytest_runtest_logreport(report=report)

    def _ended(self, worker: Worker) -> None:
        """Report the test that a dead worker was running, and go on with the rest in another one."""
        del self._workers[worker.connection]
        worker.connection.close()
        _, status = os.waitpid(worker.pid, 0)
        if worker.told:
            code = os.waitstatus_to_exitcode(status)
            item = self._session.items[worker.told.popleft()]
            how = f"worker {worker.number} ended with {code} during this test"
            report = pytest.TestReport(item.nodeid, item.location, {}, "failed", how, "call")
            self._log(worker, report)
            self._config.hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if worker.told or not worker.last_told:
            self._queues.give_back(worker.number, worker.told)
            self._fork(worker.number)

    def _end(self) -> None:
        """End the workers that are left if the session ends early, with the teardown of their fixtures.

        Each first ends the phase of the test that it is running: a signal could hit a fixture half set up.
        """
        for worker in self._workers.values():
            worker.connection.close()
        for worker in self._workers.values():
            os.waitpid(worker.pid, 0)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        if stream is not None:
            stream.flush()


def _become(session: pytest.Session, connection: Connection, folder: Path) -> None:
    """Run tests as a worker until there are no more, and exit."""
    code = 1
    try:
        _run(session, connection, _set_up(session, connection, folder))
        code = 0
    except (KeyboardInterrupt, EOFError, OSError):  # the session has ended
        session._setupstate.teardown_exact(None)
    except BaseException:
        traceback.print_exc()
    finally:
        threading._shutdown()  # type: ignore[attr-defined]  # waits for the threads that are no daemons
        atexit._run_exitfuncs()
        _flush()
        os._exit(code)  # not through the frames of the session, which is the parent's to end


def _set_up(session: pytest.Session, connection: Connection, folder: Path) -> "_WorkerPlugin":
    """Replace what the parent has opened or alone may do: its output, its folder, its reports."""
    config = session.config
    plugins = config.pluginmanager
    for name in ("terminalreporter", "lfplugin", "nfplugin"):
        if plugins.has_plugin(name):
            plugins.unregister(name=name)
    capture = plugins.get_plugin("capturemanager")
    if capture is not None:
        capture.stop_global_capturing()
        capture.start_global_capturing()
    folder.mkdir(mode=0o700)
    factory: pytest.TempPathFactory = config._tmp_path_factory  # type: ignore[attr-defined]
    factory._basetemp = folder
    plugin = _WorkerPlugin(config, connection)
    plugins.register(plugin)
    plugin.sends_warnings = True
    return plugin


def _run(session: pytest.Session, connection: Connection, plugin: "_WorkerPlugin") -> None:
    current = connection.recv()
    while current is not None:
        following = connection.recv()
        item = session.items[current]
        nextitem = None if following is None else session.items[following]
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
        if session.shouldstop:
            connection.send(("stop", str(session.shouldstop)))
        connection.send(("done", current, plugin.reports))
        plugin.reports.clear()
        if session.shouldfail:
            return  # pytest has torn down everything, as it knows of no next test
        current = following


def _to_send(config: pytest.Config, report: pytest.TestReport) -> "SentReport":
    """Return a report in the form in which it is sent. Nearly all reports are of phases that passed."""
    if report.passed and not report.user_properties and not hasattr(report, "wasxfail"):
        return Passed(report.when, report.sections, report.duration, report.start, report.stop)
    serialized: dict[str, Any] = config.hook.pytest_report_to_serializable(config=config, report=report)
    return serialized


def _received(config: pytest.Config, item: pytest.Item, sent: "SentReport") -> pytest.TestReport:
    if isinstance(sent, Passed):
        return pytest.TestReport(item.nodeid, item.location, {}, "passed", None, *sent)
    report: pytest.TestReport = config.hook.pytest_report_from_serializable(config=config, data=sent)
    return report


class Passed(NamedTuple):
    """Report of a phase that passed: the fields of TestReport that differ from test to test. Times in seconds."""

    when: Literal["setup", "call", "teardown"]
    sections: Iterable[tuple[str, str]]
    duration: float
    start: float
    stop: float


SentReport: TypeAlias = Passed | dict[str, Any]
"""A report as a worker sends it: ``Passed``, or the dictionary in which pytest serializes other reports."""


class _WorkerPlugin:
    """Plugin that sends warnings to the parent, and keeps the reports of the current test.

    The parent gets the three reports of a test at once: a message for each would take seconds for all tests.
    """

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config = config
        self._connection = connection
        self.reports: list[SentReport] = []
        self.sends_warnings = False
        """Not while it is registered: pytest then repeats the warnings that the parent recorded before the fork."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Iterator[None]:
        """Keep the report of a phase of a test."""
        self.reports.append(_to_send(self._config, report))
        return (yield)

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: object
    ) -> None:
        """Send a warning."""
        if not self.sends_warnings:
            return
        shown = warnings.WarningMessage(
            str(warning_message.message), warning_message.category, warning_message.filename, warning_message.lineno
        )
        given = {"warning_message": shown, "when": when, "nodeid": nodeid, "location": location}
        self._connection.send(("warning", given))
