"""Lookup of the volumes that contain a ledger's entries."""

import pytest

from pulsarbox.storage.engine import LedgerVolumes

PLACES = LedgerVolumes("id", {7: ((10, 20, "packed/1"), (20, 30, "volumes/2"), (40, 50, "volumes/3"))}, ("volumes/9",))


@pytest.mark.parametrize(
    ("first", "end", "sealed", "complete"),
    [
        (10, 20, ["packed/1"], True),
        (12, 13, ["packed/1"], True),
        (19, 21, ["packed/1", "volumes/2"], True),
        (10, 30, ["packed/1", "volumes/2"], True),
        (9, 11, ["packed/1"], False),
        (20, 41, ["volumes/2", "volumes/3"], False),
        (49, 51, ["volumes/3"], False),
        (30, 40, [], False),
        (50, 60, [], False),
    ],
)
def test_unsealed_volumes_may_hold_what_sealed_ones_do_not(
    first: int, end: int, sealed: list[str], complete: bool
) -> None:
    assert PLACES.of(7, first, end) == sealed + ([] if complete else ["volumes/9"])


def test_an_unknown_ledger_is_in_unsealed_volumes() -> None:
    assert PLACES.of(8, 0, 1) == ["volumes/9"]
