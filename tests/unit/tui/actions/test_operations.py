"""Changing operations: one registry, a frozen target, a typed name, and the equivalent command."""

import json
import re
import shlex
from collections.abc import Sequence

import click
import pytest
from textual import events
from textual.widgets import Input, OptionList, Static

from pulsarbox.broker.stats.blocked_reason_text import TEXTS
from pulsarbox.cli.main import main
from pulsarbox.tui.actions.action_table import BY_NAME, CONTENT, REGISTRY, named
from pulsarbox.tui.actions.advice import ADVICE, advice
from pulsarbox.tui.actions.dialogs import brief_hint_of
from pulsarbox.tui.actions.operation import Wrong, default_of, explained_of
from pulsarbox.tui.actions.operations import BY_NAME as DEED_BY_NAME
from pulsarbox.tui.actions.operations import DEEDS
from pulsarbox.tui.position_input import instant, place, span
from pulsarbox.tui.screens.messages.browser import start_of
from pulsarbox.tui.widgets import command_lines
from pulsarbox.tui.widgets.table import Table
from tests.unit.tui.driving import SMALL, WIDE, Driver, dashboard
from tests.unit.tui.fake import FakeBox, client, dead_letters, quota, subscription, topic

ROWS = {
    "subscription": subscription(3),
    "topic": topic(3),
    "client": client(7),
    "deadletters": dead_letters(3),
    "quota": quota(3),
}


def examples() -> list[tuple[str, str]]:
    return [(deed.name, kind) for deed in DEEDS for kind in deed.on if kind in ROWS]


def parse(arguments: Sequence[str]) -> None:
    """Fail if there is no such command with these arguments."""
    words = shlex.split(command_lines.line(*arguments))
    assert words.pop(0) == "pulsarbox"
    command: click.Command = main
    context = click.Context(main, **main.context_settings)  # a command caches the help options of its first context
    while isinstance(command, click.Group):
        command = command.get_command(context, words.pop(0)) or pytest.fail(f"no such command: {arguments}")
    command.make_context(command.name, words, parent=context)


def test_the_commands_of_screens_about_a_row_are_some_that_there_are() -> None:
    found = {(each.name, kind): each.words(ROWS[kind]) for each in REGISTRY for kind in each.on if kind in ROWS}
    commands = {which: " ".join(words) for which, words in found.items() if words}
    assert commands == {
        ("messages", "topic"): "peek orders-3 --from -10",
        ("messages", "subscription"): "peek orders-3 -s billing",
        ("messages", "deadletters"): "peek orders-3-billing-DLQ --from -10",
        ("cursor map", "subscription"): "sub holes orders-3 billing",
    }
    for which in commands:
        parse(found[which])
    assert BY_NAME["messages"].words({"output": "/data/parquet"}) == []


@pytest.mark.parametrize(("name", "kind"), examples())
def test_the_command_of_a_deed_is_one_that_there_is(name: str, kind: str) -> None:
    deed = next(each for each in DEEDS if each.name == name)
    values = {field.name: default_of(field, ROWS[kind]) for field in deed.fields}
    parse(deed.words(ROWS[kind], values))
    requests = deed.requests(ROWS[kind], values)
    assert requests and all(request.target.startswith(("/admin/v2/", "/pulsarbox/v1/")) for request in requests)


def test_every_action_has_a_name_of_its_own_and_no_two_the_same_key() -> None:
    names = [action.name for action in REGISTRY]
    assert len(names) == len(set(names))
    for is_content in (False, True):  # the screen with one message has keys of its own
        actions = [each for each in REGISTRY if (each.on == (CONTENT,)) == is_content and each.keys]
        keys = [key for each in actions for key in each.keys.split(",")]
        assert len(keys) == len(set(keys))
    assert named("sub cl") is not None and named("sub cl") == named("sub clear")
    assert named("sub") is None and named("") is None


def test_hints_fit_into_their_fields() -> None:
    for deed in DEEDS:
        for field in deed.fields:
            assert len(brief_hint_of(field)) <= 42 or default_of(field, subscription(0)), (deed.name, field.name)


def test_the_key_map_is_offered_for_key_shared_only() -> None:
    action = BY_NAME["key map"]
    assert action.fits(subscription(0, type="Key_Shared"))
    assert not action.fits(subscription(0, type="Shared")) and not action.fits(subscription(0, type=None))


