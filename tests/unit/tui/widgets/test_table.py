"""The table requests only visible rows, and the cursor follows its row."""

import random
from collections.abc import Sequence
from itertools import pairwise, product
from typing import Any, Final
from unittest import mock

import pytest
from rich.style import Style
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from pulsarbox.tui.actions.box_queries import _FRAME, AROUND, PANELS
from pulsarbox.tui.views import GROUPS, MESSAGES, QUOTAS, SUBSCRIPTIONS, VIEWS, TableView
from pulsarbox.tui.widgets.columns import (
    _GAP_MAX,
    _MEASURED,
    _NUMBER_MAX,
    _STEP,
    BAR,
    KINDS,
    TO_THE_RIGHT,
    Column,
    is_cut,
    laid_out,
    shortened,
    widest,
    widest_numbers,
)
from pulsarbox.tui.widgets.table import Table
from tests.unit.tui.driving import SMALL, WIDE, dashboard
from tests.unit.tui.fake import FakeBox, subscription


def asked_rows(box: FakeBox) -> list[str]:
    return [target for method, target, _ in box.asked if "/top/subscriptions" in target]


class ManyRows(list[dict[str, Any]]):
    """A million rows, created on access."""

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [subscription(at) for at in range(*index.indices(len(self)))]
        return subscription(index)


async def test_of_a_million_rows_only_those_in_view_travel() -> None:
    box = FakeBox()
    many = ManyRows()
    box.answers["GET", "/pulsarbox/v1/top/subscriptions"] = lambda query, body: {
        "total": len(many),
        "matching": len(many),
        "offset": int(query["offset"]),
        "rows": many[int(query["offset"]) : int(query["offset"]) + int(query["limit"])],
        "totals": {},
    }
    async with dashboard(box, WIDE, place="subscriptions") as driver:
        await driver.until(lambda: driver.table.count == 1_000_000)
        table = driver.table
        assert "orders-0 " in driver.text()
        asked = driver.screen.query_now()
        assert (asked.offset, asked.limit) == (0, table.size.height + 2 * AROUND)
        await driver.press("end")
        await driver.until(lambda: table.pointed is not None and table.pointed["topic"].endswith("-999999"))
        assert "orders-999999 " in driver.text()
        await driver.press("home", "pagedown")
        await driver.until(lambda: table.covers(table.scroll_offset.y) and table.pointed is not None)
        assert table.pointed is not None and table.pointed["topic"].endswith(f"-{table.size.height - 1}")
        limits = {int(target.partition("limit=")[2].partition("&")[0]) for target in asked_rows(box)}
        assert max(limits) == table.size.height + 2 * AROUND


@pytest.mark.parametrize("place", ["subscriptions", "overview"])
async def test_rows_that_have_not_changed_are_not_drawn_again(place: str) -> None:
    async with dashboard(FakeBox(), WIDE, place=place) as driver:
        await driver.until(lambda: any(table.count for table in driver.screen.query(Table)))
        drawn: list[Table] = []

        with mock.patch.object(Table, "refresh", lambda table, *_regions: drawn.append(table)):
            driver.screen.show(driver.screen.latest)
        assert not drawn


async def test_the_cursor_stays_with_its_row_while_the_order_changes() -> None:
    async with dashboard(place="subscriptions") as driver:
        table = driver.table

        def pointed() -> dict[str, Any]:
            return dict(table.pointed or {})

        await driver.press("j", "j", "j")
        assert pointed()["topic"].endswith("orders-3")
        driver.box.rows["subscriptions"][3]["backlog"] = 1_000_000
        await driver.press("r")
        await driver.until(lambda: (table.row_at(0) or {}).get("backlog") == 1_000_000)
        assert pointed()["topic"].endswith("orders-3") and pointed()["backlog"] == 1_000_000
        assert table._cursor == 0
        del driver.box.rows["subscriptions"][3]
        await driver.press("r")
        await driver.until(lambda: table.count == 39)
        assert pointed()["topic"].endswith("orders-0"), "it is gone: the row in its place"


async def test_a_row_that_leaves_the_view_is_not_replaced_by_another() -> None:
    box = FakeBox()
    box.rows["subscriptions"] = [subscription(number) for number in range(500)]
    async with dashboard(box, SMALL, place="subscriptions") as driver:
        table = driver.table
        await driver.press("j")
        box.rows["subscriptions"][1]["backlog"] = -1
        await driver.press("r")
        await driver.until(lambda: str((table.row_at(1) or {}).get("topic")).endswith("orders-2"))
        assert table.pointed is not None and table.pointed["topic"].endswith("orders-1")
        assert not table.cursor_in_view
        assert "quota explain orders-1 billing" in driver.told("told")
        await driver.press("j")
        assert table.pointed["topic"].endswith("orders-0") and table.cursor_in_view, "from the top of the view on"


