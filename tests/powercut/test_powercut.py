"""A short campaign, and proof that a faulty disk is detected. The long one is `make powercut N=500`."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pulsarbox.broker.compaction.latest_by_key import LatestByKey
from pulsarbox.storage.compacted_ledger import CompactedView
from tests.powercut.check import DATA, Violation
from tests.powercut.core_check import CoreChecked, CoreStory
from tests.powercut.core_workload import CoreWorkload
from tests.powercut.images import MUTANTS
from tests.powercut.marks import Marker
from tests.powercut.record import RecorderError, compile_recorder
from tests.powercut.recording import CORE, ENGINE, ENSEMBLE
from tests.powercut.run import powercut
from tests.tools.campaigns import short

IMAGES = 40


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    try:
        compile_recorder(tmp_path)
    except RecorderError as error:
        if "no C compiler" in str(error):
            pytest.skip(str(error))
        raise
    return tmp_path


@pytest.mark.parametrize(
    ("level", "images"), short([(CORE, 4), (ENSEMBLE, 4), (ENGINE, IMAGES), (CORE, IMAGES), (ENSEMBLE, IMAGES)], 2)
)
def test_what_was_acknowledged_survives_a_power_cut(folder: Path, level: str, images: int) -> None:
    run = powercut(folder, images, seed=7, levels=[level])
    assert [finding.verdict for finding in run.findings] == []
    assert run.counts["images"] == images
    assert run.counts["boundaries opened"] > 0
    assert run.counts["DURABLE"] > 0
    assert run.counts["compressed"] > 0 or level != ENGINE
    assert run.counts["compactions"] > 0 or level != CORE
    assert run.counts["audited"] > 0 or level != ENSEMBLE


@pytest.mark.parametrize("mutant", short(sorted(MUTANTS), 1))
def test_a_disk_that_lies_is_noticed(folder: Path, mutant: str) -> None:
    run = powercut(folder, IMAGES, seed=7, mutant=mutant, levels=[ENGINE], violations_max=1)
    assert run.findings
    assert all(finding.kept.is_dir() for finding in run.findings)


@pytest.mark.campaign
def test_a_client_notices_what_is_gone(folder: Path) -> None:
    """Most images of a disk that loses metadata syncs cannot be opened; some can, but have lost receipted messages."""
    run = powercut(folder, IMAGES, seed=8, mutant="meta-sync-lost", levels=[CORE], violations_max=IMAGES)
    assert any("was receipted and is gone" in finding.verdict for finding in run.findings)


@pytest.mark.campaign
def test_a_seed_always_has_the_same_findings(folder: Path) -> None:
    """Findings do not depend on the order in which worker processes finish."""
    found = []
    for name in ("first", "second"):
        (folder / name).mkdir()
        run = powercut(folder / name, 24, seed=9, mutant="meta-sync-lost", levels=[CORE], violations_max=2)
        found.append([finding.image for finding in run.findings])
    assert len(found[0]) == 2 and found[0] == found[1]


class Telling(Marker):
    """Marker that passes marks to a story in this process."""

    def __init__(self, story: CoreStory) -> None:
        self._story = story

    def __call__(self, kind: str, blob: bytes = b"", **facts: Any) -> None:
        """See Marker."""
        self._story.take(json.dumps([kind, facts]).encode() + b"\n" + blob)


def after_steps(folder: Path) -> None:
    """Run some steps of the workload and check the directory, compacted views included. Raises Violation."""
    story = CoreStory()
    CoreWorkload(folder / DATA, 3, Telling(story)).run(60)
    CoreChecked(folder, story, Random(1)).check()


def test_a_view_in_which_the_latest_is_missing_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    after_steps(tmp_path / "right")
    original = LatestByKey._message

    def first_stays(self: LatestByKey, key: bytes, number: int, alive: bool) -> bool:
        return key in self._latest or original(self, key, number, alive)

    monkeypatch.setattr(LatestByKey, "_message", first_stays)
    with pytest.raises(Violation, match="does not know the latest"):
        after_steps(tmp_path / "wrong")


def test_a_view_that_is_half_written_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(ledger_id: int, entries: int, *rest: Any) -> CompactedView:
        return CompactedView(ledger_id, entries // 2, *rest)

    monkeypatch.setattr("pulsarbox.broker.compaction.compaction_run.CompactedView", half)
    with pytest.raises(Violation, match="does not know the latest"):
        after_steps(tmp_path)
