"""The panels above the table of the storage screen."""

from itertools import product
from typing import Any

import pytest
from textual.widgets import Static

from pulsarbox.tui.screens import storage
from pulsarbox.tui.screens.storage import divided, facts
from tests.unit.tui.driving import WIDE, dashboard


def test_numbers_of_the_store_stand_beside_each_other_where_there_is_room() -> None:
    totals: dict[str, Any] = {"mapSize": 1 << 30, "oldestReader": None, "fsyncP99": 8.4, "ratio": 2.61, "freePages": 7}
    lines = facts(totals, 200).split("\n")
    assert len(lines) == 1 and "map size" in lines[0] and "1.00 GiB" in lines[0] and "8.4 ms" in lines[0]
    assert len(facts(totals, 40).split("\n")) == 5
    assert facts(totals | {"diskFree": 1 << 30}, 40, 1) == "disk free  1.00 GiB", "the most important one remains"


@pytest.mark.parametrize("room", range(-3, 40))
def test_panels_of_the_store_leave_the_table_its_lines(room: int) -> None:
    for wanted in product((0, 3, 10), (0, 4), (0, 9, 30)):
        given = divided(room, *wanted)
        assert sum(lines + 1 for lines in given if lines) <= max(room, 0)
        assert all(0 <= lines <= most for lines, most in zip(given, wanted, strict=True))
        assert given.directories == max(min(wanted[2], room - 1), 0), "directories come first"
        assert given.space in (0, wanted[1]) and (given.facts or not given.space or not wanted[0])


async def test_panels_are_laid_out_only_for_new_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    async with dashboard(size=WIDE, place="storage") as driver:
        await driver.until(lambda: "disk free" in driver.text() and "█ live" in driver.text())
        screen, updated, computed, update = driver.screen, list[str | None](), list[int](), Static.update

        def counted(self: Static, text: Any) -> None:
            updated.append(self.id)
            update(self, text)

        def counted_facts(*given: Any) -> str:
            computed.append(len(given))
            return facts(*given)

        monkeypatch.setattr(Static, "update", counted)
        monkeypatch.setattr(storage, "facts", counted_facts)
        screen._draw()
        assert not updated and computed == [2], "the numbers fit, so they are not computed again for fewer lines"
        rows, *others = screen._shown
        screen._shown = rows._replace(totals=rows.totals | {"diskFree": 1}), *others
        screen._draw()
        assert updated == ["facts"]