async def test_marks_stay_with_rows_that_are_out_of_sight() -> None:
    box = FakeBox()
    box.rows["subscriptions"] = [subscription(number) for number in range(500)]
    async with dashboard(box, SMALL, place="subscriptions") as driver:
        await driver.press("space", "j", "space", "end")
        await driver.until(lambda: driver.table.pointed is not None and driver.table.pointed["topic"].endswith("-499"))
        assert [row["topic"].rpartition("/")[2] for row in driver.table.chosen] == ["orders-0", "orders-2"]
        await driver.press("home", "space")
        await driver.until(lambda: len(driver.table.chosen) == 1)
        await driver.press("u")
        assert not driver.table.marked


async def test_a_mark_stays_visible_under_the_cursor() -> None:
    async with dashboard(size=SMALL, place="subscriptions") as driver:
        table = driver.table
        assert [table.render_line(y).text[:2] for y in (1, 2)] == [">o", " o"]
        await driver.press("space", "k")
        await driver.until(lambda: [table.render_line(y).text[:3] for y in (0, 1, 2)] == ["  T", ">●o", "  o"])
        await driver.press("j")
        await driver.until(lambda: [table.render_line(y).text[:3] for y in (1, 2)] == [" ●o", "> o"])
        await driver.press("u")
        await driver.until(lambda: [table.render_line(y).text[:2] for y in (1, 2)] == [" o", ">o"])


def cells(strips: list[Strip]) -> list[list[tuple[str, Style | None]]]:
    """Each character and its style, by lines."""
    return [[(each, style) for text, style, _ in strip for each in text] for strip in strips]


