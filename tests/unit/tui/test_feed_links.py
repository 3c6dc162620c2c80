"""The connection of the dashboard to the box: interrupted, slow, refused, read-only, and its messages."""

import threading
from typing import Any

import pytest

from pulsarbox.client.transport.web import Reply
from pulsarbox.tui.position_input import now_ms
from tests.unit.tui.driving import SMALL, WIDE, dashboard
from tests.unit.tui.fake import FakeBox, subscription


async def test_a_box_that_goes_away_leaves_what_is_known_and_comes_back() -> None:
    async with dashboard(place="subscriptions") as driver:
        driver.box.gone = "Connection refused"
        await driver.press("r")
        await driver.until(lambda: driver.screen.trouble)
        await driver.pilot.pause()
        text = driver.text()
        assert "cannot connect to http://box:8080: Connection refused" in text
        assert "Showing data from" in text and "orders-0 " in text
        driver.box.gone = ""
        await driver.press("r")
        await driver.until(lambda: "The box is reachable again." in driver.said)
        assert "is not reached" not in driver.text()


async def test_a_box_that_was_never_there_is_said_on_every_screen() -> None:
    box = FakeBox()
    box.gone = "Connection refused"
    async with dashboard(box, SMALL) as driver:
        for key in "1234560789P":
            await driver.press(key)
            await driver.until(lambda: driver.screen.trouble)
            await driver.pilot.pause()
            told = " ".join(driver.text().split())
            assert "Connection refused; retrying every 60 s (r: now). Start the box with `pulsarbox start`" in told
            assert driver.text().count("No connection to the box.") == (4 if key == "1" else 1)


async def test_on_a_narrow_terminal_the_remedy_is_not_cut_off() -> None:
    box = FakeBox()
    box.gone = "Connection refused"
    async with dashboard(box, (40, 24), place="topics") as driver:
        await driver.until(lambda: "or check --admin-url." in " ".join(driver.text().split()))


async def test_a_refusal_says_why_and_what_to_do() -> None:
    box = FakeBox()
    box.refused = (403, "role alice has no permission")
    async with dashboard(box, WIDE, place="topics") as driver:
        assert "role alice has no permission" in driver.text()
        assert "docs/security.md" in driver.text()
        assert "A permission is missing." in driver.text() and "press r" not in driver.text()


async def test_a_stopped_box_says_once_what_starts_it() -> None:
    box = FakeBox()
    box.refused = (503, "quotas require a running box: start it with `pulsarbox start`")
    async with dashboard(box, WIDE, place="quotas") as driver:
        assert driver.text().count("pulsarbox start") == 1 and "Needs a running box." in driver.text()


async def test_a_failed_request_can_be_repeated() -> None:
    box = FakeBox()
    box.refused = (500, "disk I/O error")
    async with dashboard(box, WIDE, place="topics") as driver:
        assert "✕ disk I/O error; press r to retry" in driver.text()
        assert "The request failed." in driver.text()


async def test_an_answer_to_an_earlier_question_is_not_shown() -> None:
    """On a slow link, one request runs at a time; of those queued meanwhile, only the last is sent."""
    box = FakeBox()
    real, held, entered = box.exchange, threading.Event(), threading.Event()

    def slow(method: str, target: str, body: bytes | None) -> Reply:
        reply = real(method, target, body)
        if "filter=slow" in target:
            entered.set()
            held.wait(60)
        return reply

    box.feed._exchange = slow
    async with dashboard(box, WIDE, place="subscriptions") as driver:
        driver.screen.filter = "slow"
        driver.screen.ask_again()
        await driver.until(entered.is_set)
        before = len(box.asked)
        for text in ("backlog > 998", "backlog > 990"):
            driver.screen.filter = text
            driver.screen.ask_again()
        assert len(box.asked) == before, "nothing more while one is under way"
        await driver.press("j")
        held.set()
        await driver.until(lambda: driver.table.count == 10)
        assert len(box.asked) == before + 1


async def test_it_asks_by_itself_but_not_below_a_dialog_nor_paused() -> None:
    async with dashboard(place="subscriptions", interval=0.1) as driver:
        before = len(driver.box.asked)
        await driver.until(lambda: len(driver.box.asked) > before + 2)
        await driver.press("s")
        await driver.at("ChoiceDialog", answered=False)
        await driver.pilot.pause(0.2)
        before = len(driver.box.asked)
        await driver.pilot.pause(0.5)
        assert len(driver.box.asked) == before
        await driver.press("escape")
        await driver.until(lambda: len(driver.box.asked) > before)
        await driver.press("p")
        await driver.until(lambda: "paused" in driver.told("vitals"))
        assert "every" not in driver.told("vitals")
        await driver.pilot.pause(0.2)
        before = len(driver.box.asked)
        await driver.pilot.pause(0.5)
        assert len(driver.box.asked) == before
        await driver.press("p")
        await driver.until(lambda: len(driver.box.asked) > before)
        await driver.press("minus")
        await driver.until(lambda: "every 0.2s" in driver.told("vitals"))


