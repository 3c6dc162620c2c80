"""The message browser: its filters, its preview, and its scroll bar."""

import base64

from textual.color import Color
from textual.widgets import Input

from pulsarbox.tui.themes import OURS
from tests.unit.tui.driving import SMALL, WIDE, Driver, dashboard
from tests.unit.tui.fake import FakeBox, browsed, message
from tests.unit.tui.legibility import colors_of, drawn_in


async def browse(driver: Driver) -> None:
    await driver.press("b")
    await driver.at("Browser")
    await driver.until(lambda: driver.table.count)


async def test_filters_are_those_of_messages() -> None:
    async with dashboard(size=SMALL, place="topics") as driver:
        await browse(driver)
        await driver.press("slash")
        await driver.until(lambda: isinstance(driver.app.focused, Input))
        assert 'key == "a" and json.total > 100' in driver.text() and "backlog" not in driver.text().split("\n")[-3]
        await driver.press("escape")
        await driver.filter('json.id > 3 and props.source == "shop"')
        await driver.until(lambda: "filter=json.id" in driver.box.asked_rows())
        await driver.filter("backlog > 3")
        await driver.until(lambda: any("unknown name 'backlog'" in each for each in driver.said))


async def test_a_long_filter_does_not_touch_the_hint_behind_it() -> None:
    async with dashboard(size=SMALL, place="topics") as driver:
        await browse(driver)
        await driver.filter(" and ".join(f'key != "{number}"' for number in range(20)))
        await driver.until(lambda: "…  esc: clear the filter" in driver.text())


async def test_the_preview_wraps_long_lines_with_a_sign() -> None:
    box = FakeBox()
    text = " ".join(f"word{number}" for number in range(30))
    messages = [message(0, payload=base64.b64encode(text.encode()).decode(), properties={})]
    box.answers[("GET", "/pulsarbox/v1/browse/public/default/orders-0")] = browsed(messages)
    async with dashboard(box, SMALL, place="topics") as driver:
        await browse(driver)
        await driver.until(lambda: "word29" in driver.text())
        rows = [line for line in driver.lines() if "word" in line][1:]
        assert [row[2:].startswith("↪ ") for row in rows] == [False, True, True]


async def test_long_keys_leave_room_for_the_payload() -> None:
    box = FakeBox()
    long = {"key": "k" * 3000, "properties": {"EXCEPTION": "e" * 3000}}
    box.answers["GET", "/pulsarbox/v1/browse/public/default/orders-0"] = browsed([message(0, **long)])
    async with dashboard(box, (80, 32), place="topics") as driver:
        await browse(driver)
        await driver.until(lambda: all(each in driver.text() for each in ("kkk... (3,000", "eee... (3,000", '"id": 0')))


async def test_many_properties_leave_room_for_the_payload() -> None:
    box = FakeBox()
    many = {f"name-{at}": "x" for at in range(200)}
    box.answers["GET", "/pulsarbox/v1/browse/public/default/orders-0"] = browsed([message(0, properties=many)])
    for size in ((120, 40), (200, 50), (80, 32)):
        async with dashboard(box, size, place="topics") as driver:
            await browse(driver)
            await driver.until(lambda: '"amount": 12.5' in driver.text() and "properties   200, " in driver.text())


async def test_states_are_words() -> None:
    box = FakeBox()
    held = message(0, state="inFlight", consumer="c0", redeliveries=0)
    box.answers["GET", "/pulsarbox/v1/browse/public/default/orders-0"] = browsed([held])
    async with dashboard(box, (120, 40), place="topics") as driver:
        await browse(driver)
        await driver.until(lambda: driver.text().count("in flight") == 2 and "inFlight" not in driver.text())
        assert "redeliveries 0" in driver.text()


async def test_the_scroll_bar_shows_the_end_with_which_the_browser_opens() -> None:
    async with dashboard(size=SMALL, place="topics") as driver:
        await browse(driver)
        await driver.until(lambda: driver.table.show_vertical_scrollbar and driver.table.scroll_offset.y)
        assert driver.table.vertical_scrollbar.position == driver.table.scroll_offset.y


async def test_a_low_terminal_shows_the_payload_above_the_metadata() -> None:
    async with dashboard(size=SMALL, place="topics") as driver:
        await browse(driver)
        await driver.until(lambda: -1 < driver.text().find('│   "id": 249') < driver.text().find("published "))
        await driver.pilot.resize_terminal(120, 40)
        await driver.press("v", "v", "v")
        await driver.until(lambda: -1 < driver.text().find("published ") < driver.text().find('│   "id": 249'))


