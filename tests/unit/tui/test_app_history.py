"""History on screens: numbers, rows and actions of another time are not shown as those of the time chosen."""

import shlex
from collections.abc import Mapping
from typing import Any

import pytest
from textual.widgets import Input

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.process.top import _at
from pulsarbox.server.recording.history_recorder import RECORDED
from pulsarbox.tui import views
from pulsarbox.tui.actions.operation import Wrong
from pulsarbox.tui.position_input import now_ms, past
from tests.gallery.boxes import busy
from tests.unit.tui.driving import WIDE, Driver, dashboard
from tests.unit.tui.fake import NOW, FakeBox

HOUR = 3_600_000


class RecordedBox(FakeBox):
    """A box whose totals differ by the time that is asked for."""

    def totals_at(self, time: int) -> Mapping[str, Any]:
        if time == NOW:
            return self.totals
        return {**self.totals, "backlog": (NOW - time) // 1000, "publishRate": None}


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
        await driver.until(lambda: not driver.app._vitals_asked)  # the rows may have arrived first, with these numbers
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


async def test_groups_of_now_are_not_shown_in_history() -> None:
    async with dashboard(busy(), WIDE, place="deadletters") as driver:
        await driver.until(lambda: "enter failures" in driver.told("hints"))
        await driver.press("enter")
        await driver.until(lambda: "Groups of orders-0" in driver.text() and driver.table.count)
        await travel(driver, str(NOW - HOUR))
        await driver.until(lambda: "✕ Groups of failures are not recorded. Press n to return to now." in driver.text())
        assert driver.table.count == 0 and driver.screen.copied_command() == ""
        await driver.press("escape")
        await driver.until(lambda: ">orders-0" in driver.text() and "failures" not in driver.told("hints"))
        await driver.press("enter")
        await driver.until(lambda: "✕ Groups of failures" in driver.text())
        await driver.press("n")
        await driver.until(lambda: driver.table.count and "not recorded" not in driver.text())


def time_of(command: str) -> int:
    """The time of history that a command names."""
    words = shlex.split(command)
    return past(words[words.index("--at") + 1])


@pytest.mark.parametrize("time", [NOW - HOUR, NOW - HOUR + 123])
@pytest.mark.parametrize(
    ("place", "command"),
    [
        ("overview", "pulsarbox top --once --at "),
        ("topics", "pulsarbox top topics --once --at "),
        ("subscriptions", "pulsarbox top subscriptions --once --at "),
        ("quotas", "pulsarbox top quotas --once --at "),
        ("deadletters", "pulsarbox top deadletters --once --at "),
    ],
)
async def test_the_command_of_history_has_its_time(place: str, command: str, time: int) -> None:
    async with dashboard(busy(), WIDE, place=place, at=time) as driver:
        copied = driver.screen.copied_command()
        assert copied.startswith(command) and time_of(copied) == time
        await driver.press("y")
        await driver.until(lambda: copied in driver.said)
        driver.app.do_live()
        assert "--at" not in driver.screen.copied_command()


async def test_commands_of_history_have_filter_order_and_scope() -> None:
    feed = busy().feed
    feed.scope = {"tenant": "public"}
    box = busy()
    box.feed = feed
    async with dashboard(box, WIDE, place="subscriptions", passing="backlog > 9", at=NOW - HOUR) as driver:
        copied = shlex.split(driver.screen.copied_command())
        assert copied[copied.index("--filter") + 1] == "backlog > 9" and copied[-2:] == ["--tenant", "public"]
        await driver.press("1")
        await driver.until(lambda: type(driver.screen).__name__ == "Overview" and driver.screen.is_whole)
        assert not driver.screen.copied_command(), "it is not recorded per tenant"


async def test_a_subscription_and_the_topic_map_of_history_have_commands() -> None:
    async with dashboard(busy(), WIDE, place="subscriptions", at=NOW - HOUR) as driver:
        row = driver.table.pointed
        assert row is not None
        await driver.press("enter")
        await driver.until(lambda: type(driver.screen).__name__ == "SubscriptionDetails" and driver.screen.is_whole)
        copied = driver.screen.copied_command()
        words = shlex.split(copied)
        assert words[1:3] == ["top", "subscriptions"] and time_of(copied) == NOW - HOUR
        assert row["topic"] in words[words.index("--filter") + 1] and "--once" in words
        await driver.press("2", "M")
        await driver.at("TopicMap")
        await driver.press("s")
        copied = driver.screen.copied_command()
        assert (
            copied.startswith("pulsarbox top topics --once --sort publishRate --at ") and time_of(copied) == NOW - HOUR
        )


@pytest.mark.parametrize("place", ["clients", "storage", "plugins", "jobs", "pipelines"])
async def test_what_is_not_recorded_has_no_command_in_history(place: str) -> None:
    async with dashboard(busy(), WIDE, place=place, at=NOW - HOUR) as driver:
        assert not driver.screen.copied_command()
        driver.screen.refresh_status_lines()
        assert "pulsarbox" not in driver.told("told") and "copy" not in driver.told("hints")
        await driver.press("y")
        assert not driver.said


async def test_the_command_of_events_ends_at_the_time_of_history() -> None:
    async with dashboard(busy(), WIDE, place="events", at=NOW - HOUR) as driver:
        assert driver.screen.copied_command() == f"pulsarbox events --filter 'time <= {NOW - HOUR}'"
        await driver.filter("count > 0")
        copied = shlex.split(driver.screen.copied_command())
        assert copied[-1] == f"(count > 0) and time <= {NOW - HOUR}"
        await driver.filter("/orders")
        assert not driver.screen.copied_command(), "a pattern cannot be combined"


def test_the_recorded_views_are_those_of_the_box() -> None:
    assert set(views.RECORDED) == set(RECORDED)


@pytest.mark.parametrize("place", ["overview", "topics", "subscriptions"])
async def test_history_advises_nothing(place: str) -> None:
    box = FakeBox()
    for rows in box.rows.values():
        rows.clear()
    box.totals["topics"] = 0
    async with dashboard(box, (200, 50), place=place) as driver:
        await driver.until(lambda: "pulsarbox produce" in driver.text() or "pulsarbox consume" in driver.text())
        await travel(driver, str(NOW - HOUR))
        await driver.until(lambda: " pulsarbox " not in "\n".join(driver.lines()[2:-2]))
        assert "Nothing needs attention." in driver.text() or "No topics." in driver.text() or "No sub" in driver.text()
        assert "--at" in driver.screen.copied_command()