@pytest.mark.parametrize("without_color", [False, True])
async def test_rows_are_drawn_as_textual_would_draw_them(without_color: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every theme: with marks, the cursor, without the focus, unloaded rows, and any part of the table."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    if without_color:
        monkeypatch.setenv("NO_COLOR", "1")
    box = FakeBox()
    box.rows["subscriptions"] = [subscription(number) for number in range(500)]
    async with dashboard(box, SMALL, place="subscriptions") as driver:
        table, region = driver.table, driver.table.outer_size.region
        await driver.press("j", "space")

        def check() -> None:
            drawn, parts = cells(table.render_lines(region)), [Region(1, 1, 9, 6), Region(5, 4, 40, 9)]
            table.refresh()
            assert drawn == cells(ScrollView.render_lines(table, region))
            for part in parts:
                expected = [line[part.x : part.right] for line in drawn[part.y : part.bottom]]
                assert cells(table.render_lines(part)) == expected

        for theme in ("pulsarbox", "pulsarbox-light", "pulsarbox-contrast", "ansi-dark"):
            driver.app.theme = theme
            await driver.pilot.pause()
            check()
        driver.screen.set_focus(None)
        await driver.pilot.pause()
        check()
        table._rows, table.unknown = table._rows[:5], {"backlog": "not counted"}
        check()
        table.set_columns(each._replace(width=60) for each in table.columns)
        check()


async def test_columns_can_be_replaced_by_others() -> None:
    async with dashboard(size=SMALL, place="subscriptions") as driver:
        table = driver.table
        for key in ("type", "topic"):
            table.set_columns(each for each in SUBSCRIPTIONS.columns if each.key == key)
            table.show(table._rows, table._offset, table.count)
            (placed,) = table.laid_out
            assert placed.width >= widest([placed.column], table._rows, {})[key] > 0


async def test_a_click_points_and_sorts_and_a_second_opens() -> None:
    async with dashboard(place="subscriptions") as driver:
        table = driver.table
        at = 0
        for column, width, gap in table.laid_out:
            if column.key == "outRate":
                break
            at += width + gap
        await driver.pilot.click("#table", offset=(at + 3, 1))
        await driver.until(lambda: table.sorted_by == ("outRate", True))
        await driver.until(lambda: "sort=outRate&order=desc" in asked_rows(driver.box)[-1])
        await driver.pilot.click("#table", offset=(at + 3, 1))
        await driver.until(lambda: table.sorted_by == ("outRate", False))
        await driver.pilot.click("#table", offset=(5, 5))
        await driver.until(lambda: table._cursor == 3)
        await driver.pilot.click("#table", offset=(5, 5), times=2)
        await driver.at("SubscriptionDetails")


def test_columns_give_way_by_rank_and_spare_cells_widen_their_gaps() -> None:
    columns = [
        Column("a", "A", 10, rank=0, grow=True),
        Column("b", "B", 10, rank=2),
        Column("c", "C", 10, rank=1),
    ]
    assert [(column.key, *sizes) for column, *sizes in laid_out(columns, 37)] == [
        ("a", 12, 2),
        ("b", 10, 2),
        ("c", 10, 1),
    ]
    assert [(column.key, *sizes) for column, *sizes in laid_out(columns, 90)] == [
        ("a", 12, 4),
        ("b", 10, 4),
        ("c", 10, 1),
    ]
    assert [(column.key, width) for column, width, _ in laid_out(columns, 25)] == [("a", 12), ("c", 10)]
    assert [column.key for column, _, _ in laid_out(columns, 3)] == ["a"], "one always stays"
    assert [column.key for column, _, _ in laid_out(columns, 25, "b")] == ["a", "b"], "the rows are sorted by it"


ALL: Final = (*VIEWS.values(), GROUPS, MESSAGES)
NAMES: Final = (*VIEWS, "groups", "messages")


@pytest.mark.parametrize("view", ALL, ids=NAMES)
def test_the_column_of_the_order_is_always_shown_with_its_whole_title(view: TableView) -> None:
    for column, width in product(view.columns, (41, 76, 96, 116, 156, 196)):
        if column.sorted_by is not None:
            placed = laid_out(view.columns, width, column.sorted_by)
            (found,) = [each for each in placed if each.column == column]
            assert len(f"{column.title}▾") <= found.width or width < 76
            assert sum(wide + gap for _, wide, gap in placed) <= width


@pytest.mark.parametrize("view", ALL, ids=NAMES)
def test_texts_are_whole_and_two_cells_apart_if_there_is_room(view: TableView) -> None:
    chance = random.Random(4)
    for _ in range(200):
        content = {column.key: chance.randrange(4, 24) for column in view.columns if column.kind in ("text", "topic")}
        width = chance.randrange(76, 240)
        placed = laid_out(view.columns, width, view.sort, content)
        assert sum(wide + gap for _, wide, gap in placed) <= width
        cut = [each for each in placed if each.width < content.get(each.column.key, 0)]
        used = sum(max(content.get(each.key, each.width), len(each.title) + 1) + 2 for each, _, _ in placed) - 1
        assert used > width or (not cut and all(gap >= 2 for _, _, gap in placed[:-1]))
        widened = [each for each in placed if each.width > each.column.width and each.column.sorted_by != view.sort]
        for (least, *_), (more, *_) in product(cut, widened):
            assert more.rank <= least.rank or (least.grow and not more.grow), "the least important is cut first"


@pytest.mark.parametrize("view", ALL, ids=NAMES)
@pytest.mark.parametrize("columns", [80, 100, 120, 160, 200])
def test_long_texts_are_two_cells_apart_on_usual_screens(view: TableView, columns: int) -> None:
    content = {column.key: 60 if column.grow else column.width for column in view.columns}
    placed = laid_out(view.columns, columns - _FRAME, view.sort, content)
    for (column, _, gap), (following, _, _) in pairwise(placed):
        assert gap >= 2 or following.kind in TO_THE_RIGHT, (column.key, following.key)


def test_a_column_gets_the_cells_that_the_texts_of_others_do_not_need() -> None:
    columns = (Column("role", "ROLE", 10), Column("topic", "TOPIC", 20, grow=True), Column("cause", "CAUSE", 10))
    rows: list[dict[str, Any]] = [
        {"role": "ops", "topic": "orders", "cause": "publish rate"},
        {"role": None, "cause": "unread"},
    ]
    content = widest(columns, rows, {})
    assert content == {"role": 3, "topic": 6, "cause": 12}
    assert [width for _, width, _ in laid_out(columns, 43, None, content)] == [10, 16, 12]
    wider = widest(columns, [{"role": "漢字漢字", "topic": "a", "cause": "a"}], content)
    assert wider == {"role": 8, "topic": 6, "cause": 12}, "widths only grow"


def test_a_limit_has_one_name_whatever_the_width() -> None:
    (column,) = [each for each in QUOTAS.columns if each.kind == "policy"]
    names = {KINDS["policy"]("subscription-dispatch-rate", {}, width)[0] for width in (column.width, 30, 60, 100)}
    assert names == {"dispatch rate"}


@pytest.mark.parametrize("view", ALL, ids=NAMES)
def test_a_text_is_two_cells_from_the_number_before_it_if_there_is_room(view: TableView) -> None:
    for width in range(40, 260):
        placed = laid_out(view.columns, width)
        used = sum(wide + gap for _, wide, gap in placed)
        assert used <= width or len(placed) == 1
        for (column, _, gap), (following, _, _) in pairwise(placed):
            is_text_behind_number = column.kind in TO_THE_RIGHT and following.kind not in TO_THE_RIGHT
            is_narrow = used == width and all(wide <= each.width for each, wide, _ in placed)
            is_narrow = is_narrow and width not in {columns - _FRAME for columns in (80, 100, 120, 160, 200)}
            assert gap >= 2 or not is_text_behind_number or is_narrow


def test_a_long_name_is_cut_in_its_middle() -> None:
    assert shortened("customer-orders-eu-west", 12) == "custo…u-west"
    assert shortened("short", 12) == "short"
    assert shortened("abcdefgh", 4) == "abc…"
    assert shortened("注文の処理と配送", 10) == "注文…配送", "wide characters count as two cells"


@pytest.mark.parametrize("width", [41, 43, 50])
def test_a_phone_shows_the_most_important_columns(width: int) -> None:
    shown = laid_out(SUBSCRIPTIONS.columns, width)
    assert [column.key for column, _, _ in shown][:3] == ["topic", "subscription", "backlog"]
    assert sum(wide + gap for _, wide, gap in shown) <= width
    quotas = [column.key for column, _, _ in laid_out(QUOTAS.columns, width)]
    assert quotas[:2] == ["subject", "policy"] and "limit" in quotas


COMMAND: Final = "pulsarbox quota set orders"


@pytest.mark.parametrize(
    ("height", "lines"),
    [
        (3, ["Nothing is near its limit."]),
        (4, ["Nothing is near its limit. Limit a", "backlog: pulsarbox quota set orders"]),
        (5, ["Nothing is near its limit. Limit a", "backlog:", COMMAND]),
        (6, ["", "Nothing is near its limit. Limit a", "backlog:", COMMAND]),
        (14, ["", "", "Nothing is near its limit. Limit a", " " * 13 + "backlog:", "", f"    {COMMAND}"]),
    ],
)
async def test_an_empty_table_shows_a_whole_sentence(height: int, lines: list[str]) -> None:
    table = Table(QUOTAS.columns, QUOTAS.identity)
    table.empty = f"Nothing is near its limit. Limit a backlog: {COMMAND}"
    with mock.patch.object(Table, "size", Size(37, height - 1)):
        found = table._hint()
    assert [text for text, _ in found] == lines
    assert [text.strip() for text, look in found if look == "command"] == [COMMAND] * (COMMAND in map(str.strip, lines))


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize(("panel", "share"), [(1, 3), (2, 2)])
def test_a_name_gets_the_cells_that_numbers_do_not_need(columns: int, panel: int, share: int) -> None:
    """In the short tables of the overview, which have this share of five of the screen."""
    shown, rows = PANELS[panel].columns, FakeBox().rows[PANELS[panel].view.name]
    rows[0] |= {"subject": "persistent://public/default/orders-1 shipping"}
    width = columns * share // 5 - _FRAME
    content = widest(shown, rows, {})
    content |= widest_numbers([each.column for each in laid_out(shown, width, None, content)], rows, content)
    placed = laid_out(shown, width, None, content)
    assert not is_cut(placed, content), "the name is whole"
    assert sum(wide + gap for _, wide, gap in placed) <= width
    assert [each.column for each in placed] == [each.column for each in laid_out(shown, width)], "none is hidden for it"
    for column, wide, _ in placed:
        assert wide >= max(content.get(column.key, 0), len(column.title) if column.kind != "share" else 0)


@pytest.mark.parametrize("view", ALL, ids=NAMES)
@pytest.mark.parametrize("wide", [0, 9, 22, 40])
def test_no_hole_is_wider_than_the_title_or_the_texts_with_a_margin(view: TableView, wide: int) -> None:
    content = {column.key: wide for column in view.columns if column.kind in _MEASURED}
    for width in (196, 240):
        for column, cells, gap in laid_out(view.columns, width, view.sort, content):
            needed = max(wide, len(column.title) + 1, column.width) if column.grow else max(cells, 1)
            assert cells + gap <= needed + _STEP + _GAP_MAX


def test_texts_longer_than_most_get_the_rest() -> None:
    columns = (Column("a", "A", 10, grow=True), Column("b", "B", 10, "line", grow=True))
    assert [width for _, width, _ in laid_out(columns, 200, None, {"a": 9, "b": 60})] == [12, 200 - 12 - 4 - 1]


@pytest.mark.parametrize("columns", [80, 120, 144, 160, 200])
def test_no_title_is_cut_while_a_table_is_empty(columns: int) -> None:
    for view in ALL:
        for column, cells, _ in laid_out(view.columns, columns - _FRAME, view.sort):
            assert cells >= len(column.title), (view.name, column.key)


def test_a_short_bar_is_a_percentage() -> None:
    for kind in ("share", "progress"):
        texts = {KINDS[kind](share, {}, 13)[0] for share in (0.95, 0.99, 1.0)}
        assert texts == {"          95%", "          99%", "         100%"}
        assert KINDS[kind](0.25, {}, 14)[0] == "━━······   25%"
    (share,) = [each for each in QUOTAS.columns if each.kind == "share"]
    widths = {
        placed.width
        for width in range(40, 240)
        for placed in laid_out(QUOTAS.columns, width, "share", {"subject": width // 4})
        if placed.column == share
    }
    assert widths == {6, BAR}


def test_columns_of_high_rank_give_way_to_the_useful_part_of_an_error() -> None:
    for view, key in ((VIEWS["jobs"], "error"), (VIEWS["pipelines"], "lastError")):
        counts = []
        for wide in (1, 30, 32):
            found = laid_out(view.columns, 142, view.sort, {key: wide, "topic": 60, "pipeline": 60})
            (cells,) = [cells for column, cells, _ in found if column.key == key]
            assert cells >= wide, view.name
            counts.append(len(found))
        assert counts[-1] < counts[0]


@pytest.mark.parametrize("columns", [PANELS[0].columns, SUBSCRIPTIONS.columns])
def test_the_least_important_columns_give_way_to_whole_names(columns: Sequence[Column]) -> None:
    def widths(across: int, name: int) -> dict[str, int]:
        texts = {"topic": name, "subscription": 11, "cause": 11}
        return {column.key: cells for column, cells, _ in laid_out(columns, across, "backlog", texts)}

    assert widths(116, 23)["topic"] == 23
    assert len(widths(116, 12)) - len(widths(116, 23)) in (0, 1)
    assert {"drain", "change", "trend", "outRate"} <= widths(116, 23).keys()
    assert {"drain", "change"} <= widths(76, 23).keys()  # these are more important than the end of a name


def test_several_topics_that_do_not_fit_are_one_and_a_number() -> None:
    topics = [f"persistent://public/default/orders-{at}" for at in range(3)]
    assert KINDS["topics"](topics, {}, 30)[0] == "orders-0, orders-1, orders-2"
    assert KINDS["topics"](topics, {}, 12)[0] == "orders-0 +2"
    assert KINDS["topics"](topics[:1], {}, 7)[0] == "orders…"


def test_the_widths_of_numbers_only_grow() -> None:
    columns = (Column("name", "NAME", 12, grow=True), Column("left", "LEFT", 9, "count"))
    wide = widest_numbers(columns, [{"left": 12_345}], {})
    assert wide == {"left": 6}
    assert widest_numbers(columns, [{"left": 1}], wide) == wide
    assert widest_numbers(columns, [{"left": 123_456}], wide) == {"left": 7}


@pytest.mark.parametrize("kind", _NUMBER_MAX)
def test_no_number_is_wider_than_its_column(kind: str) -> None:
    values = [scale * digits for scale in (10**at for at in range(-3, 14)) for digits in (1, 1.5, 9.99, 9.9951)]
    for value in (float(value) if kind != "count" else round(value) for value in values):
        if kind != "seconds" or value < 9_999 * 86_400:
            assert len(KINDS[kind](value, {}, 20)[0]) <= _NUMBER_MAX[kind], value


async def test_numbers_are_measured_only_if_a_text_is_cut() -> None:
    async with dashboard(size=WIDE, place="subscriptions") as driver:
        table = driver.table
        assert not {"backlog", "outRate"} & table._content.keys()
        rows = [dict(row, topic=f"a/b/{'long-' * 12}{at}") for at, row in enumerate(table._rows)]
        table.show(rows, 0, len(rows))
        assert table._content.keys() >= {"backlog", "outRate"}
