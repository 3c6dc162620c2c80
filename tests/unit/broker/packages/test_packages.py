"""Packages survive restarts, crashes at any point, backups and space reclamation, or leave nothing behind."""

from pathlib import Path

import pytest

from pulsarbox.broker.packages import packages
from pulsarbox.broker.packages.package_name import PackageName
from pulsarbox.errors import NotFound, PersistenceError, PreconditionFailed, ServiceNotReady
from pulsarbox.storage.backup.creation import Plan, create
from pulsarbox.storage.backup.pace import CopyPace
from pulsarbox.storage.backup.repository import Repository
from pulsarbox.storage.backup.restoring import restore
from pulsarbox.storage.backup.verification import verify
from pulsarbox.storage.catalog import PACKAGE_DATA, PACKAGES
from pulsarbox.storage.engine import ReadRequest
from pulsarbox.storage.inspection.check import check
from pulsarbox.storage.inspection.dump import records_of
from pulsarbox.storage.inspection.statistics import statistics
from tests import forks
from tests.unit.broker.packages.storing import NAME, PIECES, Storing, content, store
from tests.unit.broker.playbook import Box
from tests.unit.storage.inspection.test_transactions import DirectoryBox

OTHER = NAME._replace(name="b")
WHOLE = b"".join(PIECES)


def keys(box: Box) -> list[str]:
    return list(box.broker.catalog.keys("package"))


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_package_survives_a_restart(checkpoint: bool) -> None:
    box = Box()
    store(box)
    if checkpoint:
        box.broker.commits.ask_checkpoint()
        box.turn()
    again = box.restart()
    assert content(again) == WHOLE
    assert again.broker.packages.total == len(WHOLE)
    assert keys(again) == keys(box)


@pytest.mark.parametrize("commits", range(len(PIECES) + 3))
@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_crash_at_any_commit_leaves_the_whole_package_or_nothing(commits: int, checkpoint: bool) -> None:
    box = Box(auto=False)
    while box.commit() or box.chore():
        pass
    storing = Storing(box)
    ledger = storing.upload.ledger_id
    whole = False
    for _ in range(commits):
        over = storing.upload.over  # its rows are in the next batch
        whole = (box.commit() and over) or whole
        if checkpoint:
            box.broker.commits.ask_checkpoint()
            box.chore()
    again = box.restart()
    assert content_or_nothing(again) == (WHOLE if whole else None)
    again.advance(5)
    if content_or_nothing(again) is None:
        assert PACKAGE_DATA not in "".join(keys(again))
        assert again.broker.packages.total == 0
        with pytest.raises(PersistenceError):
            again.engine.read(ReadRequest(1, ledger, 0, 0, 1))
        store(again)
    assert content(again) == WHOLE


def content_or_nothing(box: Box) -> bytes | None:
    try:
        return content(box)
    except NotFound:
        return None


def test_deleted_content_is_reclaimed() -> None:
    box = Box()
    store(box)
    ledger = int(next(box.broker.catalog.keys(PACKAGE_DATA)).removeprefix(PACKAGE_DATA), 16)
    box.broker.packages.delete(NAME, box.now)
    box.advance(5)
    assert keys(box) == [PACKAGES]
    with pytest.raises(PersistenceError):
        box.engine.read(ReadRequest(1, ledger, 0, 0, 1))
    again = box.restart()
    assert keys(again) == [PACKAGES]


def test_a_failed_commit_cancels_the_upload_and_nothing_else() -> None:
    box = Box()
    store(box, OTHER)
    box.auto = False
    storing = Storing(box)
    box.commit()
    box.commit(PersistenceError("the disk is gone"))
    assert "the disk is gone" in str(storing.error)
    box.auto = True
    box.advance(1)
    assert content(box, OTHER) == WHOLE
    assert len(keys(box)) == 3
    store(box)
    again = box.restart()
    assert content(again) == content(again, OTHER) == WHOLE


def test_the_number_of_packages_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "PACKAGES_MAX", 1)
    box = Box()
    store(box)
    with pytest.raises(ServiceNotReady, match="1 packages, the maximum"):
        Storing(box, OTHER)


def test_lists_go_on_from_page_to_page() -> None:
    box = Box()
    for number in range(1200):
        box.broker.packages.begin_upload(NAME._replace(version=f"{number:04}")).finish({}, box.now)
    box.turn()
    assert list(box.broker.packages.versions(NAME)) == [f"{number:04}" for number in range(1200)]
    assert set(box.broker.packages.names("public/default", "function")) == {"a"}
    assert list(box.broker.packages.names("public/default", "sink")) == []
    assert len(list(box.broker.packages.keys_of("public/default"))) == 1200


@pytest.mark.parametrize("kind", ["functions", "", "package"])
def test_an_unknown_type(kind: str) -> None:
    with pytest.raises(PreconditionFailed, match="Invalid package domain"):
        PackageName.of(kind, "public", "default", "a")


def test_packages_on_disk_are_backed_up_checked_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forks.children(monkeypatch)
    box = DirectoryBox(tmp_path / "box")
    store(box)
    store(box, OTHER)
    box.checkpoint()
    box.broker.packages.delete(OTHER, box.now)
    store(box, OTHER._replace(version="2"))
    box.auto = False
    Storing(box, NAME._replace(version="3"))
    box.commit()
    box.close()
    create(tmp_path / "box", tmp_path / "backups", Plan(), lambda *_: None)
    report = verify(Repository(tmp_path / "backups"), (), CopyPace(0, lambda *_: None))
    assert (len(report.backups), report.findings) == (1, ())
    restore(Repository(tmp_path / "backups"), None, tmp_path / "new", CopyPace(0, lambda *_: None))
    assert [finding.what for finding in check(tmp_path / "new").findings] == []
    totals = statistics(tmp_path / "new", 10)["totals"]
    assert totals["packages"] == 2
    assert totals["package_bytes"] > 2 * len(WHOLE)
    entries = [each for each in records_of(tmp_path / "new", {}, print) if each["kind"] == "entry"]
    assert {str(NAME), str(OTHER._replace(version="2"))} <= {each["topic"] for each in entries}
    again = DirectoryBox(tmp_path / "new")
    assert content(again) == content(again, OTHER._replace(version="2")) == WHOLE
    assert content_or_nothing_of(again, OTHER) is None
    again.close()


def content_or_nothing_of(box: Box, name: PackageName) -> bytes | None:
    try:
        return content(box, name)
    except NotFound:
        return None
