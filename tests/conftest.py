"""Fixtures and hooks shared by all tests."""

import asyncio
import atexit
import gc
import inspect
import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.workers import dealing

ROOT = Path(__file__).parents[1]
USES_FORKS = "e2e"
"""Folder of tests of which most run commands and boxes as forks."""

# No deadline: the duration of an example reflects the load of the machine. Examples are derandomized for reproducible
# results. HYPOTHESIS_SEARCH=1 generates others, and `make campaigns` runs more of them.
settings.register_profile(
    "any machine",
    deadline=None,
    max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "10")),
    derandomize="HYPOTHESIS_SEARCH" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("any machine")

# Hypothesis parses all loaded modules of the project for constants that it may try: seconds, in a new checkout. Which
# examples a derandomized property has would also change with any module.
if "HYPOTHESIS_EXAMPLES" not in os.environ and "_get_local_constants" in vars(providers):
    vars(providers)["_get_local_constants"] = lambda: providers._local_constants

# Tests start more than a thousand processes that load hundreds of modules each. Bytecode caching stays on, regardless
# of the environment: compiling takes longer than most commands.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


@pytest.fixture(scope="session", autouse=True)
def default_signals() -> Iterator[None]:
    """Start child processes with the default action for SIGINT and SIGHUP, even if this process ignores them.

    ``nohup`` ignores SIGHUP, and a shell without job control ignores SIGINT for its background jobs. A child inherits
    an ignored signal, but not a handler. This process continues to ignore the signals.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGHUP)}
    for number, handler in before.items():
        if handler is signal.SIG_IGN:
            signal.signal(number, lambda number, frame: None)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def asyncio_runner() -> Iterator[asyncio.Runner]:
    """The event loop of one test, shared between an asynchronous test and its fixtures."""
    with asyncio.Runner() as runner:
        yield runner


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an ``async def`` test in the loop of its fixtures, or in a new one if none of them has a loop."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    runner = pyfuncitem.funcargs.get("asyncio_runner")
    run = runner.run if isinstance(runner, asyncio.Runner) else asyncio.run
    run(test(**{name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}))
    return True


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Disable garbage collection during collection, then freeze the collected objects.

    Ten thousand tests and their modules live until the end of the run, so scanning them repeatedly is wasted work.
    """
    if session.config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        _start_forks(session)  # on another processor meanwhile
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(100_000)  # the default of 700 costs a tenth of the run
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Schedule the longest tests first when several processes share the tests."""
    workers = config.getoption("workers", 0) or int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "0"))
    if workers:
        items[:] = dealing.dealt(items, workers, _group, dealing.read())


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Start one process that forks commands and boxes for all workers: each would start its own."""
    if any(USES_FORKS in item.path.parts for item in session.items):
        _start_forks(session)


def _start_forks(session: pytest.Session) -> None:
    option = session.config.option
    if session.config.getoption("workers", 0) and not option.collectonly:
        from tests import forks

        forks.start()


def _group(item: pytest.Item) -> str:
    module = item.path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
    return dealing.group_of(module)


@atexit.register
def _drop_leak_reports() -> None:
    """Discard what DuckDB prints at the end of a process: each of its types that a test module still refers to."""
    if "_duckdb" in sys.modules:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
