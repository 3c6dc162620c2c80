"""The help: every action, aligned, and readable on a phone once a dialog has wrapped it."""

import pytest
from rich.text import Text

from pulsarbox.tui.actions.action_table import CONTENT, MESSAGE, REGISTRY
from pulsarbox.tui.actions.help_text import help_text
from pulsarbox.tui.actions.key_bindings import DEFAULT_KEYS, shown_keys, working_keys
from pulsarbox.tui.widgets.dialogs.dialog_keys import KEY
from pulsarbox.tui.widgets.wrapping import hanging


def whole(kind: str, meanings: str = "", width: int = 80) -> Text:
    """Return the help of a terminal that is too narrow for two parts."""
    (text,) = help_text(kind, meanings, width)
    return text


def lines_of(kind: str, width: int = 80) -> list[str]:
    return whole(kind, "", width).plain.split("\n")


def test_every_action_of_a_screen_is_listed() -> None:
    lines = lines_of("subscription")
    for action in REGISTRY:
        if not action.on or "subscription" in action.on:
            assert any(f" :{action.name} " in line for line in lines)


def test_commands_are_aligned() -> None:
    lines = lines_of("subscription")
    names = [f":{action.name} " for action in REGISTRY]
    assert {line.index(name) for line in lines for name in names if f" {name}" in line} == {11}
    content = lines_of(CONTENT, 120)[: lines_of(CONTENT, 120).index("View")]
    titles = [action.title_on(CONTENT) for action in REGISTRY if CONTENT in action.on]
    assert len({line.index(title) for line in content for title in titles if line.endswith(f"  {title}")}) == 1


def test_on_a_phone_a_wrapped_title_continues_below_its_beginning() -> None:
    lines = hanging(whole("subscription", "", 46), 36).plain.partition("Movement")[0].split("\n")
    assert max(map(len, lines)) <= 36
    at = next(at for at, line in enumerate(lines) if line.startswith("  b         Browse the "))
    assert "  :sub clear" in lines and lines[at + 1].startswith(" " * 12) and lines[at + 1][12] != " "
    program = lines[lines.index("Program") + 1 :]
    assert all(line[:3].strip() or line.startswith(" " * 12) for line in program if line)


@pytest.mark.parametrize("width", [64, 92])
def test_a_wrapped_line_continues_in_its_column(width: int) -> None:
    meaning = "a long meaning " * 9
    text = hanging(whole("subscription", f"  COLUMN  {meaning}"), width).plain
    assert max(map(len, text.split("\n"))) <= width
    rest = text.partition("  COLUMN  ")[2].partition("\n\n")[0].split("\n")[1:]
    assert rest and all(line.startswith(" " * 10) and line[10] != " " for line in rest if line.strip())
    assert " ".join(text.split()).count(meaning.strip()) == 1


def test_headings_are_bold() -> None:
    text = whole("", "")
    assert [text.plain[span.start : span.end] for span in text.spans if str(span.style) == "bold"] == [
        *("View", "Screens", "Program", "Movement", "Preferences"),
    ]


@pytest.mark.parametrize("width", [46, 80])
def test_keys_are_set_off(width: int) -> None:
    text = whole("subscription", "", width)
    keys = {text.plain[span.start : span.end] for span in text.spans if span.style == KEY}
    shown = {each.name: shown_keys(DEFAULT_KEYS[each.name]) for each in REGISTRY if each.name in DEFAULT_KEYS}
    assert keys >= {shown[each.name] for each in REGISTRY if each.keys and (not each.on or "subscription" in each.on)}


def test_the_groups_are_aligned_with_one_another() -> None:
    lines = lines_of(CONTENT, 120)
    listed = [action for action in REGISTRY if CONTENT in action.on or (not action.on and action.group != "Box")]
    titles = [each.title_on(CONTENT) for each in listed]
    starts = [line.index(title) for title in titles for line in lines if line.endswith(f"  {title}")]
    assert len(starts) == len(listed) and len(set(starts)) == 1


def test_a_key_that_means_something_else_on_the_screen_is_not_listed_for_another_action() -> None:
    lines = lines_of(CONTENT, 120)
    keys = [shown_keys(working_keys(CONTENT)[action.name]) for action in REGISTRY if CONTENT in action.on]
    assert next(line for line in lines if "Leave history and return to now" in line).split()[0] == ":live"
    for key in " ".join(keys).split():
        assert sum(1 for line in lines if line[:18].split(":")[0].split() == [key]) <= 1


def test_actions_that_the_screen_does_not_have_are_not_listed() -> None:
    shown = help_text("subscription", "", offers=lambda action: action.name != "sort")[0].plain
    assert ":sort" not in shown and ":filter" in shown and ":topics" in shown


def test_the_help_of_a_message_says_what_its_keys_do_with_the_message() -> None:
    lines = lines_of(CONTENT, 120)
    here = lines[1 : lines.index("")]
    titles = {line.split()[0]: line for line in here}
    assert lines[0] == "In the message" and titles["y"].endswith("Copy the message, a part of it, or a command for it")
    assert titles["D"].endswith("Compare the message with the marked one")
    assert sum(":copy " in line for line in lines) == 1 and "Clear the filter" not in "".join(lines)


@pytest.mark.parametrize("kind", [MESSAGE, CONTENT])
def test_the_help_of_messages_does_not_name_them_before_each_action(kind: str) -> None:
    lines = lines_of(kind, 120)
    assert [line for line in lines if "Messages: " in line] == [] and any(":form " in line for line in lines)


def test_a_wide_terminal_has_the_help_in_two_parts_that_have_everything_once() -> None:
    left, right = help_text("subscription", "  COLUMN  meaning", 200)
    assert "Seek the subscription" in left.plain and "Movement" in left.plain
    assert "Go to: Topics" in right.plain and right.plain.index("COLUMN") < right.plain.index("Preferences")
    one = whole("subscription", "  COLUMN  meaning", 169).plain
    assert sorted(one.split("\n")) == sorted(f"{left.plain}\n\n{right.plain}".split("\n"))
