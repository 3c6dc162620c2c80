"""The steps of the tour: they follow the screens that a user opens, and name screens and keys that exist."""

import importlib
import re

from pulsarbox.cli.tour.scene import INVOICES
from pulsarbox.tui.actions.action_table import PLACES, REGISTRY
from pulsarbox.tui.app import SCREENS
from pulsarbox.tui.widgets.tour_guide import PAST_MS, STEPS, TourGuide
from tests.unit.tui.driving import SMALL, dashboard
from tests.unit.tui.fake import FakeBox, quota

KEYS = {key for action in REGISTRY for key in action.keys.split(",")}


def test_there_are_five_steps_and_they_name_screens() -> None:
    assert len(STEPS) == 5
    modules = {target.partition(":")[0] for target in SCREENS.values()} | {"subscription"}
    known = {name for module in modules for name in vars(importlib.import_module(f"pulsarbox.tui.screens.{module}"))}
    assert {step.screen for step in STEPS if step.screen} <= known


def test_the_keys_of_the_steps_exist() -> None:
    text = " ".join(step.text for step in STEPS)
    named = re.findall(r"press ([a-z0-9])\b|(?<=[.,] )([a-z])(?= [a-z])|(?<=: )([a-z])(?= changes)", text)
    keys = {key for found in named for key in found if key}
    assert {"4", "5", "m", "y", "f", "x", "t", "n", "q"} <= keys
    assert keys <= KEYS | {key for _, _, _, key in PLACES}


def test_opening_what_a_step_asks_for_turns_to_the_next() -> None:
    guide = TourGuide()
    guide.opened("Overview", in_the_past=False)
    assert guide.at == 0
    guide.opened("DeadLettersScreen", in_the_past=False)
    assert guide.at == 0  # not the next step
    for screen in ("SubscriptionDetails", "DeadLettersScreen", "Quotas"):
        guide.opened(screen, in_the_past=False)
    assert guide.at == 3
    guide.opened("Quotas", in_the_past=False)
    assert guide.at == 3
    guide.opened("Quotas", in_the_past=True)
    guide.opened("Quotas", in_the_past=True)
    assert guide.at == 4
    assert guide.text.startswith("Tour 5/5  This is the past")


def test_keys_turn_within_the_steps() -> None:
    guide = TourGuide()
    guide.turn(-1)
    assert guide.at == 0
    assert guide.text.endswith("   F2 next")
    guide.turn(99)
    assert guide.at == 4 and guide.text.endswith("   F2 hide   F3 back") and guide.lines(80) > 0


async def test_the_last_step_is_hidden_and_shown_again() -> None:
    guide = TourGuide()
    guide.turn(3)
    async with dashboard(FakeBox(), SMALL, guide=guide) as driver:
        await driver.press("f2")
        await driver.until(lambda: "Tour 5/5" in driver.text())
        keys = [each for strip in driver.strips() for each in strip if each.text in ("F2", "F3")]
        assert [each.text for each in keys if each.style is not None and each.style.bold] == ["F2", "F3"]
        await driver.press("f2")
        await driver.until(lambda: "Tour" not in driver.text())
        assert guide.lines(SMALL[0]) == 0
        await driver.press("f3")
        await driver.until(lambda: "Tour 5/5" in driver.text())


async def test_the_last_step_goes_to_the_past_and_the_others_return() -> None:
    box, guide = FakeBox(), TourGuide()
    guide.turn(2)
    async with dashboard(box, SMALL, guide=guide) as driver:
        await driver.press("f2")
        await driver.at("Quotas")
        await driver.press("f2")
        await driver.until(lambda: driver.app.at is not None)
        assert guide.at == 4 and PAST_MS <= driver.app.box_now() - (driver.app.at or 0) < 2 * PAST_MS
        await driver.press("f3")
        await driver.until(lambda: driver.app.at is None)
        await driver.pilot.pause()
        assert guide.at == 3


async def test_the_cursor_is_on_the_row_of_the_step_until_the_user_moves_it() -> None:
    assert [step.row["subject"] for step in STEPS if "subject" in step.row] == [INVOICES]
    box, guide = FakeBox(), TourGuide()
    box.rows["quotas"] = [quota(0), quota(1, subject=INVOICES, share=0.2)]
    box.rows["subscriptions"][1]["subscription"] = "shipping"
    async with dashboard(box, SMALL, guide=guide) as driver:
        await driver.press("enter")
        await driver.at("SubscriptionDetails")
        assert guide.at == 1 and driver.screen.row["subscription"] == "shipping"
        guide.at = 2
        await driver.press("5")
        await driver.at("Quotas")
        assert guide.at == 3 and driver.table.pointed is not None
        assert driver.table.pointed["subject"] == INVOICES and driver.table.cursor_in_view
        answered = driver.screen.answered
        await driver.press("k", "r")
        await driver.until(lambda: driver.screen.answered > answered)
        assert driver.table.pointed["subject"] != INVOICES


async def test_keys_go_to_the_screens_of_the_steps_from_anywhere() -> None:
    box, guide = FakeBox(), TourGuide()
    box.rows["subscriptions"][1]["subscription"] = "shipping"
    async with dashboard(box, SMALL, guide=guide) as driver:
        await driver.until(lambda: "shipping" in driver.text())
        await driver.press("f2")
        await driver.at("SubscriptionDetails")
        assert guide.at == 1 and driver.screen.row["subscription"] == "shipping"
        await driver.press("f2")
        await driver.at("DeadLettersScreen")
        await driver.press("f2")
        await driver.at("Quotas")
        assert guide.at == 3
        await driver.press("f3")
        await driver.at("DeadLettersScreen")
        assert guide.at == 2
        await driver.press("question_mark", "f3")
        await driver.at("SubscriptionDetails")
        assert guide.at == 1
        await driver.press("6", "f3")
        await driver.at("Overview")
        assert guide.at == 0
