"""Order of the tests, and their groups."""

from collections import Counter
from pathlib import Path

import pytest

from tests.workers.dealing import DEAR_SECONDS, SPARK, dealt, group_of, read, taken

ITEMS = [f"{name}{number}" for name in "abcdefgh" for number in range(5)]


def group(item: str) -> str:
    return item[0]


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 7])
def test_each_item_is_dealt_once_and_groups_that_are_dear_stay_together(workers: int) -> None:
    order = dealt(ITEMS, workers, group, {"c": 9.0, "f": 4.0, "x": 70.0})
    assert Counter(order) == Counter(ITEMS)
    for name in "cf":
        at = order.index(f"{name}0")
        assert order[at : at + 5] == [f"{name}{number}" for number in range(5)]


def test_every_part_begins_with_what_takes_long() -> None:
    order = dealt(ITEMS, 3, group, {"b": 3.0, "d": 9.0, "h": 4.0, "g": 2.0})
    first, second, third = order[:13], order[13:26], order[26:]
    assert [item[0] for item in first[:5]] == ["d"] * 5
    assert [item[0] for item in second[:5]] == ["h"] * 5
    assert [item[0] for item in third[:10]] == ["b"] * 5 + ["g"] * 5
    assert [item for item in order if item[0] in "acef"] == [item for item in ITEMS if item[0] in "acef"]


def test_more_that_is_dear_than_a_part_holds_loses_nothing() -> None:
    assert Counter(dealt(ITEMS, 7, group, {"a": 9.0, "b": 9.0})) == Counter(ITEMS)
    assert dealt([], 3, group, {"a": 9.0}) == []


def test_what_the_table_names_is_there() -> None:
    root = Path(__file__).parents[2]
    missing = [name for name in read() if not list(root.glob(name.replace(".", "/") + "*"))]
    assert missing == [], "python -m tests.workers.dealing writes the table anew"


def test_a_report_says_what_was_dear(tmp_path: Path) -> None:
    case = '<testcase classname="{}" time="{}"/>'.format
    cases = [case("tests.e2e.spark.test_batch", 2), case(f"{SPARK}.test_sink", 2), case("tests.unit.test_a.TestIt", 5)]
    (tmp_path / "times.xml").write_text(f"<a>{''.join(cases)}{case('tests.unit.test_b', DEAR_SECONDS / 2)}</a>")
    assert taken(tmp_path / "times.xml") == {"tests.unit.test_a": 5.0, SPARK: 4.0}
    assert group_of("tests.e2e.test_a") == "tests.e2e.test_a"