@pytest.mark.parametrize(
    ("kinds", "effects"),
    [
        (["producer"], "Closes the producer. Its client publishes messages without a receipt again."),
        (["consumer", "consumer"], "Closes the consumer. Its unacknowledged messages are redelivered."),
        (
            ["connection"],
            "Closes the connection and its producers and consumers. Unacknowledged messages are redelivered.",
        ),
        (
            ["consumer", "producer"],
            "Closes the consumer. Its unacknowledged messages are redelivered. "
            "Closes the producer. Its client publishes messages without a receipt again.",
        ),
    ],
)
def test_a_disconnection_is_explained_by_the_kind_of_client(kinds: list[str], effects: str) -> None:
    rows = [client(at, kind=kind) for at, kind in enumerate(kinds)]
    assert explained_of(DEED_BY_NAME["client kick"], rows) == effects


def test_a_skip_counts_entries() -> None:
    skip = DEED_BY_NAME["sub skip"]
    assert skip.fields[0].title == "Number of entries"
    assert "An entry is one message, or one batch of messages." in explained_of(skip, [])


async def test_a_backlog_is_cleared_once_its_name_is_typed_and_only_that_one() -> None:
    async with dashboard(place="subscriptions", size=SMALL) as driver:
        await driver.press("j", "x")
        await driver.at("ChoiceDialog", answered=False)
        assert "! Clear the backlog" in driver.text()
        options = driver.screen.query_one(OptionList)
        while "Clear" not in str(options.get_option_at_index(options.highlighted or 0).prompt):
            await driver.press("j")
        assert "pulsarbox sub clear orders-1 billing --yes" in driver.text()
        await driver.press("y")
        assert driver.app.clipboard == "pulsarbox sub clear orders-1 billing --yes"
        driver.box.rows["subscriptions"][1]["backlog"] = 5_000_000
        await driver.press("enter")
        await driver.at("OperationDialog", answered=False)
        assert "billing of orders-1" in driver.text() and "persistent://" not in driver.text()
        await driver.press("enter")
        await driver.until(
            lambda: "type 'billing' to confirm" in str(driver.screen.query_one("#wrong", Static).content)
        )
        await driver.type("billin")
        await driver.press("enter")
        assert driver.box.changes() == []
        await driver.type("g")
        await driver.press("enter")
        path = "/admin/v2/persistent/public/default/orders-1/subscription/billing/skip_all"
        await driver.until(lambda: driver.box.changes() == [("POST", path, None)])
        await driver.until(lambda: "Clear the backlog: done" in driver.said)


async def test_what_lags_is_dealt_with_from_the_overview_and_from_its_map() -> None:
    async with dashboard() as driver:
        driver.screen.set_focus(driver.screen.query_one("#subscriptions", Table))
        await driver.press("x")
        await driver.at("ChoiceDialog", answered=False)
        assert "Clear the backlog" in driver.text()
        await driver.press("escape", "b")
        await driver.at("Browser")
        await driver.press("escape", "m")
        await driver.at("CursorMapScreen")
        await driver.press("x")
        await driver.at("ChoiceDialog", answered=False)
        assert "Clear the backlog" in driver.text() and "billing of orders-0" in driver.text()


async def test_all_marked_rows_at_once_by_their_number() -> None:
    async with dashboard(place="subscriptions") as driver:
        await driver.press("space", "space", "colon")
        await driver.type("sub expire")
        await driver.press("enter")
        await driver.at("OperationDialog", answered=False)
        fields = list(driver.screen.query(Input))
        fields[0].value = "nonsense"
        fields[1].value = "2"
        fields[1].focus()
        await driver.press("enter")
        await driver.until(lambda: "invalid duration" in str(driver.screen.query_one("#wrong", Static).content))
        fields[0].value = "2h"
        await driver.pilot.pause()
        assert "sub expire orders-0 billing --older 2h --yes" in driver.text()
        assert "sub expire orders-1 billing --older 2h --yes" in driver.text()
        await driver.press("enter")
        await driver.until(lambda: len(driver.box.changes()) == 2)
        assert {target for _, target, _ in driver.box.changes()} == {
            f"/admin/v2/persistent/public/default/orders-{number}/subscription/billing/expireMessages/7200"
            for number in (0, 1)
        }


