"""Huge data from clients is truncated in display and bounded in memory."""

import base64
import json
from typing import Any

import pytest
from textual.widgets import Static, TextArea

from pulsarbox.tui.feed import ShownRow
from pulsarbox.tui.screens.editing import text_of
from pulsarbox.tui.screens.messages.browser import HELD_BYTES, HELD_MAX, surplus
from tests.unit.tui.driving import SMALL, WIDE, dashboard
from tests.unit.tui.fake import FakeBox, dead_letters, message, subscription

HUGE = 1_000_000


def huge_messages() -> list[dict[str, Any]]:
    """Messages of a box with large data: a value with a schema, a key, properties of a million characters, and wide
    ones."""
    line = "x" * HUGE
    return [
        message(300, decoded={"line": line}, size=HUGE),
        message(301, key="鍵" * HUGE),
        message(302, properties={"EXCEPTION": "\x1b" * 1000 + "\u202e" + line, "名" * 300: "値" * HUGE}),
        message(303, payload=base64.b64encode(bytes(range(256)) * 16).decode(), truncated=True, size=40_000_000),
        message(304, decoded=[{"at": number} for number in range(60_000)], size=HUGE),
    ]


@pytest.mark.campaign
async def test_what_is_huge_is_cut_and_says_how_much_of_it_there_is() -> None:
    box = FakeBox()
    box.messages += huge_messages()
    async with dashboard(box, SMALL, place="topics") as driver:
        await driver.press("b")
        await driver.at("Browser")
        told = {}
        for number in (304, 303, 302, 301, 300):
            await driver.until(lambda number=number: f"─ 12:{number} " in driver.text())  # type: ignore[misc]
            told[number] = str(driver.screen.query_one("#message", Static).content)
            assert all(len(line) < 5000 for line in driver.lines())
            await driver.press("k")
        assert all(len(text) < 100_000 for text in told.values())
        assert told[300].endswith("... (of 1,000,000 bytes)") and told[304].endswith("... (of 1,000,000 bytes)")
        assert told[303].endswith("... (of 40,000,000 bytes)") and "00 01 02 03" in told[303]
        assert "(1,000,000 characters)" in told[301] and "(1,004,006 characters)" in told[302]
        assert "\x1b" not in told[302]
        await driver.press("enter")
        await driver.at("MessageViewer")


async def test_a_payload_is_fetched_as_a_whole_to_be_edited() -> None:
    """The message browser has only the beginning of the payload."""
    text = json.dumps({"lines": [f"line {number} of it" for number in range(2000)]})
    box = FakeBox()
    box.rows["deadletters"][:] = [dead_letters(0)]
    box.messages.append(message(250, payload=base64.b64encode(text.encode()).decode(), size=len(text)))
    async with dashboard(box, SMALL, place="deadletters") as driver:
        await driver.press("b")
        await driver.at("Browser")
        await driver.until(lambda: driver.table.pointed is not None and driver.table.pointed["truncated"])
        await driver.press("E")
        await driver.at("Editing", answered=False)
        field = driver.screen.query_one("#payload", TextArea)
        assert field.text == text
        field.text = text.replace("line 1999 of it", "the last")
        await driver.press("ctrl+s")
        await driver.at("OperationDialog", answered=False)
        await driver.until(lambda: "characters: ctrl+y copies it)" in driver.text())
        assert '--payload \'{"lines"' in " ".join(driver.text().split())
        await driver.press("ctrl+s")
        await driver.until(box.changes)
        assert box.changes()[0][2]["edit"] == {"payload": text.replace("line 1999 of it", "the last")}


async def test_what_is_too_large_to_be_edited_stays_as_it_is_and_says_so() -> None:
    box = FakeBox()
    box.rows["deadletters"][:] = [dead_letters(0)]
    payload = base64.b64encode(b"x" * 70_000).decode()
    box.messages.append(message(250, payload=payload, size=70_000, key="k" * HUGE, properties={"p": "x" * HUGE}))
    async with dashboard(box, WIDE, place="deadletters") as driver:
        await driver.press("b")
        await driver.at("Browser")
        await driver.until(lambda: driver.table.pointed is not None and driver.table.pointed["truncated"])
        asked = len(box.asked)
        await driver.press("E")
        await driver.at("Editing", answered=False)
        assert len(box.asked) == asked
        assert "The payload exceeds 65,536 bytes (use dlq replay --payload-file): it cannot be edited" in driver.text()
        assert "1,000,000 characters: too long to edit" in driver.text()
        await driver.press("ctrl+s")
        await driver.until(lambda: "no changes" in driver.text())


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"payload": None, "tombstone": True}, "The payload is null"),
        ({"payload": None, "closed": "its codec is missing"}, "The payload could not be decoded"),
        ({"payload": "aGk=", "encrypted": True}, "The payload is encrypted"),
        ({"payload": "/w=="}, "The payload is not text"),
        ({"payload": "G1tt"}, "The payload has control characters"),
    ],
)
def test_why_a_payload_cannot_be_edited(row: dict[str, Any], why: str) -> None:
    assert text_of(row) == (None, why)


async def test_a_message_that_has_gone_meanwhile_is_not_edited() -> None:
    box = FakeBox()
    box.rows["deadletters"][:] = [dead_letters(0)]
    box.messages.append(message(250, payload=base64.b64encode(b"x" * 5000).decode(), size=5000))
    async with dashboard(box, WIDE, place="deadletters") as driver:
        await driver.press("b")
        await driver.at("Browser")
        await driver.until(lambda: driver.table.pointed is not None and driver.table.pointed["truncated"])
        box.messages[250]["id"] = "13:0"
        await driver.press("E")
        await driver.until(lambda: "message 12:250 no longer exists" in driver.said)


def test_what_is_kept_of_messages_is_bounded_by_what_they_hold() -> None:
    rows = [ShownRow({"id": str(number), "payload": "x" * 1000}) for number in range(HELD_MAX + 500)]
    assert surplus(rows) == 500
    assert surplus(rows[:HELD_MAX]) == 0
    whole = HELD_BYTES // 4
    heavy = [ShownRow({"id": str(number), "properties": {"p": "x" * whole}}) for number in range(10)]
    assert surplus(heavy) == 6
    assert surplus([ShownRow({"key": "x" * 2 * HELD_BYTES})]) == 0, "one is shown whatever it holds"
    assert surplus([]) == 0


async def test_names_that_are_huge_leave_their_place_to_the_rest() -> None:
    """Names beyond the limits of the box: 8,000 characters of two cells each."""
    name = "persistent://public/default/" + "長" * 8000
    box = FakeBox()
    box.rows["subscriptions"] = [subscription(0, topic=name, subscription="s" * 8000)]
    box.rows["deadletters"] = [dead_letters(0, topic=f"{name}-s-DLQ", origin=name)]
    async with dashboard(box, SMALL, place="subscriptions") as driver:
        for keys in (["3"], ["x"], ["escape", "enter"], ["escape", "4"], ["x"], ["escape", "1"]):
            await driver.press(*keys)
            await driver.pilot.pause(0.1)
            lines = driver.lines()
            assert len(lines) == SMALL[1] and any("長" in line or "sss" in line for line in lines), keys
        assert "1,000" in driver.text(), "the backlog has its place"
