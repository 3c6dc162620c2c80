"""What holds for all tests."""

import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.tools import dealing

ROOT = Path(__file__).parents[1]

# How long an example takes says how busy the machine is, and nothing of what is tested. The examples are the same each
# time, so that a change is not judged by luck; HYPOTHESIS_SEARCH=1 looks for others, `make campaigns` tries more.
settings.register_profile(
    "any machine",
    deadline=None,
    max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "30")),
    derandomize="HYPOTHESIS_SEARCH" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("any machine")

# Tests start more than a thousand processes, and each loads hundreds of modules: they are compiled once, and kept,
# whatever is wanted elsewhere on this machine. Compiling them anew takes longer than most commands do.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


@pytest.fixture(scope="session", autouse=True)
def default_signals() -> Iterator[None]:
    """Start child processes with the default reaction to SIGINT and SIGHUP, even where this process ignores them.

    ``nohup`` ignores SIGHUP, and a shell without job control ignores SIGINT for its background jobs; a child inherits
    that, but not a handler. This process stays as deaf as it was told to be.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGHUP)}
    for number, handler in before.items():
        if handler is signal.SIG_IGN:
            signal.signal(number, lambda number, frame: None)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Ten thousand tests and the modules they are in stay to the end: the collector of garbage is not to look at them
    again and again, neither while they come nor with every test."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long comes first where processes share the tests."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "0"))
    if workers:
        items[:] = dealing.dealt(items, workers, _group, dealing.read())


def _group(item: pytest.Item) -> str:
    module = item.path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
    return dealing.group_of(module)