async def test_a_refusal_ends_it_and_is_said() -> None:
    box = FakeBox()
    refused = "/admin/v2/persistent/public/default/orders-0/unload"
    box.answers["PUT", refused] = lambda query, body: (_ for _ in ()).throw(AssertionError)
    async with dashboard(box, WIDE, place="topics") as driver:
        await driver.press("colon")
        await driver.type("topic unload")
        await driver.press("enter")
        await driver.at("OperationDialog", answered=False)
        box.refused = (412, "topic has no owner")
        await driver.press("enter")
        await driver.until(lambda: any("topic has no owner" in each for each in driver.said))
        box.refused = None
        await driver.press("x", "escape", "escape")


async def test_words_and_palette_do_the_same_as_keys() -> None:
    async with dashboard() as driver:
        await driver.press("colon")
        await driver.type("topics")
        await driver.press("enter")
        await driver.at("TopicsScreen")
        await driver.press("colon")
        await driver.type("nonsense")
        await driver.press("enter")
        await driver.until(lambda: any("'nonsense' is not a command" in each for each in driver.said))
        assert {each.title for each in driver.app._notifications} == {"Warning"}, "the color is not the only sign"
        await driver.press("ctrl+p")
        await driver.until(lambda: type(driver.screen).__name__ == "ActionPalette")
        await driver.type("Quotas")
        await driver.until(
            lambda: "Quotas" in str(driver.screen.query(OptionList).first().get_option_at_index(0).prompt)
        )
        driver.screen.query(OptionList).first().highlighted = 0
        await driver.press("enter")
        await driver.at("Quotas")
        await driver.press("question_mark")
        await driver.at("TextDialog", answered=False)
        assert "Change" in driver.text() or "filter" in driver.text()
        await driver.press("escape")
        await driver.at("Quotas")


async def test_what_is_typed_at_once_finds_the_screen_that_it_is_for() -> None:
    async with dashboard(size=SMALL) as driver:
        for key in ("3", "slash", *"orders", "minus", "7", "enter"):
            driver.app.post_message(events.Key(key, {"slash": "/", "minus": "-", "enter": "\r"}.get(key, key)))
        await driver.at("Subscriptions")
        await driver.until(lambda: driver.screen.filter == "/orders-7" and driver.table.count == 1)


def typed_at_once(driver: Driver, *keys: str) -> None:
    """Send keys without waits, like a fast typist on a busy machine."""
    for key in keys:
        driver.app.post_message(events.Key(key, key if len(key) == 1 else None))


async def test_what_is_typed_and_taken_at_once_is_taken_whole() -> None:
    """Truncated input would start a job at a tenth of its rate, or publish half of a payload."""
    box = FakeBox()
    box.rows["deadletters"][:] = [dead_letters(0)]
    async with dashboard(box, place="deadletters") as driver:
        await driver.press("R")
        await driver.at("OperationDialog", answered=False)
        await driver.press("down", "end")
        typed_at_once(driver, *"00", "backspace", "ctrl+y", "ctrl+s")
        await driver.until(box.changes)
        assert box.changes()[0][2]["rate"] == 1000
        assert "--rate 1000 " in driver.app.clipboard
        await driver.at("DeadLettersScreen")
        await driver.press("b")
        await driver.at("Browser")
        await driver.until(lambda: driver.table.pointed is not None)
        await driver.press("E")
        await driver.at("Editing", answered=False)
        await driver.press("end", "backspace")
        typed_at_once(driver, *"75}", "ctrl+s")
        await driver.at("OperationDialog", answered=False)
        assert json.loads(driver.screen.values["edit"])["payload"].endswith('"amount": 12.575}')


def test_places_and_times_are_those_of_the_command_line() -> None:
    now = 1_795_300_000_000
    assert place("earliest") == {"ledgerId": -1, "entryId": -1}
    assert isinstance(place("-1h"), int) and place("2026-11-21T10:00") == place("@2026-11-21 10:00")
    assert place("12:34") == {"ledgerId": 12, "entryId": 34}
    assert instant("-1h", now) == now - 3_600_000
    at = instant("03:12", now)
    assert now - 86_400_000 < at <= now and at % 60_000 == 0
    assert span("1h30m") == 5400
    for read, text in ((place, "somewhere"), (instant, "gestern"), (span, "2")):
        with pytest.raises(Wrong):
            read(text)


@pytest.mark.parametrize("text", ["03:12", "12:34", "23:59:59", "@12:34"])
def test_what_a_clock_shows_is_a_time_in_the_browser(text: str) -> None:
    now = 1_795_300_000_000
    found = start_of(text, now)
    assert now - 86_400_000 < int(found.start) <= now and found.forward


