"""A short campaign of kills during compaction, and faults that its checker detects: `make crash ARGS="--compact"`."""

import sys
from pathlib import Path

import pytest

from tests.crash.compaction import KEYS, crash, deletes, judge, key_of, twice
from tests.tools.box import PULSARBOX

LAST = 5000
RECEIPTS = {key_of(seq): seq for seq in range(LAST + 1)}
TABLE = [(key, seq) for key, seq in sorted(RECEIPTS.items(), key=lambda each: each[1]) if not deletes(seq)]
FIRST_STAYS = (
    "from pulsarbox.broker.compaction.latest_by_key import LatestByKey\n"
    "right = LatestByKey._message\n"
    "def wrong(self, key, number, alive):\n"
    "    return key in self._latest or right(self, key, number, alive)\n"
    "LatestByKey._message = wrong\n"
    "from pulsarbox.cli.main import main\n"
    "main()"
)


def test_what_is_right_is_right() -> None:
    assert len(TABLE) > KEYS / 2
    assert judge(TABLE, RECEIPTS, LAST) == []
    assert judge([*TABLE, (key_of(LAST), LAST)], {}, LAST) == []


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (TABLE[:-1], "has a receipt"),
        ([*TABLE, (TABLE[-1][0], TABLE[-1][1] - 2 * KEYS)], "has a receipt"),
        ([*TABLE, ("key-0", LAST + 1)], "never sent"),
        ([("another", seq) for _, seq in TABLE], "never sent"),
    ],
)
def test_what_is_wrong_is_noticed(read: list[tuple[str, int]], said: str) -> None:
    assert any(said in text for text in judge(read, RECEIPTS, LAST))


def test_a_key_that_is_there_twice_is_noticed() -> None:
    places = [((1, 0), "a"), ((1, 2), "b"), ((1, 5), "a"), ((2, 0), "b")]
    assert twice(places, (1, 5)) == ["a is there 2 times up to (1, 5)"]


@pytest.mark.timeout(300)
def test_readers_know_the_latest_when_the_box_was_killed_while_it_compacts(tmp_path: Path) -> None:
    run = crash(tmp_path, 2, 3, PULSARBOX, print)
    assert run.violations == []
    assert run.counts["messages read"] > 0


@pytest.mark.campaign
@pytest.mark.timeout(300)
def test_a_box_that_keeps_the_first_is_noticed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FIRST_STAYS, *PULSARBOX[3:]]
    assert any("has a receipt" in text for text in crash(tmp_path, 1, 3, command, print).violations)
