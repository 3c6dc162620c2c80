"""Directories that were started without each other."""

import pytest

from pulsarbox.storage.ensemble.generations import EnsembleConflict
from pulsarbox.storage.ensemble.memory_member import MemberDisk
from tests.unit.storage.ensemble.test_opening import asking, disks_of, metadata, opened, unplug


def apart(first: int, second: int) -> list[MemberDisk]:
    """Return two directories that were started alone, one after the other, and then stored so many batches."""
    disks = disks_of(2)
    engine, _ = opened(disks)
    engine.commit(asking(1, 2, 2))
    for missing, count in ("b", first), ("a", second):
        unplug(disks, missing)
        engine, _ = opened(disks)
        for position in range(2, 2 + count):
            engine.commit(metadata(position))
    unplug(disks, "")
    return disks


@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 0), (0, 2)])
def test_directories_that_were_started_alone_are_one_again_if_one_has_stored_nothing_since(
    first: int, second: int
) -> None:
    disks = apart(first, second)
    opened(disks)
    engine, batches = opened(disks)
    assert len(batches) == 1 + first + second
    assert {slot.state for slot in engine.table.slots} == {"active"}
    engine.commit(asking(2 + first + second, 2, 2))
    assert disks[0].log[2 + first + second] == disks[1].log[2 + first + second]


def test_directories_that_were_written_separately_are_not_merged() -> None:
    disks = apart(1, 1)
    with pytest.raises(EnsembleConflict, match="a and b were written separately"):
        opened(disks)
    disks[1].wipe()
    engine, batches = opened(disks)
    assert len(batches) == 2
    assert {slot.state for slot in engine.table.slots} == {"active"}


def test_a_directory_without_batches_is_not_dropped_while_another_of_its_members_is_missing() -> None:
    disks = disks_of(4)
    engine, _ = opened(disks)
    engine.commit(asking(1, 4, 3))
    unplug(disks, "cd")
    opened(disks)
    unplug(disks, "ab")
    engine, _ = opened(disks)
    engine.commit(metadata(2))
    unplug(disks, "b")
    with pytest.raises(EnsembleConflict):
        opened(disks)
    unplug(disks, "")
    assert len(opened(disks)[1]) == 2