@pytest.mark.parametrize("text", ["xy", "2026-13-01", "12:34:x"])
def test_an_invalid_position_in_the_browser_is_answered_with_all_that_are_valid(text: str) -> None:
    with pytest.raises(Wrong, match=f"^invalid position '{text}': expected ") as wrong:
        start_of(text)
    words = str(wrong.value).partition(": expected ")[2]
    for example in re.split(r", or a time: |, ", words.replace("ledger:entry", "12:3")):
        assert start_of(example).start


@pytest.mark.parametrize("text", ["12:3", "0:0", "24:10", "12:60", "123:45", "12:34:-1", "12:34:0", "1:2:0:3"])
def test_what_no_clock_shows_is_an_id_in_the_browser(text: str) -> None:
    assert start_of(text).start == text


def _commands_in(text: str) -> list[list[str]]:
    return [shlex.split(each) for each in re.findall(r"`pulsarbox ([^`]+)`", text)]


def test_for_every_cause_of_a_backlog_there_is_advice_that_can_be_followed() -> None:
    assert set(ADVICE) == {*TEXTS, "unacknowledged"}
    assert all(len(text) < 79 for text in TEXTS.values()), "they fit into the status line in 80 columns"
    for cause, parts in ADVICE.items():
        told, text = advice(cause), " ".join(parts)
        assert told and "{" not in told and len(told) <= 68, f"{cause}: has no room beside its heading in 80 columns"
        for word in re.findall(r":([a-z]+ [a-z]+)", told):
            assert named(word) is not None, word
        for words in _commands_in(text):
            command: click.Command = main
            for word in words:
                assert isinstance(command, click.Group)
                command = command.get_command(click.Context(main), word) or pytest.fail(f"no such command: {words}")
        assert advice(cause, may_change=False) and told.startswith(advice(cause, may_change=False))
    assert advice(None) == "" and advice("unheard of") == ""


async def test_advice_stands_below_the_cause_and_gives_way_where_nothing_stands() -> None:
    box = FakeBox()
    keeping_up = subscription(1, backlog=5, outRate=80.0, change=0.0, trend=[])
    box.rows["subscriptions"] = [subscription(0), keeping_up, subscription(2, cause=None)]
    async with dashboard(box, SMALL, place="subscriptions") as driver:
        seen = []
        for _ in range(3):
            await driver.press("enter")
            await driver.at("SubscriptionDetails")
            seen.append("advice    5 shows the limit; there enter changes it" in driver.text())
            await driver.press("escape")
            await driver.at("Subscriptions")
            await driver.press("j")
        assert sorted(seen) == [False, False, True]


async def test_the_consumers_of_a_subscription_are_searched_as_the_filter_says() -> None:
    box = FakeBox()
    box.rows["subscriptions"][0]["consumers"] = 6
    async with dashboard(box, place="subscriptions") as driver:
        await driver.press("enter")
        await driver.at("SubscriptionDetails")
        await driver.until(lambda: driver.table.count == 6)
        for text, count in (("c3", 1), ("/c[12]$", 2), ("!/c[12]$", 4), ("unacked > 99", 0), ('name == "c5"', 1)):
            await driver.filter(text)
            await driver.until(lambda count=count: driver.table.count == count)  # type: ignore[misc]
            await driver.until(lambda count=count: f"{count} of 6" in driver.told("filtered"))  # type: ignore[misc]
        await driver.press("escape")
        await driver.until(lambda: driver.table.count == 6)
        assert type(driver.screen).__name__ == "SubscriptionDetails"


def test_a_line_can_be_pasted_into_a_shell() -> None:
    assert command_lines.line("topic", "stats", "a b;rm") == "pulsarbox topic stats 'a b;rm'"
    assert command_lines.line("x", "\x1b[2J'\\") == r"pulsarbox x $'\x1b[2J\'\\'"


def test_the_command_that_seeks_to_a_time_of_a_day_is_accepted_by_the_command_line() -> None:
    seek, row = next(each for each in DEEDS if each.name == "sub seek"), subscription(0)
    written = {each: seek.words(row, {"where": each})[-2] for each in ("2026-11-21T10:00", "@-1h", "-1h", "3:4")}
    assert list(written.values()) == ["@2026-11-21T10:00", "@-1h", "-1h", "3:4"]
