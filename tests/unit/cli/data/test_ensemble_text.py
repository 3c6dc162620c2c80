"""The data directories of a box in one line."""

from pulsarbox.cli.data.ensemble_text import instant, summary
from pulsarbox.storage.ensemble.status import Fragment
from tests.unit.cli.data.test_ensemble import document
from tests.unit.storage.ensemble.fake import LOST, SINCE, member, status


def test_a_healthy_box() -> None:
    assert summary(document(status())) == "3 data directories: 3 active"


def test_a_lost_directory_and_the_repair() -> None:
    wanted = (
        "3 data directories: 2 active, 1 lost (/disk2: input/output error since 22:26 UTC); 1,204 entries lack a copy,"
        " repair 34 %"
    )
    assert summary(document(LOST, entries=1204, most=1825)) == wanted


def test_entries_without_a_copy() -> None:
    lost = status(member("/a"), member("/b", state="joining"), fragments=[Fragment(1, 4, 5, (), 2)])
    wanted = "2 data directories: 1 active, 1 joining (/b since 22:26 UTC); 1 entry lacks a copy, 1 of them have no"
    assert summary(document(lost)).startswith(wanted)


def test_times_of_other_days_have_the_day() -> None:
    assert instant(SINCE, SINCE) == "22:26 UTC"
    assert instant(SINCE, SINCE + 86_400_000) == "2026-11-21 22:26 UTC"
