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
    found = [BoxFinding("stuck", WARN, TEXTS[at % len(TEXTS)], "quotas") for at in range(count)]
    return drawn_of(found, size, is_focused=is_focused)


def drawn_of(found: Sequence[BoxFinding], size: Size, *, is_focused: bool, at: int = 0) -> list[str]:
    """The lines of a list with these findings and the cursor at one of them."""
    listed = DiagnosisList()
    listed.found, listed._at = found, at
    with (
        patch.object(DiagnosisList, "size", size),
        patch.object(DiagnosisList, "has_focus", is_focused),
        patch.object(DiagnosisList, "look", lambda self, name: Style()),
        patch.object(DiagnosisList, "kept_on", lambda self, name, ground: Style()),
    ):
        return [listed.render_line(y).text for y in range(size.height)]


def without_hints(lines: Sequence[str]) -> str:
    """The text of the findings."""
    return " ".join(re.sub(r" (enter  )?(\+\d+ more|enter) $", "", line)[3:].strip() for line in lines)


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
        patch.object(DiagnosisList, "kept_on", lambda self, name, ground: Style()),
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


def test_a_text_that_fits_is_whole_whatever_has_the_focus() -> None:
    name = "customer-orders-of-the-european-region-by-week"
    row = {"topic": f"persistent://public/default/{name}"}
    found = [BoxFinding("stuck", WARN, f"{name}/billing is stuck: no consumer", "quotas", row) for _ in range(3)]
    width = len(found[0].text) + 3
    for is_focused in (False, True):
        lines = drawn_of(found, Size(width, 3), is_focused=is_focused)
        assert [line[3:] for line in lines] == [each.text for each in found]
    assert drawn_of(found, Size(width + 7, 3), is_focused=True)[0].endswith("consumer enter ")


@pytest.mark.parametrize("height", [1, 2, 3])
def test_the_last_line_has_both_its_hint_and_the_number_of_further_findings(height: int) -> None:
    found = [BoxFinding("stuck", WARN, f"orders-{at}/billing is stuck", "quotas") for at in range(12)]
    lines = drawn_of(found, Size(60, height), is_focused=True, at=height - 1)
    assert lines[-1].endswith(f" enter  +{12 - height} more ")
    assert not any("more" in line for line in lines[:-1])
    (line,) = drawn_of(found, Size(40, 1), is_focused=True)
    assert line.startswith(" ▲ orders-0/billing is stuck") and line.endswith(" +11 more ")


def test_a_name_with_hyphens_is_not_broken_at_them() -> None:
    text = "Dead letters are lost: customer-orders-billing-DLQ has no subscription and receives 0.4/s"
    for width in range(40, 90):
        lines = drawn_of([BoxFinding("stuck", WARN, text, "quotas")], Size(width, 3), is_focused=False)
        assert any("customer-orders-billing-DLQ" in line for line in lines)
