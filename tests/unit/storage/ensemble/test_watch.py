"""Events and progress of an ensemble, and the map of its copies."""

from pulsarbox.storage.ensemble.status import Fragment, MemberEvent
from pulsarbox.storage.ensemble.watch import CopyProgress, WatchedEnsemble, copy_map
from tests.unit.storage.ensemble.fake import LOST, FakeEnsemble, member, status


def test_changes_are_handed_over_once_and_in_order() -> None:
    fake = FakeEnsemble()
    watched = WatchedEnsemble(fake)
    first, second = MemberEvent("member-lost", "/disk2", "gone"), MemberEvent("member-joined", "/disk2", "back")
    fake.on_change(first)
    fake.on_change(second)
    assert watched.look(1000) == [first, second]
    assert watched.look(2000) == []


def test_the_progress_of_a_repair() -> None:
    fake = FakeEnsemble(LOST)
    watched = WatchedEnsemble(fake)
    (event,) = watched.look(1000)
    assert event == MemberEvent("under-replicated", "", "1,204 entries of 2 ledgers lack a copy")
    assert watched.progress == CopyProgress(1000, 1204, 1204)
    fake.now = LOST._replace(
        under_replicated=LOST.under_replicated[:1],
        under_replicated_count=1,
        repair=LOST.repair._replace(entries_left=301),
    )
    assert watched.look(2000) == []
    assert (watched.progress.since, watched.progress.percent) == (1000, 75)
    fake.now = status()
    (event,) = watched.look(61_000)
    assert event.kind == "copies-restored"
    assert "after 60 s" in event.text
    assert (watched.progress, watched.progress.percent) == (CopyProgress(0, 0, 0), 100)


def test_entries_without_any_copy_are_told_apart() -> None:
    watched = WatchedEnsemble(
        FakeEnsemble(status(fragments=[Fragment(7, 0, 5, (), 2), Fragment(7, 5, 10, ("/a",), 2)]))
    )
    assert watched.look(1)[0].text == "10 entries of 1 ledgers lack a copy, 5 of them have none left"


def test_the_map_has_a_letter_per_ledger_and_directory() -> None:
    held = {"/disk1": [7, 8], "/disk3": [8, 9]}
    found = copy_map(LOST, held, 100, lambda ledger: False)
    assert found.firsts == (7, 8, 9)
    assert found.rows == {"/disk1": "KKC", "/disk2": "L.L", "/disk3": "CKK"}


def test_cells_of_a_map_hold_several_ledgers_and_show_the_worst() -> None:
    lost = status(member("/a"), member("/b"), fragments=[Fragment(3, 0, 1, (), 2)])
    found = copy_map(lost, {"/a": list(range(10)), "/b": []}, 2, lambda ledger: False)
    assert found.firsts == (0, 5)
    assert found.rows == {"/a": "DK", "/b": "D."}
    assert copy_map(status(), {}, 10, lambda ledger: False).rows == {"/disk1": "", "/disk2": "", "/disk3": ""}
