"""The box of the session for all tests that can share one, a client for each test, and names that nobody else uses.

The box is the pytest plugin's own. Tests of the command's process have ``own_box``.

To hold the tests themselves against a real Pulsar: ``E2E_URL`` and ``E2E_WEB_URL`` name one that runs already (what
starts, stops or kills a box is skipped then), ``E2E_START_CMD`` a command that starts one (see tests/tools/box.py).
"""

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
from tests.e2e.clients import connect
from tests.e2e.go_admin import GoAdmin
from tests.tools import forks
from tests.tools.box import PULSARBOX, Box, admin
from tests.tools.go import GoError

START_CMD = os.environ.get("E2E_START_CMD", PULSARBOX)


@pytest.fixture(scope="session", autouse=True)
def embedded_boxes_are_forks() -> Iterator[None]:
    """Those that are a process: most of the processor time of a short life is the loading of modules."""
    with pytest.MonkeyPatch.context() as patch:
        forks.boxes(patch)
        yield


@dataclass(frozen=True)
class Running:
    """Where a broker is served."""

    url: str
    web_url: str
    is_ours: bool = True
    """A box, not another broker that the tests are held against."""

    def admin(self, method: str, path: str, body: str | None = None) -> str:
        return admin(self.web_url, method, path, body)


@pytest.fixture(scope="module")
def box(request: pytest.FixtureRequest) -> Iterator[Running]:
    """A broker for the tests of one module: the box of the session (tool.pytest says which kind), or another one."""
    if "E2E_URL" in os.environ:
        yield Running(os.environ["E2E_URL"], os.environ["E2E_WEB_URL"], is_ours=False)
        return
    if "E2E_START_CMD" not in os.environ:
        shared: PulsarBox = request.getfixturevalue("pulsarbox")
        yield Running(shared.service_url, shared.admin_url)
        return
    own = Box(request.getfixturevalue("tmp_path_factory").mktemp("box") / "data", START_CMD)
    own.start()
    try:
        yield Running(own.url, own.web_url, is_ours=False)
        assert own.stop() == 0
    finally:
        own.kill()


@pytest.fixture
def own_box(tmp_path: Path) -> Iterator[Box]:
    """A box for one test, not started yet."""
    if "E2E_URL" in os.environ:
        pytest.skip("starts boxes of its own")
    own = Box(tmp_path / "data", START_CMD)
    try:
        yield own
    finally:
        own.kill()


@pytest.fixture
def run(box: Running) -> "Callable[..., subprocess.CompletedProcess[str]]":
    """Runs a command of the Admin API against the box of the session, without a terminal."""
    return lambda *words: forks.text(forks.run(*words, "--admin-url", box.web_url))


@pytest.fixture
def client(box: Running) -> Iterator[Any]:
    opened = connect(box.url)
    yield opened
    opened.close()


@pytest.fixture
def fresh() -> Callable[[str], str]:
    """Makes topic names that are used once."""
    run, numbers = uuid.uuid4().hex[:8], itertools.count()

    def name(word: str) -> str:
        return f"persistent://public/default/{word}-{run}-{next(numbers)}"

    return name


@pytest.fixture
def topic(fresh: Callable[[str], str]) -> str:
    return fresh("topic")


@pytest.fixture
def space(box: Running, fresh: Callable[[str], str]) -> str:
    """A namespace of the test's own."""
    name = "public/" + fresh("space").rpartition("/")[2]
    box.admin("PUT", f"namespaces/{name}")
    return name


@pytest.fixture(scope="module")
def go(box: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoAdmin]:
    """The Admin API's client in Go."""
    try:
        opened = GoAdmin(box.web_url, tmp_path_factory.mktemp("go"))
    except GoError as error:
        if "not installed" in str(error):
            pytest.skip(str(error))
        raise
    yield opened
    opened.close()