async def test_on_wide_terminals_the_message_is_beside_the_table() -> None:
    async with dashboard(size=(200, 50), place="topics") as driver:
        await browse(driver)
        table, content = driver.table, driver.screen.query_one("#content")
        await driver.until(lambda: content.region.x >= table.region.right and content.region.width > 60)
        assert (content.region.y, content.region.height) == (table.region.y, table.region.height)
        await driver.pilot.resize_terminal(120, 50)
        await driver.until(lambda: content.region.y >= table.region.bottom and content.region.width > 100)


async def test_the_title_names_key_and_form_and_json_has_colors() -> None:
    async with dashboard(size=(200, 50), place="topics") as driver:
        await browse(driver)
        title = driver.screen.query_one("#content").border_title
        assert "key customer-4" in title and title.endswith("JSON")
        await driver.until(lambda: '"amount": 12.5' in driver.text())
        colors: dict[str, object] = {}
        for strip in driver.strips():
            for segment in strip:
                colors.setdefault(segment.text.strip(), segment.style and segment.style.color)
        assert colors['"amount"'] != colors["12.5"]
        await driver.press("v")
        await driver.until(lambda: driver.screen.query_one("#content").border_title.endswith("text"))


async def test_messages_cannot_be_sorted() -> None:
    async with dashboard(size=(200, 50), place="topics") as driver:
        await browse(driver)
        assert "s sort" not in driver.told("hints") and "c columns" in driver.told("hints")
        await driver.press("s", "S")
        await driver.until(lambda: driver.said.count("Messages have the order of the topic") == 2)
        assert driver.app.kept.get("sort.messages", None) is None


async def test_the_colors_of_json_are_those_of_the_theme() -> None:
    async with dashboard(size=(200, 50), place="topics") as driver:
        await browse(driver)

        def ink_of_a_number() -> Color | None:
            drawn = drawn_in(driver, driver.screen.query_one("#content").region)
            return next((colors_of(each.style)[0] for each in drawn if each.text == "12.5" and each.style), None)

        for theme in OURS:
            driver.app.theme = theme.name
            ink = Color.parse(theme.variables["text-secondary"])
            await driver.until(lambda ink=ink: ink_of_a_number() == ink)  # type: ignore[misc]


async def test_the_end_is_reached_when_the_cursor_is_there() -> None:
    async with dashboard(size=SMALL, place="topics") as driver:
        await browse(driver)
        await driver.until(lambda: driver.told("told").endswith("  at the end"))
        await driver.press("up", "up")
        await driver.until(lambda: driver.told("told").endswith("  2 before the end"))
        await driver.press("home")
        await driver.until(lambda: driver.told("told").endswith("  99 before the end"))
        await driver.press("F")
        await driver.until(lambda: driver.told("told").endswith("  following"))


async def test_actions_on_dead_letters_are_offered_for_dead_letters_only() -> None:
    box = FakeBox()
    messages = [message(0), message(1, properties={"REAL_TOPIC": "persistent://public/default/other"})]
    box.answers["GET", "/pulsarbox/v1/browse/public/default/orders-0"] = browsed(messages)
    async with dashboard(box, WIDE, place="topics") as driver:
        await browse(driver)
        await driver.press("home")
        await driver.until(lambda: "F follow" in driver.told("hints") and "E edit" not in driver.told("hints"))
        await driver.press("E")
        await driver.until(lambda: any("'edit' applies to dead letters" in each for each in driver.said))
        await driver.press("R")
        await driver.until(lambda: any("'dlq replay' does not apply" in each for each in driver.said))
        await driver.press("down")
        await driver.until(lambda: "E edit  R replay" in driver.told("hints"))
    async with dashboard(size=WIDE, place="deadletters") as driver:
        await browse(driver)
        await driver.until(lambda: "E edit  R replay" in driver.told("hints"))


async def test_refreshing_reads_the_messages_again_and_stays_at_the_message() -> None:
    box = FakeBox()
    async with dashboard(box, WIDE, place="deadletters") as driver:
        await browse(driver)
        await driver.press("up", "up", "up")
        await driver.until(lambda: driver.table.pointed is not None)
        here = driver.table.pointed["id"]  # type: ignore[index]
        changed = [{**each, "acknowledged": True} for each in box.messages]
        box.answers["GET", "/pulsarbox/v1/browse/public/default/orders-0-billing-DLQ"] = browsed(changed)
        count = driver.table.count
        await driver.press("r")
        await driver.until(lambda: all(row["acknowledged"] for row in driver.screen.messages))
        assert driver.table.pointed["id"] == here and driver.table.count == count  # type: ignore[index]
