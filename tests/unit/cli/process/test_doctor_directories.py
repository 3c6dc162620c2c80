"""Findings about several data directories."""

from typing import Any

import pytest

from pulsarbox.cli.process.doctor_directories import directory_checks
from pulsarbox.server.http.box import ensemble
from pulsarbox.storage.ensemble.status import EnsembleStatus, Fragment, ScrubStatus
from pulsarbox.storage.ensemble.watch import CopyProgress
from tests.unit.storage.ensemble.fake import LOST, SINCE, member, status

DAY = 86_400_000


def found(now: EnsembleStatus, days: float = 7, later: int = 0) -> list[tuple[str, str, str]]:
    document: dict[str, Any] = ensemble.document(now, CopyProgress(0, 0, 0), SINCE + later)
    return [check[1:] for check in directory_checks(document, days)]


def test_healthy_directories_are_one_line() -> None:
    assert found(status()) == [("ok", "3 data directories, every entry has its copies", "")]


def test_a_lost_directory_and_missing_copies() -> None:
    lost, missing = found(LOST)
    assert lost[:2] == ("fail", "/disk2 is lost: input/output error")
    assert "pulsarbox storage replace /disk2" in lost[2]
    assert missing[:2] == ("warn", "1,204 entries lack a copy, 100 % restored")


@pytest.mark.parametrize("state", ["full", "late", "fenced"])
def test_directories_that_are_not_written(state: str) -> None:
    ((level, text, advice),) = found(status(member("/a"), member("/b", state=state, why="reason")))
    assert (level, text, bool(advice)) == ("warn", f"/b is {state}: reason", True)


def test_a_shared_device_is_named_once() -> None:
    pair = member("/a", shares_device_with=("/b",)), member("/b", shares_device_with=("/a",))
    ((level, text, _),) = found(status(*pair))
    assert (level, text[:28]) == ("warn", "/a, /b are on the same devic")


def test_too_few_directories_for_the_policies() -> None:
    ((level, text, _),) = found(status(member("/a"), member("/b", state="removed"), copies_wanted=2))
    assert (level, text) == ("warn", "policies ask for 2 copies; active data directories: 1")


def test_entries_without_any_copy() -> None:
    ((level, text, _),) = found(status(fragments=[Fragment(1, 4, 9, (), 2)]))
    assert (level, text[:20]) == ("fail", "5 entries have no co")


def test_scrubs() -> None:
    damaged = status(member("/a"), member("/b", scrub=ScrubStatus(0, 0, 3, SINCE, SINCE)))
    assert [text for _, text, _ in found(damaged)] == ["/b: 3 damaged entries were found since the start"]
    assert found(status(), later=14 * DAY - 2000)[0][0] == "ok"
    overdue = found(status(), later=15 * DAY)
    assert overdue[0][1] == "/disk1 was not verified for 15 days, with ensembleScrubDays 7"
    assert found(status(), days=0, later=15 * DAY)[0][0] == "ok"
