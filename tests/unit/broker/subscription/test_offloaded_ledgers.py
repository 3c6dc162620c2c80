"""Offloaded ledgers as the subscription of an offload reports them: in memory, unloaded, and after a restart."""

from typing import Any

import pytest

from pulsarbox.broker.subscription.offloaded_ledgers import LedgerRange, is_offloaded, range_of
from pulsarbox.names import OFFLOADED_PROPERTY

NAME = "pulsarbox-offload-12ab34cd"


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        (NAME, "12-345", LedgerRange(12, 345)),
        ("billing", "12-345", None),
        (NAME, "", None),
        (NAME, "12", None),
        (NAME, "-1-5", None),
        (NAME, "1-" + "9" * 30, None),
        (NAME, "a-b\n", None),
    ],
)
def test_only_the_subscription_of_an_offload_reports_them(name: str, value: str, found: Any) -> None:
    assert range_of(name, {OFFLOADED_PROPERTY: value}) == found
    assert range_of(name, {}) is None


def test_both_ends_are_offloaded() -> None:
    ranges = [LedgerRange(3, 5), LedgerRange(9, 9)]
    assert [number for number in range(12) if is_offloaded(number, ranges)] == [3, 4, 5, 9]
    assert not is_offloaded(3, [])
