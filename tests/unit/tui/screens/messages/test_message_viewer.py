"""The screen with one message: forms, folding, search, other messages, differences and copies."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from textual.color import Color

from pulsarbox.tui import slices
from pulsarbox.tui.actions.action_table import BY_NAME, CONTENT, REGISTRY
from pulsarbox.tui.screens.messages import message_source
from pulsarbox.tui.screens.messages.message_source import MessageSource
from pulsarbox.tui.screens.messages.message_viewer import MessageViewer
from pulsarbox.tui.viewer.contents import is_text
from pulsarbox.tui.viewer.lines import HexLines, TextLines
from pulsarbox.tui.viewer.outline import Outline
from tests.unit.tui.driving import SMALL, Driver, dashboard
from tests.unit.tui.fake import FakeBox, message
from tests.unit.tui.framing import framed
from tests.unit.tui.legibility import colors_of, style_of

ORDER = {"id": 7, "customer": {"name": "Ada\x1b[2J", "tags": ["vip"]}, "total": 12.50}


def with_payload(number: int, payload: bytes | None, **more: Any) -> dict[str, Any]:
    told = None if payload is None else base64.b64encode(payload).decode()
    return message(number, payload=told, size=len(payload or b""), **more)


@asynccontextmanager
async def viewing(*payloads: bytes | None, size: tuple[int, int] = SMALL, **more: Any) -> AsyncIterator[Driver]:
    """The screen with the last of some messages."""
    box = FakeBox()
    box.messages[:] = [with_payload(number, payload, **more) for number, payload in enumerate(payloads)]
    async with dashboard(box, size, place="topics") as driver:
        await driver.press("b")
        await driver.at("Browser")
        await driver.until(lambda: driver.table.pointed is not None)
        await driver.press("enter")
        await shown(driver, len(payloads) - 1)
        yield driver


async def shown(driver: Driver, number: int) -> None:
    await driver.at("MessageViewer")
    await driver.until(lambda: driver.screen.message.row["id"] == f"12:{number}" and not driver.screen._is_reading)
    await driver.pilot.pause()


def viewer(driver: Driver) -> MessageViewer:
    screen = driver.screen
    assert isinstance(screen, MessageViewer)
    return screen


async def test_a_value_is_folded_searched_and_shown_in_all_forms() -> None:
    async with viewing(json.dumps(ORDER).encode()) as driver:
        screen = viewer(driver)
        await driver.until(lambda: "▾ customer: {2}" in driver.text() and '"Ada\\u001b[2J"' in driver.text())
        await driver.press("down", "down", "enter")
        await driver.until(lambda: "▸ customer: {2} name:" in driver.text())
        await driver.press("slash")
        await driver.type("VIP")
        await driver.press("enter")
        await driver.until(lambda: "1 of 1 match" in driver.told("told"))
        assert "customer.tags[0]" in driver.told("told") and "▾ tags: [1]" in driver.text()
        await driver.press("left")
        await driver.until(lambda: "▸ tags: [1]" in driver.text())
        await driver.press("z")
        await driver.until(lambda: "▸ customer" in driver.text())
        await driver.press("Z", "v")
        await driver.until(lambda: '{"id": 7, "customer"' in driver.text())
        assert isinstance(screen.pager.lines, TextLines)
        await driver.press("v")
        await driver.until(lambda: "000000  7b 22 69 64" in driver.text())
        assert isinstance(screen.pager.lines, HexLines)
        await driver.press("v", "h")
        await driver.until(lambda: isinstance(screen.pager.lines, Outline) and "│  000000  7b 22" in driver.text())
        await driver.press("i")
        await driver.until(lambda: "published" not in driver.text())
        assert not any(ord(one) < 32 for line in driver.lines() for one in line)


async def test_counts_of_visible_lines_are_those_of_the_whole_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE", 0)
    rows = [{"id": number, "name": f"row {number}"} for number in range(400)]
    async with viewing(json.dumps({"rows": rows, "z": 1}).encode()) as driver:
        await driver.until(lambda: "rows: [400]" in driver.text() and "▾ {2}" in driver.text())


async def test_matches_follow_each_other_in_a_circle() -> None:
    async with viewing(json.dumps(["x", "a", "x", "x"]).encode()) as driver:
        await driver.press("n")
        await driver.until(lambda: "Search for a text first: /" in driver.said)
        await driver.press("slash")
        await driver.type("x")
        await driver.press("enter")
        await driver.until(lambda: "1 of 3 matches" in driver.told("told"))
        for key, told in (("n", "2 of 3"), ("n", "3 of 3"), ("n", "1 of 3"), ("N", "3 of 3")):
            await driver.press(key)
            await driver.until(lambda told=told: told in driver.told("told"))  # type: ignore[misc]
        await driver.press("slash")
        await driver.type("yz")
        await driver.press("enter")
        await driver.until(lambda: "'xyz' does not occur" in driver.said)
        await driver.press("v")
        await driver.until(lambda: "text" in driver.told("told") and "'xyz': 0 matches" in driver.told("told"))
        assert driver.said.count("'xyz' does not occur") == 1, "only a new search reports that"


async def test_other_messages_and_those_with_the_same_key() -> None:
    payloads = [str(number).encode() for number in range(20)]
    async with viewing(*payloads) as driver:
        for keys, number in (
            (("less_than_sign",), 18),
            (("left_square_bracket",), 11),
            (("right_square_bracket",), 18),
        ):
            await driver.press(*keys)
            await shown(driver, number)
        await driver.press("greater_than_sign")
        await shown(driver, 19)
        await driver.press("greater_than_sign")
        await driver.until(lambda: "No message after this one" in driver.said)
        await driver.press("right_square_bracket")
        await driver.until(lambda: "No message with the key 'customer-5' after this one" in driver.said)
        driver.box.messages[0]["key"] = None
        viewer(driver).open_message("12:0")
        await shown(driver, 0)
        await driver.press("left_square_bracket")
        await driver.until(lambda: "The message has no key" in driver.said)


async def test_two_messages_are_compared_by_field() -> None:
    other = {"id": 8, "customer": {"name": "Ada\x1b[2J", "tags": ["vip"]}, "paid": True}
    async with viewing(json.dumps(ORDER).encode(), json.dumps(other).encode()) as driver:
        await driver.press("D")
        await driver.until(lambda: any("Mark another message first" in text for text in driver.said))
        await driver.press("M", "less_than_sign")
        await shown(driver, 0)
        await driver.press("D")
        await driver.at("MessageDifference")
        await driver.until(lambda: "+ 1 added   - 1 removed   ~ 5 changed ━┛" in driver.text())
        lines = [line.strip("┃> ") for line in driver.text().split("\n")]
        assert {"~ sequenceId: 1 → 0", "~ id: 8 → 7", "- paid: true", "+ total: 12.5"} <= set(lines)
        assert '~ key: "customer-1" → "customer-0"' in lines
        assert "customer.name" not in driver.text()
        assert "━ Differences: 12:1 of orders-0 → 12:0 of orders-0 ━" in driver.text()
        assert driver.told("told") == " y pulsarbox peek orders-0 --from 12:0 -n 1"
        await driver.press("end")
        await driver.until(lambda: driver.told("told").startswith(" 7 of 7  total   y pulsarbox"))
        await driver.press("up")
        await driver.until(lambda: driver.told("told").startswith(" 6 of 7  paid "))
        await driver.pilot.resize_terminal(40, 20)
        await driver.until(lambda: "━ + 1   - 1   ~ 5 ━┛" in driver.text())


async def test_further_rows_of_a_difference_are_indented_more_than_its_sign() -> None:
    long = " ".join(f"word{at}" for at in range(40))
    for one, other in ((long, "short"), (json.dumps({"note": long}), json.dumps({"other": 1}))):
        async with viewing(other.encode(), one.encode()) as driver:
            await driver.press("M", "less_than_sign")
            await shown(driver, 0)
            await driver.press("D")
            await driver.at("MessageDifference")
            await driver.until(lambda: "word39" in driver.text())
            rows = [line.lstrip("┃")[2:] for line in driver.lines() if "word" in line]
            assert len(rows) > 3 and rows[0].startswith(("  -word0", '  - note: "word0'))
            assert all(row.startswith(" " * 6 + "word") for row in rows[1:])


@pytest.mark.parametrize("size", [SMALL, (120, 40), (200, 50)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_metadata_contents_and_bytes_are_panels(size: tuple[int, int]) -> None:
    async with viewing(json.dumps(ORDER).encode(), size=size) as driver:
        await driver.until(lambda: "outline   7 values" in driver.text())
        panels, screen = framed(driver), viewer(driver)
        assert list(panels) == ["Metadata: 12:0 of orders-0"] and " Contents ━" in driver.text()
        contents, dump = screen.query_one("#contents"), screen.query_one("#dump")
        assert dump.display == (size[0] >= 120), "beside the contents where there is room"
        assert screen.pager.size.height >= 12
        assert contents.region.bottom == size[1] - 2
        await driver.press("slash")
        await driver.type("vip")
        await driver.press("enter")
        await driver.until(lambda: "outline   7 values   79 B   1 match ━" in driver.text())
        await driver.press("h")
        await driver.until(lambda: dump.display == (size[0] < 120))
        if size == SMALL:
            await driver.until(lambda: " outline   7 values   79 B ━┛" in driver.text())
        await driver.press("h", "v", "v")
        await driver.until(lambda: isinstance(screen.pager.lines, HexLines) and not dump.display)
        await driver.press("i")
        await driver.until(lambda: "━ Contents: 12:0 of orders-0 ━" in driver.text())


async def test_bytes_beside_the_contents_are_drawn_once_per_movement(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[None] = []
    real = MessageViewer._show_bytes

    def counted(screen: MessageViewer) -> None:
        drawn.append(None)
        real(screen)

    monkeypatch.setattr(MessageViewer, "_show_bytes", counted)
    async with viewing(json.dumps(ORDER).encode(), size=(120, 40)) as driver:
        await driver.until(lambda: "outline   7 values" in driver.text())
        assert viewer(driver).query_one("#dump").display
        drawn.clear()
        await driver.press("down")
        await driver.until(lambda: viewer(driver).pager.cursor != 0 and drawn)
        for _ in range(20):
            await driver.pilot.pause()
        assert len(drawn) == 1


async def test_metadata_has_no_border_where_the_contents_would_lack_lines() -> None:
    many = {f"name-{at}": "x" for at in range(9)}
    async with viewing(b"{}", properties=many) as driver:
        await driver.until(lambda: "outline   1 value " in driver.text())
        assert "━ Contents: 12:0 of orders-0 ━" in driver.text() and "Metadata" not in driver.text()
        assert viewer(driver).pager.size.height >= 10


MANY: Final = {f"name-{at}": f"value-{at}" for at in range(200)}


async def test_metadata_says_how_many_properties_it_shows_and_all_can_be_read() -> None:
    async with viewing(b'{"a": 1}', properties=MANY, size=(120, 40)) as driver:
        screen = viewer(driver)
        await driver.until(lambda: "properties   200, " in driver.text() and "outline   2 values" in driver.text())
        shown = sum(" = value-" in line for line in driver.lines())
        assert f"200, {shown} shown" in driver.text() and "i metadata" in driver.told("hints")
        assert screen.pager.size.height >= 12
        await driver.press("i")
        await driver.until(
            lambda: "━ Metadata: 12:0 of orders-0 ━" in driver.text() and "200 properties" in driver.text()
        )
        assert not screen.query_one("#dump").display
        await driver.press("end")
        await driver.until(lambda: "name-199 = value-199" in driver.text())
        await driver.press("slash")
        await driver.type("name-77 ")
        await driver.press("enter")
        await driver.until(lambda: "> " in driver.text() and "name-77 = value-77" in driver.text())
        await driver.press("i")
        await driver.until(lambda: screen.form == "outline" and "value-" not in driver.text())
        await driver.press("i")
        await driver.until(lambda: f"200, {shown} shown" in driver.text())
        await driver.press("i", "v")
        await driver.until(lambda: screen.form == "outline" and f"200, {shown} shown" in driver.text())


async def test_all_metadata_stays_open_from_message_to_message() -> None:
    async with viewing(b"{}", b"no JSON", properties=MANY) as driver:
        await driver.press("i", "less_than_sign")
        await shown(driver, 0)
        assert viewer(driver).form == "metadata"
        driver.box.messages[1]["properties"] = {}
        await driver.press("greater_than_sign")
        await shown(driver, 1)
        assert viewer(driver).form == "text"


async def test_a_message_without_bytes_has_no_dump_beside_it() -> None:
    async with viewing(None, b"", size=(120, 40)) as driver:
        assert not viewer(driver).query_one("#dump").display
        await driver.press("less_than_sign")
        await shown(driver, 0)
        assert not viewer(driver).query_one("#dump").display


async def test_texts_are_compared_by_line() -> None:
    async with viewing(b"one\ntwo\nthree", b"one\n2\nthree") as driver:
        await driver.press("M", "less_than_sign")
        await shown(driver, 0)
        await driver.press("D")
        await driver.at("MessageDifference")
        await driver.until(lambda: "-2" in driver.text() and "+two" in driver.text())


COPIES: Final = {
    "command": "pulsarbox peek orders-0 --from 12:0",
    "envelope": '{"v": 1, "topic": "persistent://public/default/orders-0", "id": "12:0"',
    "produce": "pulsarbox produce orders-0 --key=customer-0",
    "curl": "curl -sS 'http://box:8080/pulsarbox/v1/browse/public/default/orders-0?from=12%3A0&",
    "id": "12:0",
    "value": '"vip"',
    "path": "customer.tags[0]",
}


async def test_a_message_is_copied_in_many_forms() -> None:
    async with viewing(json.dumps(ORDER).encode()) as driver:
        screen = viewer(driver)
        screen.pager.point(5)
        for form, begins in COPIES.items():
            assert screen.copied(form).startswith(begins)
        await driver.press("y")
        await driver.at("ChoiceDialog", answered=False)
        assert "pulsarbox peek orders-0 --from 12:0 -n 1" in driver.text(), "the command itself"
        assert "curl request" in driver.text()
        await driver.press("end", "enter")
        await driver.until(lambda: driver.app.clipboard == "customer.tags[0]")


async def test_forms_without_the_payload_are_previewed_whatever_its_size() -> None:
    async with viewing(json.dumps(["x" * 5000, 1.5]).encode()) as driver:
        screen = viewer(driver)
        await driver.press("end", "y")
        await driver.at("ChoiceDialog", answered=False)
        said: Any = driver.screen.query_one("#said")
        for shown in (
            "pulsarbox peek orders-0 --from 12:0 -n 1",
            "one line of JSON, as",
            "a pulsarbox command line with",
        ):
            await driver.until(lambda shown=shown: str(said.content).startswith(shown))  # type: ignore[misc]
            ink = colors_of(style_of(driver, shown, shown))[0]
            is_dim = shown.startswith(("one", "a "))
            assert (ink == Color.parse(driver.app.theme_variables["text-secondary"])) != is_dim
            await driver.press("down")
        await driver.press("down", "down")
        await driver.until(lambda: str(said.content) == "1.5")
        assert screen.copied("value") == "1.5"


async def test_a_large_payload_is_loaded_in_parts_and_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_source, "PART", 1000)
    monkeypatch.setattr(message_source, "LOADED_MAX", 5000)
    async with viewing(json.dumps(list(range(800))).encode(), json.dumps(list(range(2000))).encode()) as driver:
        await driver.until(lambda: "the rest is not loaded" in driver.told("told"))
        await driver.press("y")
        await driver.at("ChoiceDialog", answered=False)
        await driver.press("down", "enter")
        await driver.until(lambda: any("too large to copy" in text for text in driver.said))
        await driver.press("less_than_sign")
        await shown(driver, 0)
        contents = viewer(driver).message.contents  # type: ignore[union-attr]
        assert contents.is_whole and contents.payload == json.dumps(list(range(800))).encode()


def test_a_payload_whose_rest_the_box_does_not_return_is_not_whole() -> None:
    box = FakeBox()
    cut = with_payload(0, b'{"a": 1', truncated=True)
    answers = iter(({"messages": [cut]}, {"messages": [cut | {"payload": ""}]}))
    box.answers["GET", "/pulsarbox/v1/browse/public/default/orders-0"] = lambda query, body: next(answers)
    loaded = MessageSource(box.feed, "persistent://public/default/orders-0").load("12:0")
    assert not loaded.contents.is_whole and loaded.contents.payload == b'{"a": 1'


async def test_payloads_of_all_kinds() -> None:
    kinds: list[tuple[bytes | None, dict[str, Any], str]] = [
        (None, {}, "null: a tombstone"),
        (None, {"closed": "it is encrypted\x1b"}, "it is encrypted\\x1b"),
        (b"", {}, "empty: no bytes"),
        (b"\x00\xff\x80" * 9, {}, "000000  00 ff 80"),
        (b"{not json", {}, "not valid JSON: expected a name in quotes at character 2"),
        (b"\x0ehello", {"schemaVersion": 3, "decoded": {"name": "by its schema"}}, '"by its schema"'),
    ]
    async with viewing(*[b""] * len(kinds)) as driver:
        for number, (payload, more, said) in enumerate(kinds):
            driver.box.messages[number] = with_payload(number, payload, **more)
            viewer(driver).open_message(f"12:{number}")
            await driver.until(lambda said=said: said in driver.text())  # type: ignore[misc]


async def test_every_action_is_possible_with_any_message() -> None:
    async with viewing(b"", None, b"[1]", size=(60, 15)) as driver:
        for number in (2, 1, 0):
            viewer(driver).open_message(f"12:{number}")
            await shown(driver, number)
            for each in REGISTRY:
                if each.on == (CONTENT,) and not each.name.endswith(("search", " message", " by key")):
                    driver.screen.act(each.name)
            for move in (1, -1, 40, -40):
                viewer(driver).pager.action_move(move)
                viewer(driver).pager.action_edge(move)
                viewer(driver).pager.action_shift(move)
    assert driver.box.changes() == []


def test_what_is_text() -> None:
    assert is_text(b"") and is_text("ж".encode() * 5000) and is_text(b"a\tb\r\n")
    assert not is_text(b"\x00") and not is_text(b"abc\xff\xfe12345") and not is_text(b"\x1b[2J")


async def test_only_keys_that_apply_are_hinted() -> None:
    own = {"fold", "next match", "dump", "next by key"}
    async with viewing(b"no JSON", json.dumps(ORDER).encode()) as driver:
        screen = viewer(driver)
        assert own & set(screen.hints_now()) == {"fold", "dump", "next by key"}
        await driver.press("v", "v")
        await driver.until(lambda: screen.form == "hex")
        assert own & set(screen.hints_now()) == {"next by key"}
        await driver.press("less_than_sign")
        await shown(driver, 0)
        assert own & set(screen.hints_now()) == {"dump", "next by key"}
        screen.filtered("JSON")
        await driver.until(lambda: "n match" in driver.told("hints"))
    async with viewing(b"7", key=None) as driver:
        assert own & set(viewer(driver).hints_now()) == {"dump"}


@pytest.mark.parametrize("size", [(40, 20), SMALL, (120, 40), (200, 50)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_ways_out_are_hinted_last(size: tuple[int, int]) -> None:
    async with viewing(b"{}", json.dumps(ORDER).encode(), size=size) as driver:
        told = driver.told("hints").strip()
        assert told.endswith("esc back  ? help  q quit")
        assert ("h bytes" in told, "] same key" in told) == (size[0] > 40, size[0] > 80)
        assert ("M mark" in told and "< previous" in told) == (size[0] > 80)
        assert "D compare" not in told
        await driver.press("M", "less_than_sign")
        await shown(driver, 0)
        await driver.until(lambda: ("D compare" in driver.told("hints")) == (size[0] > 80))


async def test_bytes_are_marked_for_a_value_but_not_for_the_whole_contents() -> None:
    async with viewing(b"one line", json.dumps(ORDER).encode(), size=(120, 40)) as driver:
        screen = viewer(driver)

        def looks() -> set[str]:
            dump = screen.dump
            return {piece.look for _, row in dump.rows for piece in row} - {"dim", "plain"}

        await driver.until(lambda: "000000  7b 22" in driver.text())
        assert looks() == set()
        await driver.press("down", "down")
        await driver.until(lambda: looks() == {"marked"})
        marked = style_of(driver, "000010  ", '{"')
        await driver.press("slash")
        await driver.type("vip")
        await driver.press("enter", "up", "up", "up")
        await driver.until(lambda: looks() == {"marked", "found"} and screen.pager.cursor == 2)
        found = style_of(driver, "76 69 70", "76 69 70")
        assert found.bgcolor != marked.bgcolor and (found.bold, marked.bold) == (True, None)
        assert found.underline and marked.underline
        await driver.press("less_than_sign")
        await shown(driver, 0)
        await driver.until(lambda: "000000  6f 6e" in driver.text() and looks() == set())


@pytest.mark.parametrize("payload", [b"", None])
@pytest.mark.parametrize("size", [SMALL, (120, 40)])
async def test_a_message_without_bytes_has_no_panel_of_them(payload: bytes | None, size: tuple[int, int]) -> None:
    async with viewing(json.dumps(ORDER).encode(), payload, size=size) as driver:
        screen = viewer(driver)
        assert "dump" not in screen.hints_now()
        await driver.press("h")
        await driver.until(lambda: driver.said == ["The message has no bytes"])
        assert not screen.query_one("#dump").display
        await driver.press("less_than_sign")
        await shown(driver, 0)
        if size == SMALL:
            await driver.press("h")
        await driver.until(lambda: screen.query_one("#dump").display)
        await driver.press("greater_than_sign")
        await shown(driver, 1)
        await driver.until(lambda: not screen.query_one("#dump").display)


async def test_the_menu_of_rows_is_listed_only_where_there_are_some_with_actions() -> None:
    async with viewing(b"{}") as driver:
        menu = BY_NAME["menu"]
        assert not driver.screen.offers(menu) and driver.screen.offers(BY_NAME["copy"])
        for key, screen, has_menu in (("9", "EventsScreen", False), ("3", "Subscriptions", True)):
            await driver.press(key)
            await driver.at(screen)
            assert driver.screen.offers(menu) is has_menu


async def test_bytes_have_as_many_columns_as_fit() -> None:
    async with viewing(bytes(range(256)), size=(200, 50)) as driver:
        screen = viewer(driver)
        await driver.until(lambda: "0000e0  e0 e1" in driver.text() and "0000f0  " not in driver.text())
        screen.pager.point(0x77)
        await driver.until(lambda: "byte 96" in driver.told("told"))
        for size, place in ((SMALL, 96), ((60, 20), 96), ((40, 20), 96)):
            await driver.pilot.resize_terminal(*size)
            await driver.until(lambda: screen.pager.size.width < size[0])  # noqa: B023
            await driver.until(lambda place=place: f"byte {place}" in driver.told("told"))  # type: ignore[misc]
            await driver.until(lambda: "> 000060  60 61 62 63" in driver.text())


async def test_matches_are_found_again_in_rows_of_another_width() -> None:
    text = " ".join(f"word{at}" for at in range(200)).encode()
    async with viewing(text, size=(120, 40)) as driver:
        screen = viewer(driver)
        await driver.press("h", "slash")
        await driver.type("word1")
        await driver.press("enter")
        await driver.until(lambda: "matches" in driver.told("told") and "so far" not in driver.told("told"))
        for key in ("h", "w"):
            before = screen.found
            await driver.press(key)
            await driver.until(lambda before=before: screen.found not in ([], before))  # type: ignore[misc]
            await driver.until(lambda: not screen._is_searching)
            lines = screen.pager.lines
            assert isinstance(lines, TextLines) and screen.found == [lines.at(line) for line in screen.found]


@pytest.mark.parametrize(
    ("payload", "more", "told"),
    [
        (b"", {}, "(empty: no bytes)"),
        (None, {}, "(null: a tombstone)"),
        (None, {"closed": "it is encrypted"}, "(it is"),
    ],
)
async def test_contents_without_bytes_say_why(payload: bytes | None, more: dict[str, Any], told: str) -> None:
    async with viewing(payload, **more) as driver:
        screen = viewer(driver)
        for _ in ("text", "hex"):
            await driver.until(lambda: f"┃  {told}" in driver.text())
            assert "┃> " not in driver.text() and screen.copied("value") == ""
            await driver.press("v")


async def test_the_titles_of_metadata_have_the_colors_of_the_theme() -> None:
    async with viewing(b"{}") as driver:
        driver.app.theme = "pulsarbox-contrast"
        ink = Color.parse("#E6E6E6")
        await driver.until(lambda: colors_of(style_of(driver, "published ", "published "))[0] == ink)


async def test_the_line_of_the_cursor_is_fainter_while_the_input_line_has_the_focus() -> None:
    async with viewing(json.dumps(ORDER).encode()) as driver:
        await driver.until(lambda: "> ▾ {3}" in driver.text())
        before = colors_of(style_of(driver, "> ▾ {3}", "{3}"))
        await driver.press("slash")
        await driver.until(lambda: not viewer(driver).pager.has_focus)
        await driver.until(lambda: colors_of(style_of(driver, "> ▾ {3}", "{3}")) != before)
        blurred = style_of(driver, "> ▾ {3}", "{3}")
        assert colors_of(blurred)[1] == Color.parse(driver.app.theme_variables["blurred-background"]) and blurred.bold
        await driver.press("escape")
        await driver.until(lambda: colors_of(style_of(driver, "> ▾ {3}", "{3}")) == before)
