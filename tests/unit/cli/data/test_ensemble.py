"""Commands on the data directories of a running box, over HTTP to a simulated ensemble."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pulsarbox.broker.host import Host
from pulsarbox.cli.data import ensemble_wait
from pulsarbox.cli.main import main
from pulsarbox.errors import PersistenceError
from pulsarbox.storage.ensemble.status import EnsembleStatus, ScrubStatus
from pulsarbox.storage.ensemble.watch import WatchedEnsemble
from tests.unit.server.http.harness import HttpBox
from tests.unit.storage.ensemble.fake import LOST, SINCE, FakeEnsemble, member, status

Command = Callable[..., Awaitable[Result]]


@pytest.fixture
def fake(box: HttpBox, monkeypatch: pytest.MonkeyPatch) -> FakeEnsemble:
    """The ensemble of the box, of which a directory is lost."""
    monkeypatch.setattr(ensemble_wait, "POLL_SECONDS", 0.001)
    fake = FakeEnsemble(LOST)
    box.broker.host = Host(ensemble=WatchedEnsemble(fake))
    return fake


@pytest.fixture
def storage(box: HttpBox) -> Command:
    """Runs `pulsarbox storage` in a thread."""

    async def run(*words: str) -> Result:
        line = ["storage", *words, "--admin-url", f"http://127.0.0.1:{box.port}"]
        return await asyncio.to_thread(CliRunner().invoke, main, line)

    return run


def then(fake: FakeEnsemble, *states: EnsembleStatus) -> None:
    """Change the status with every query, after the first operation."""
    left, usual = list(states), fake.status

    def now() -> EnsembleStatus:
        if fake.called and left:
            fake.now = left.pop(0)
        return usual()

    fake.status = now  # type: ignore[method-assign]


async def test_members(fake: FakeEnsemble, storage: Command) -> None:
    result = await storage("members")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["DIRECTORY", "STATE", "USED", "FREE", "ENTRIES", "WHY"]
    assert lines[2].split() == ["/disk2", "lost", "1.0", "MiB", "0", "B", "3,000", "input/output", "error"]
    assert max(map(len, lines)) <= 80
    rows = json.loads((await storage("members", "-o", "json")).stdout)
    assert (rows[0]["directory"], rows[0]["bytesFree"], rows[1]["why"]) == ("/disk1", 10 << 30, "input/output error")
    assert (await storage("members", "--filter", 'state != "active"', "-o", "name")).stdout == "/disk2\n"


async def test_long_paths_are_cut_on_a_terminal_only(
    fake: FakeEnsemble, storage: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/srv/storage/of/this/machine/disk7"
    fake.now = status(member(path, state="lost", why=f"{path} is no longer there"))
    assert path in (await storage("members")).stdout
    monkeypatch.setattr("pulsarbox.cli.common.output.terminal_width", lambda: 80)
    lines = (await storage("members")).stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "/this/machine/disk7  lost" in lines[1]
    assert (await storage("members", "-o", "name")).stdout == f"{path}\n"


async def test_a_wait_ends_after_its_time(fake: FakeEnsemble, storage: Command) -> None:
    fake.now = LOST
    result = await storage("under-replicated", "--wait-timeout", "0.01")
    assert (result.exit_code, "not done after 0.01 s" in result.stderr) == (1, True)


async def test_force(fake: FakeEnsemble, storage: Command) -> None:
    assert (await storage("replace", "/disk2", "--force")).exit_code == 2
    assert (await storage("replace", "/disk2", "--force", "--yes")).exit_code == 0
    assert (await storage("remove", "/disk3", "--force", "--yes")).exit_code == 0
    assert fake.called == [("replace", "/disk2", "/disk2", "force"), ("remove", "/disk3", "force")]


async def test_a_box_with_one_directory(box: HttpBox, storage: Command) -> None:
    box.broker.host = Host(folder="/data")
    assert (await storage("members")).stdout.splitlines()[1].split()[:2] == ["/data", "active"]
    result = await storage("add", "/disk2")
    assert (result.exit_code, "dataDirectories" in result.stderr) == (4, True)


async def test_entries_that_lack_copies_are_a_finding(fake: FakeEnsemble, storage: Command) -> None:
    result = await storage("under-replicated")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[1].split() == ["7", "0", "999", "/disk1", "2", "-"]
    assert "2 fragments lack copies" in result.stderr
    result = await storage("under-replicated", "--member", "/disk1", "-o", "name")
    assert result.stdout == "9\n"
    fake.now = status()
    assert (await storage("under-replicated", "--wait")).exit_code == 0


async def test_add_waits_until_the_directory_is_in_use(fake: FakeEnsemble, storage: Command) -> None:
    assert (await storage("add", "/disk4")).stdout == "adding /disk4; `pulsarbox storage members` shows the state\n"
    fake.called.clear()
    joining = status(*LOST.members, member("/disk4", state="joining"))
    then(fake, joining, joining, status(*LOST.members, member("/disk4")))
    result = await storage("add", "/disk4", "--wait")
    assert (result.exit_code, result.stdout) == (0, "added /disk4\n")
    assert fake.called == [("add", "/disk4")]


async def test_add_tells_why_a_directory_is_not_used(fake: FakeEnsemble, storage: Command) -> None:
    then(fake, status(member("/disk1"), member("/disk4", state="full", why="no space")))
    result = await storage("add", "/disk4", "--wait")
    assert (result.exit_code, "/disk4 is not in use: full: no space" in result.stderr) == (1, True)
    fake.refusal = PersistenceError("cannot write to /disk5")
    result = await storage("add", "/disk5")
    assert (result.exit_code, "cannot write to /disk5" in result.stderr) == (1, True)


async def test_remove_needs_a_confirmation(fake: FakeEnsemble, storage: Command) -> None:
    result = await storage("remove", "/disk3")
    assert (result.exit_code, "--yes" in result.stderr, fake.called) == (2, True, [])
    then(fake, status(member("/disk1"), member("/disk3", state="leaving")), status(member("/disk1")))
    result = await storage("remove", "/disk3", "--yes", "--wait")
    assert (result.exit_code, result.stdout, fake.called) == (0, "removed /disk3\n", [("remove", "/disk3")])
    assert (await storage("remove", "/disk9", "--yes")).exit_code == 3


async def test_replace(fake: FakeEnsemble, storage: Command) -> None:
    back = status()._replace(audited=SINCE + 1)
    then(fake, LOST._replace(members=back.members), back._replace(audited=SINCE), back)
    result = await storage("replace", "/disk2", "--wait")
    assert (result.exit_code, result.stdout) == (0, "replaced /disk2\n")
    assert (await storage("replace", "/disk1", "/disk4")).exit_code == 2
    result = await storage("replace", "/disk1", "/disk4", "--yes")
    assert "replacing /disk1 by /disk4" in result.stdout
    assert fake.called == [("replace", "/disk2", "/disk2"), ("replace", "/disk1", "/disk4")]


async def test_scrub(fake: FakeEnsemble, storage: Command) -> None:
    fake.now = status(member("/disk1"))
    assert (await storage("scrub", "/disk9")).exit_code == 3
    assert (await storage("scrub")).exit_code == 0
    fake.called.clear()
    then(fake, fake.now, status(member("/disk1", scrub=ScrubStatus(0, 0, 2, SINCE, SINCE + 1))))
    result = await storage("scrub", "/disk1", "--wait")
    assert (result.exit_code, "2 damaged entries" in result.stdout) == (1, True)


def document(now: EnsembleStatus, **progress: Any) -> dict[str, Any]:
    """The JSON of a status."""
    from pulsarbox.server.http.box import ensemble
    from pulsarbox.storage.ensemble.watch import CopyProgress

    found = CopyProgress(progress.get("since", SINCE), progress.get("entries", 0), progress.get("most", 0))
    return ensemble.document(now, found, SINCE + 60_000)
