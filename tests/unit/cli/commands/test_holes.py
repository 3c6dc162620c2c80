"""Acknowledgement holes computed from statistics, compared with counting one by one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.cli.commands.holes import holes_of


def internal(ledgers: list[int], mark: str, ranges: str, total: int | None = None) -> dict[str, Any]:
    found = ranges.count("..")
    return {
        "ledgers": [{"ledgerId": 10 * i, "entries": n if i < len(ledgers) - 1 else 0} for i, n in enumerate(ledgers)],
        "currentLedgerEntries": ledgers[-1],
        "cursors": {
            "s": {
                "markDeletePosition": mark,
                "individuallyDeletedMessages": ranges,
                "totalNonContiguousDeletedMessagesRange": found if total is None else total,
            }
        },
    }


@given(ledgers=st.lists(st.integers(1, 8), min_size=1, max_size=4), acked=st.sets(st.integers(0, 31)))
def test_holes_are_what_counting_finds(ledgers: list[int], acked: set[int]) -> None:
    positions = [(10 * i, entry) for i, count in enumerate(ledgers) for entry in range(count)]
    gone = {positions[i] for i in acked if i < len(positions)}
    mark = (0, -1)
    for at in positions:
        if at not in gone:
            break
        mark = at
    beyond = sorted(at for at in gone if at > mark)
    ranges: list[list[tuple[int, int]]] = []
    for at in beyond:
        if ranges and ranges[-1][1] == (at[0], at[1] - 1):
            ranges[-1][1] = at
        else:
            ranges.append([at, at])
    text = ",".join(f"({a[0]}:{a[1] - 1}..{b[0]}:{b[1]}]" for a, b in ranges)
    found = holes_of(internal(ledgers, f"{mark[0]}:{mark[1]}", f"[{text}]"), "s")
    expected = [at for at in positions if at not in gone and beyond and at < beyond[-1]]
    shown = [
        at
        for hole in found
        for at in positions
        if tuple(map(int, hole["first"].split(":"))) <= at <= tuple(map(int, hole["last"].split(":")))
    ]
    assert shown == expected
    assert sum(hole["entries"] for hole in found) == len(expected)


def test_more_ranges_than_a_broker_tells_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert holes_of(internal([9], "0:0", "[(0:3..0:4]]", total=1_234_567), "s") == [
        {"first": "0:1", "last": "0:3", "entries": 3}
    ]
    assert "1,234,567 acknowledged ranges, and the broker reports only 1" in capsys.readouterr().err


def test_no_ranges_no_holes() -> None:
    assert holes_of(internal([9], "0:3", "[]"), "s") == []
