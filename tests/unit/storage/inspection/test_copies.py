"""Entries of several data directories: counted once, by their copies, and those that none has."""

from pulsarbox.storage.inspection.copies import DirectoryRuns, logical_size, lost_entries


def directory(expected: dict[int, int], *runs: tuple[int, int, int, int]) -> DirectoryRuns:
    """A directory with runs: ledger, first entry, entries, bytes."""
    made = DirectoryRuns()
    for ledger, entries in expected.items():
        made.take(["ledger", ledger, entries])
    for run in runs:
        made.take(["run", *run])
    made.take(["at", "meta", 0])
    return made


def test_entries_are_counted_once_and_by_their_copies() -> None:
    one = directory({1: 100, 2: -1}, (1, 0, 60, 600), (2, 0, 5, 50))
    two = directory({1: 100, 2: -1}, (1, 40, 60, 600), (2, 0, 5, 50))
    three = directory({1: 100}, (1, 50, 10, 100), (9, 0, 7, 7))  # ledger 9 is deleted
    size = logical_size([one, two, three])
    assert (size.entries, size.bytes) == (105, 1050)
    assert size.copies == {1: 80, 2: 15, 3: 10}
    assert logical_size([]) == (0, 0, {})


def test_an_entry_that_one_directory_has_twice_is_one_copy() -> None:
    packing = directory({1: 10}, (1, 0, 10, 100), (1, 0, 6, 60))
    assert logical_size([packing]) == (10, 100, {1: 10})


def test_entries_that_no_directory_has_are_lost() -> None:
    one = directory({1: 100, 2: -1, 3: 0}, (1, 0, 60, 600))
    two = directory({1: -1}, (1, 70, 20, 200))
    assert [(each.where, each.severity) for each in lost_entries([one, two])] == [
        ("ledger 1, entries 60 to 69", "damage"),
        ("ledger 1, entries 90 to 99", "damage"),
    ]
