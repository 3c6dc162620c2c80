"""Any history of commits, failing disks and crashes keeps confirmed batches, and rejected ones stay rejected."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.campaigns import examples
from tests.unit.storage.ensemble.history import History

ASKED = ((1, 1, 1), (2, 2, 2), (2, 2, 1), (3, 2, 2), (3, 3, 2), (3, 3, 3))
FAULTS = ("", "", "commit", "full", "late", "all", "write_membership", "checkpoint", "erase_from")


@settings(max_examples=examples(100))
@given(data=st.data())
def test_what_is_confirmed_stays_and_what_is_rejected_does_not_come_back(data: st.DataObject) -> None:
    history = History(data.draw(st.integers(2, 4)))
    count = len(history.disks)
    assert history.start()
    for _ in range(data.draw(st.integers(1, 25))):
        what = data.draw(st.integers(0, 11))
        disk = history.disks[data.draw(st.integers(0, count - 1))]
        if what == 0:
            history.refusing[disk.name] = data.draw(st.sampled_from(FAULTS))
        elif what == 1:
            history.crash_after = data.draw(st.integers(0, 12))
        elif what == 2:
            disk.present = not disk.present
        elif what == 3 and history.engine is not None:
            history.checkpoint()
        elif what == 4:
            history.crash()
        elif history.engine is not None:
            history.commit(data.draw(st.sampled_from(ASKED)), data.draw(st.integers(1, 3)))
        if history.engine is None:
            restart(history, healthy=data.draw(st.booleans()))
    history.crash()
    restart(history, healthy=True)
    history.read_all()


@settings(max_examples=examples(100))
@given(data=st.data())
def test_a_start_without_a_directory_has_all_confirmed_batches_or_is_refused(data: st.DataObject) -> None:
    history = History(3)
    assert history.start()
    for _ in range(data.draw(st.integers(1, 15))):
        what = data.draw(st.integers(0, 7))
        disk = history.disks[data.draw(st.integers(0, 2))]
        if what == 0:
            disk.present = not disk.present
        elif what == 1 and not history.lost:
            history.wipe(disk)
        elif what == 2:
            history.crash_after = data.draw(st.integers(0, 12))
        elif what == 3:
            history.crash()
        elif history.engine is not None:
            history.commit(data.draw(st.sampled_from(ASKED)), data.draw(st.integers(1, 3)))
        if history.engine is None:
            history.crash_after = -1
            if not history.start():
                go_on_without(history)


def go_on_without(history: History) -> None:
    """Start with all disks, and if contents were lost, accept that."""
    for disk in history.disks:
        disk.present = True
    assert history.start() or (history.lost and history.start(tuple(history.lost)))


def restart(history: History, *, healthy: bool) -> None:
    """Start again; if that is refused, with all disks."""
    history.crash_after = -1
    history.refusing = {}
    if not healthy and history.start():
        return
    for disk in history.disks:
        disk.present = True
    assert history.start()
