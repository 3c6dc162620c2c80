"""Queries to the box: those of the visible screen, and the first ones before a screen exists."""

from urllib.parse import parse_qs, urlsplit

import pytest

from pulsarbox.server.live import overview
from pulsarbox.server.live.table import VIEWS as BOX
from pulsarbox.tui import views
from pulsarbox.tui.actions.box_queries import (
    PANELS,
    VITALS,
    first,
    of_growing,
    of_numbers,
    of_panel,
    of_unused,
    of_vitals,
)
from pulsarbox.tui.feed import VIEWS, FeedError, RowQuery
from pulsarbox.tui.preferences import Preferences
from pulsarbox.tui.screens.maps.space_map import OffloadedQuery
from pulsarbox.tui.widgets.columns import laid_out
from tests.tools.campaigns import short
from tests.unit.tui.driving import SMALL, WIDE, Driver, dashboard
from tests.unit.tui.fake import FakeBox

FORESEEN = (
    "overview",
    "topics",
    "subscriptions",
    "quotas",
    "deadletters",
    "clients",
    "plugins",
    "storage",
    "pipelines",
)


def asked_columns(target: str) -> set[str]:
    return set(parse_qs(urlsplit(target).query)["columns"][0].split(","))


@pytest.mark.parametrize("place", FORESEEN)
@pytest.mark.parametrize("size", short([(SMALL,), (WIDE,)], 1))
async def test_what_a_first_screen_asks_is_known_before_there_is_one(place: str, size: tuple[int, int]) -> None:
    kept = Preferences(None)
    kept.set_once(f"sort.{place}", ["topic", False])
    passing = "" if place == "overview" else "x"
    known = sorted(query.target for query in first(place, kept, size, passing))
    later = {OffloadedQuery.target, of_growing().target, of_unused().target}
    async with dashboard(FakeBox(), size, kept=kept, place=place, passing=passing) as driver:

        def asked() -> list[str]:
            """The requests for views, except for those that depend on the first responses."""
            views_asked = [target for _, target, _ in driver.box.asked if target.startswith(VIEWS)]
            return sorted(target for target in views_asked if target not in later)

        await driver.until(lambda: len(asked()) >= len(known))
        assert known == asked()


async def test_the_line_at_the_top_has_its_numbers_as_soon_as_another_screen_is_seen() -> None:
    """The screen change updates the numbers without the timer, whose period is 2 s."""
    async with dashboard(place="quotas") as driver:
        await driver.until(lambda: "backlog 1.23M" in driver.told("vitals"))
        for number, key in enumerate("2389", 2):
            driver.box.totals["backlog"] = 1000 * number
            await driver.press(key)
            await driver.until(lambda number=number: f"backlog {number},000" in driver.told("vitals"))  # type: ignore[misc]


def test_of_screens_that_list_nothing_by_views_no_question_is_known() -> None:
    assert first("events", Preferences(None), WIDE) == first("jobs", Preferences(None), WIDE) == []


@pytest.mark.parametrize("view", [views.TOPICS, views.SUBSCRIPTIONS, views.QUOTAS])
def test_what_is_asked_for_the_box_has(view: views.TableView) -> None:
    assert set(view.asked(view.columns)) <= set(BOX[view.name].columns)


def test_what_the_overview_asks_for_the_box_has() -> None:
    assert {*of_numbers().columns, *of_vitals().columns, *VITALS} <= set(overview.COLUMNS)
    for query in (of_growing(), of_unused()):
        assert set(query.columns) <= set(BOX["subscriptions"].columns)
    for name in ("backlog", "change", "consumers"):
        assert BOX["subscriptions"].columns[name].kept, "sorting and filtering by it is cheap"
    for panel in PANELS:
        assert set(of_panel(panel).columns) <= set(BOX[panel.view.name].columns)
        asked = of_panel(panel).columns
        assert not asked or {column.key for column in panel.columns} <= set(asked)
        assert ("change" in of_panel(panel).columns) == (panel.view is views.SUBSCRIPTIONS), "of a limit it is dear"


def test_columns_that_have_no_room_are_not_asked_for() -> None:
    view = views.SUBSCRIPTIONS
    narrow = view.asked([column for column, _, _ in laid_out(view.columns, 78)])
    wide = view.asked([column for column, _, _ in laid_out(view.columns, 158)])
    assert {"oldest", "trend"} <= set(wide) - set(narrow)
    assert {"topic", "subscription", "type", "backlog", "cause", "causeText"} <= set(narrow)


async def test_columns_that_are_taken_away_are_not_asked_for_any_more() -> None:
    def asked(driver: Driver) -> set[str]:
        return asked_columns([target for _, target, _ in driver.box.asked if "/subscriptions?" in target][-1])

    async with dashboard(place="subscriptions") as driver:
        assert {"trend", "oldest"} <= asked(driver)
        shown = [column for column in driver.table.columns if column.key not in ("trend", "oldest")]
        driver.table.set_columns(shown)
        await driver.press("r")
        await driver.until(lambda: not {"trend", "oldest"} & asked(driver))


def test_a_view_that_says_nothing_of_it_is_asked_for_all() -> None:
    assert views.CLIENTS.asked(views.CLIENTS.columns) == ()
    assert RowQuery("clients").target == f"{VIEWS}/clients?offset=0&limit=60"


def test_what_was_foreseen_is_asked_once_and_given_to_the_first_who_asks() -> None:
    box = FakeBox()
    soon, other = RowQuery("subscriptions", limit=3), RowQuery("topics", limit=2)
    box.feed.prefetch([soon, other])
    assert [row["topic"] for row in box.feed.view(soon).rows] == [row["topic"] for row in box.rows["subscriptions"][:3]]
    assert box.feed.view(other).total == 40
    assert [target for _, target, _ in box.asked] == [soon.target, other.target]
    box.feed.view(soon)
    assert [target for _, target, _ in box.asked] == [soon.target, other.target, soon.target]


def test_trouble_that_was_foreseen_is_told_to_the_first_who_asks() -> None:
    box = FakeBox()
    box.gone = "Connection refused"
    box.feed.prefetch([RowQuery("topics")])
    with pytest.raises(FeedError, match="Connection refused"):
        box.feed.view(RowQuery("topics"))
    box.gone = ""
    assert box.feed.view(RowQuery("topics")).total == 40
