"""The session's shared box, a client for each test, and unique names.

The box is the pytest plugin's own. Tests of the command's process have ``own_box``.

To run the tests against Apache Pulsar: ``E2E_URL`` and ``E2E_WEB_URL`` name a running broker, and tests that start,
stop or kill a box are skipped. ``E2E_START_CMD`` is a command that starts one (see tests/tools/box.py).
"""

import gc
import itertools
import os
import subprocess
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pulsarbox import PulsarBox
from tests import forks
from tests.e2e.clients import connect
from tests.e2e.go_admin import GoAdmin
from tests.tools.box import PULSARBOX, BoxProcess, admin
from tests.tools.go import GoError

START_CMD = os.environ.get("E2E_START_CMD", PULSARBOX)


@pytest.fixture(scope="session", autouse=True)
def embedded_boxes_are_forks() -> Iterator[None]:
    """Run boxes that are processes as forks: the import of modules dominates the CPU time of a short run."""
    with pytest.MonkeyPatch.context() as patch:
        forks.boxes(patch)
        yield


@pytest.fixture(scope="module", autouse=True)
def _descriptors_of_closed_clients() -> Iterator[None]:
    """Free the clients of a module. A closed client keeps six descriptors until the collector breaks its cycle with its
    consumers, and a process that runs a few hundred such tests would reach 1,024 open files.

    Surviving objects, such as modules and session fixtures, are frozen, so that later collections skip them."""
    yield
    gc.collect()
    gc.freeze()


@dataclass(frozen=True)
class Running:
    """Addresses of a running broker."""

    url: str
    web_url: str
    is_ours: bool = True
    """Whether the broker is a box, not another broker under the same tests."""

    def admin(self, method: str, path: str, body: str | None = None) -> str:
        return admin(self.web_url, method, path, body)


@pytest.fixture(scope="module")
def box(request: pytest.FixtureRequest) -> Iterator[Running]:
    """Return a broker for the tests of one module: the session's box, of the kind set in tool.pytest, or another
    broker.
    """
    if "E2E_URL" in os.environ:
        yield Running(os.environ["E2E_URL"], os.environ["E2E_WEB_URL"], is_ours=False)
        return
    if "E2E_START_CMD" not in os.environ:
        shared: PulsarBox = request.getfixturevalue("pulsarbox")
        yield Running(shared.service_url, shared.admin_url)
        return
    own = BoxProcess(request.getfixturevalue("tmp_path_factory").mktemp("box") / "data", START_CMD)
    own.start()
    try:
        yield Running(own.url, own.web_url, is_ours=False)
        assert own.stop() == 0
    finally:
        own.kill()


@pytest.fixture
def ours(box: Running) -> None:
    """Skip the test against another broker: the feature exists only in a box."""
    if not box.is_ours:
        pytest.skip("not supported by Apache Pulsar")


@pytest.fixture
def own_box(tmp_path: Path) -> Iterator[BoxProcess]:
    """Return a box for one test, not started yet."""
    if "E2E_URL" in os.environ:
        pytest.skip("starts boxes of its own")
    own = BoxProcess(tmp_path / "data", START_CMD)
    try:
        yield own
    finally:
        own.kill()


@pytest.fixture
def run(box: Running) -> "Callable[..., subprocess.CompletedProcess[str]]":
    """Run a command of the Admin API against the session's box, without a terminal."""
    return lambda *words: forks.text(forks.run(*words, "--admin-url", box.web_url))


@pytest.fixture
def client(box: Running) -> Iterator[Any]:
    opened = connect(box.url)
    yield opened
    opened.close()


@pytest.fixture
def fresh() -> Callable[[str], str]:
    """Return unique topic names."""
    run, numbers = uuid.uuid4().hex[:8], itertools.count()

    def name(word: str) -> str:
        return f"persistent://public/default/{word}-{run}-{next(numbers)}"

    return name


@pytest.fixture
def topic(fresh: Callable[[str], str]) -> str:
    return fresh("topic")


@pytest.fixture
def space(box: Running, fresh: Callable[[str], str]) -> str:
    """Return a namespace of the test's own."""
    name = "public/" + fresh("space").rpartition("/")[2]
    box.admin("PUT", f"namespaces/{name}")
    return name


@pytest.fixture(scope="module")
def go(box: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoAdmin]:
    """Return the Admin API's Go client."""
    try:
        opened = GoAdmin(box.web_url, tmp_path_factory.mktemp("go"))
    except GoError as error:
        if "not installed" in str(error):
            pytest.skip(str(error))
        raise
    yield opened
    opened.close()