async def test_old_numbers_say_how_old_they_are() -> None:
    async with dashboard(place="subscriptions", interval=0.1) as driver:
        held = threading.Event()
        real = driver.box.exchange

        def slow(method: str, target: str, body: bytes | None) -> Reply:
            held.wait(60)
            return real(method, target, body)

        driver.app.feed._exchange = slow
        await driver.until(lambda: "stale" in driver.told("vitals"))
        held.set()
        await driver.until(lambda: "stale" not in driver.told("vitals"))


async def test_read_only_is_the_word_of_the_box_or_of_the_option() -> None:
    for by_box in (True, False):
        box = FakeBox()
        box.read_only = by_box
        async with dashboard(box, WIDE, place="subscriptions", read_only=not by_box) as driver:
            assert "read-only" in driver.told("vitals")
            await driver.press("colon")
            await driver.type("sub clear")
            await driver.press("enter")
            await driver.until(lambda: driver.said)
            assert "read-only" in driver.said[-1]
            assert box.changes() == [] and len(driver.app.screen_stack) == 1
            await driver.press("x")
            await driver.at("ChoiceDialog", answered=False)
            assert "Browse the messages" in driver.text() and "Clear" not in driver.text()
            await driver.press("escape", "9")  # a list response does not report the read-only state
            await driver.at("EventsScreen")
            assert "read-only" in driver.told("vitals")


async def test_times_of_history_are_by_the_clock_of_the_box() -> None:
    box = FakeBox()
    box.virtual_clock = 8 * 3_600_000
    async with dashboard(box, WIDE, place="subscriptions") as driver:
        await driver.press("t")
        await driver.at("Question", answered=False)
        await driver.type("-1h")
        before = now_ms()
        await driver.press("enter")
        await driver.until(lambda: driver.app.at is not None)
        assert driver.app.at is not None and 0 <= driver.app.at - before - 7 * 3_600_000 < 60_000
        await driver.press("right")
        await driver.until(lambda: "at=" in box.asked_rows())
        assert driver.app.at is not None, "seven hours ahead of here is still before now"


HOSTILE = "evil\x1b]52;c;aGk=\x07\x1b[2J\x9b31m\u202egnp.exe"


async def test_nothing_that_comes_from_the_box_speaks_to_the_terminal() -> None:
    box = FakeBox()
    name = f"persistent://public/default/{HOSTILE}"
    box.rows["subscriptions"] = [subscription(0, topic=name, subscription=HOSTILE, causeText=HOSTILE)]
    box.rows["topics"][0]["topic"] = name
    box.totals["clusterName"] = HOSTILE
    bad = {*HOSTILE} - {*HOSTILE.encode("ascii", "ignore").decode()} | {"\x1b", "\x07"}

    def clean(text: Any) -> bool:
        return not any(one in text for one in bad)

    async with dashboard(box, WIDE) as driver:
        for keys in (["1"], ["2"], ["3"], ["x"], ["escape", "enter"], ["escape", "y"]):
            await driver.press(*keys)
            await driver.pilot.pause(0.1)
            assert clean(driver.text())
            assert all(clean(each) for each in driver.said)
        assert "evil" in driver.text()
        assert clean(driver.app.clipboard), "the line is quoted for a shell"
        assert "\\x1b" in driver.app.clipboard
    assert all("%1B%5D52" in target or "%1B" not in target for _, target, _ in box.asked), "asked by its real name"


@pytest.mark.parametrize("keys", [("b",), ("b", "enter")])
async def test_screens_without_requests_of_their_own_report_a_lost_box(keys: tuple[str, ...]) -> None:
    async with dashboard(place="subscriptions") as driver:
        for key, name in zip(keys, ("Browser", "MessageViewer"), strict=False):
            await driver.press(key)
            await driver.at(name)
        await driver.until(lambda: not driver.app._vitals_asked)
        driver.box.gone = "connection refused"
        driver.app.ask_vitals()
        await driver.until(lambda: "connection refused; retrying" in driver.text())
        driver.screen.ask_again()
        await driver.pilot.pause(0.05)
        assert "connection refused; retrying" in driver.text(), "no request was sent, so nothing is known to be better"
        driver.box.gone = ""
        driver.app.ask_vitals()
        await driver.until(lambda: "connection refused" not in driver.text() and not driver.screen.trouble)


async def test_no_coroutine_is_left_if_the_dashboard_ends_before_it_runs(recwarn: pytest.WarningsRecorder) -> None:
    async with dashboard(place="subscriptions") as driver:
        started: list[Any] = []
        driver.app.run_worker = lambda work, **_: started.append(work)  # type: ignore[method-assign,assignment]
        driver.screen.run_worker = driver.app.run_worker
        driver.screen.ask_again()
        driver.app.ask_vitals()
        assert len(started) == 2 and all(callable(work) for work in started)
        driver.screen._asking = driver.app._vitals_asked = False
        del driver.app.run_worker, driver.screen.run_worker
    assert not [each for each in recwarn if "never awaited" in str(each.message)]
