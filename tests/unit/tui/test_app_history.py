"""History on screens: numbers, rows and actions of another time are not shown as those of the time chosen."""

from collections.abc import Mapping

import pytest
from textual.widgets import Input

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.process.top import _at
from pulsarbox.client.transport.web import Reply
from pulsarbox.tui.actions.operation import Wrong
from pulsarbox.tui.position_input import now_ms, past
from tests.gallery.boxes import busy
from tests.unit.tui.driving import WIDE, Driver, dashboard
from tests.unit.tui.fake import NOW, FakeBox

HOUR = 3_600_000


class RecordedBox(FakeBox):
    """A box whose totals differ by the time that is asked for."""

    def _view(self, name: str, query: Mapping[str, str]) -> Reply:
        live, past_ms = self.totals, NOW - int(query.get("at", NOW))
        if past_ms:
            self.totals = {**live, "backlog": past_ms // 1000, "publishRate": None}
        try:
            return super()._view(name, query)
        finally:
            self.totals = live


async def travel(driver: Driver, text: str) -> None:
    await driver.press("t")
    await driver.at("Question", answered=False)
    driver.screen.query_one(Input).value = text
    await driver.press("enter")


@pytest.mark.parametrize("place", ["subscriptions", "clients", "storage", "events"])
async def test_the_top_line_has_the_numbers_of_the_time_shown(place: str) -> None:
    async with dashboard(RecordedBox(), WIDE, place=place) as driver:
        await driver.until(lambda: "backlog 1.23M" in driver.told("vitals") and "in 12.3k/s" in driver.told("vitals"))
        await travel(driver, str(NOW - HOUR))
        await driver.until(lambda: "backlog 3,600" in driver.told("vitals"))
        assert "in 12.3k/s" not in driver.told("vitals"), "a number that is not recorded is not that of now"
        await driver.press("left")
        await driver.until(lambda: "backlog 3,610" in driver.told("vitals"))
        asked = len(vitals_asked(driver))
        driver.app.ask_vitals()
        await driver.pilot.pause()
        assert len(vitals_asked(driver)) == asked, "the numbers of a past time do not change"
        await driver.press("n")
        await driver.until(lambda: "backlog 1.23M" in driver.told("vitals") and "in 12.3k/s" in driver.told("vitals"))


def vitals_asked(driver: Driver) -> list[str]:
    return [target for _, target, _ in driver.box.asked if "/top/overview" in target]


@pytest.mark.parametrize("place", ["clients", "storage", "plugins", "jobs"])
@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
async def test_views_that_are_not_recorded_are_empty_in_history(place: str, size: tuple[int, int]) -> None:
    async with dashboard(size=size, place=place) as driver:
        await driver.until(lambda: driver.table.count)
        await travel(driver, str(NOW - HOUR))
        await driver.until(lambda: "Not recorded." in driver.text())
        assert not driver.table.count and "not recorded. Press n" in driver.text()
        assert not any(word in driver.text() for word in ("commits", "disk free", "Latency", "█ live"))
        await driver.press("n")
        await driver.until(lambda: driver.table.count and "Not recorded." not in driver.text())
        assert place != "storage" or "disk free" in driver.text()


@pytest.mark.parametrize("key", ["6", "7", "9", "0"])
async def test_history_is_read_only_on_every_screen(key: str) -> None:
    async with dashboard(place="subscriptions", at=NOW - HOUR) as driver:
        assert " read-only " in driver.told("vitals")
        await driver.press(key)
        await driver.until(lambda: driver.screen.answered or driver.screen.trouble)
        await driver.until(lambda: not driver.app._vitals_asked)
        assert " read-only " in driver.told("vitals") and driver.app.read_only
        await driver.press("n")
        await driver.until(lambda: "read-only" not in driver.told("vitals"))


async def test_a_future_time_is_refused() -> None:
    async with dashboard(place="subscriptions") as driver:
        await travel(driver, "+5m")
        await driver.until(lambda: "in the future" in driver.text())
        assert driver.app.at is None


@pytest.mark.parametrize("text", ["+5m", "9000-01-01", "tomorrow", "-1000000", str(NOW + 10**6)])
def test_errors_of_times_recommend_only_past_ones(text: str) -> None:
    with pytest.raises(Wrong) as raised:
        past(text, NOW)
    told = str(raised.value)
    assert ("in the future" in told or "invalid time" in told) and "-8h" in told and "+" not in told.replace(text, "")


def test_times_of_history() -> None:
    assert past("-1h", NOW) == NOW - HOUR and past(str(NOW), NOW) == NOW and past("+5m") > NOW


def test_the_option_refuses_future_times_by_the_clock_of_the_box() -> None:
    box = FakeBox()
    with pytest.raises(Misused, match="in the future"):
        _at(box.feed, "+5m")
    box.virtual_clock = HOUR
    time, ahead = _at(box.feed, str(now_ms() + HOUR // 2))
    assert time is not None and time > now_ms() and ahead == HOUR
    box.gone = "connection refused"
    assert _at(box.feed, "+5m")[1] == 0, "the query for history reports that the box is gone"


@pytest.mark.parametrize(("key", "title"), [("m", "The cursor map"), ("K", "The key map")])
async def test_maps_of_now_are_not_shown_in_history(key: str, title: str) -> None:
    async with dashboard(busy(), WIDE, place="subscriptions") as driver:
        await driver.press(key)
        await driver.until(lambda: "waiting" in driver.text())
        await travel(driver, str(NOW - HOUR))
        await driver.until(lambda: f"✕ {title} is not recorded. Press n to return to now." in driver.text())
        assert "waiting" not in driver.text()
        await driver.press("n")
        await driver.until(lambda: "waiting" in driver.text() and "not recorded" not in driver.text())
