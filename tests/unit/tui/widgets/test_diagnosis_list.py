"""The list of findings: texts are whole or end with an ellipsis, and nothing touches the hints behind them."""

import re
from collections.abc import Sequence
from unittest.mock import patch

import pytest
from rich.style import Style
from textual.geometry import Size

from pulsarbox.tui.actions.diagnosis import BAD, WARN, BoxFinding
from pulsarbox.tui.widgets.diagnosis_list import DiagnosisList, fitted
from tests.unit.tui.driving import SMALL, dashboard
from tests.unit.tui.legibility import TERMINAL, wearing

TEXTS = (
    "orders/shipping falls behind: 1 consumer takes 20/s of 80/s; at this rate 25 min to the quota",
    "Producers of invoices were throttled for 97% of the last minute: the publish rate is 25.0/s",
    "Messages fail: orders-rejected receives 1.7/s and has 118 dead letters",
)


def drawn(count: int, size: Size, *, is_focused: bool) -> list[str]:
    """The lines of a list with so many findings."""
    listed = DiagnosisList()
    listed.found = [BoxFinding("stuck", WARN, TEXTS[at % len(TEXTS)], "quotas") for at in range(count)]
    with (
        patch.object(DiagnosisList, "size", size),
        patch.object(DiagnosisList, "has_focus", is_focused),
        patch.object(DiagnosisList, "look", lambda self, name: Style()),
    ):
        return [listed.render_line(y).text for y in range(size.height)]


def without_hints(lines: Sequence[str]) -> str:
    """The text of the findings."""
    return " ".join(re.sub(r" (\+\d+ more|enter) $", "", line)[3:].strip() for line in lines)


@pytest.mark.parametrize("is_focused", [True, False])
@pytest.mark.parametrize("count", [1, 2, 12])
def test_texts_are_whole_or_end_with_an_ellipsis_apart_from_the_hint(count: int, is_focused: bool) -> None:
    for width in range(40, 140):
        for height in (1, 2, 3):
            lines = drawn(count, Size(width, height), is_focused=is_focused)
            assert {len(line) for line in lines} == {width}
            assert all(line[at - 1] == " " for line in lines for at in hints(line))
            found = without_hints(lines)
            assert found.startswith(TEXTS[0]) or (TEXTS[0].startswith(found.partition("…")[0].strip()) and "…" in found)
            assert f"+{count - 1} more" in lines[0] or height > 1 or count == 1


def test_long_names_give_way_to_what_is_stated_about_them() -> None:
    topic, subscription = f"tenant/{'department/' * 9}orders", "s" * 99
    row = {"topic": f"persistent://{topic}", "subscription": subscription}
    found = BoxFinding("stuck", WARN, f"{topic}/{subscription} is stuck: no consumer is connected", "", row)
    for room in (80, 120, 200):
        text = fitted(found, room)
        assert len(text) == room and text.endswith(" is stuck: no consumer is connected"), text
        assert text.startswith("tenant/") and "orders/s" in text
    assert fitted(found, 20).endswith(" connected"), "no name is shorter than it can be recognized"
    assert fitted(found, 999) == found.text


def hints(line: str) -> list[int]:
    """Where the hints of a line begin."""
    return [found.start() for found in re.finditer(r"\+\d+ more $|enter $", line)]


@pytest.mark.parametrize("height", [1, 2, 3, 7])
@pytest.mark.parametrize("width", [40, 80, 160])
def test_the_cursor_reaches_every_finding_before_it_leaves(width: int, height: int) -> None:
    listed = DiagnosisList()
    listed.found = [BoxFinding("stuck", WARN, f"{at} {TEXTS[at % len(TEXTS)]}", "quotas") for at in range(12)]
    posted: list[object] = []
    with (
        patch.object(DiagnosisList, "size", Size(width, height)),
        patch.object(DiagnosisList, "has_focus", new=True),
        patch.object(DiagnosisList, "look", lambda self, name: Style()),
        patch.object(DiagnosisList, "refresh"),
        patch.object(DiagnosisList, "post_message", lambda self, message: posted.append(message)),
    ):
        for step in (*[1] * 11, *[-1] * 11):
            listed.action_move(step)
            assert listed.pointed is not None
            number = listed.pointed.text.partition(" ")[0]
            assert any(listed.render_line(y).text[3:].startswith(f"{number} ") for y in range(height))
        assert not any(isinstance(each, DiagnosisList.Left) for each in posted)
        for _ in range(12):
            listed.action_move(1)
    assert isinstance(posted[-1], DiagnosisList.Left)


@pytest.mark.parametrize("theme", ["pulsarbox", *TERMINAL])
async def test_the_lines_of_the_chosen_finding_have_one_background_besides_its_mark(theme: str) -> None:
    async with dashboard(size=SMALL, kept=wearing(theme)) as driver:
        listed = driver.screen.query_one(DiagnosisList)
        listed.found = [BoxFinding("stuck", BAD, " ".join(TEXTS[:2]), "quotas")]
        listed.focus()
        await driver.until(lambda: listed.has_focus)
        first, second = listed.render_line(0), listed.render_line(1)
        assert second.text.strip() and second.text.startswith("   ")
        grounds = [[str(each.style and each.style.bgcolor) for each in line] for line in (first, second)]
        assert set(grounds[1]) == {grounds[0][-1]}
