"""The table of all actions, the single source of default keys, ``:`` commands, palette, help and row menus.

An action either concerns the view, and is a method ``do_...`` of a screen or the application, or it is a deed, which
changes the box. ``operations`` defines the requests of a deed and the equivalent command line.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from pulsarbox.tui.actions.operation import OperationSpec, Row, short
from pulsarbox.tui.actions.operations import DEEDS
from pulsarbox.tui.actions.replay_operations import is_dead_letter
from pulsarbox.tui.feed import real


class Action(NamedTuple):
    """One action."""

    name: str
    """Name behind ``:``, and in the user's key preferences."""
    title: str
    """Title in the help and the palette."""
    keys: str = ""
    """Default keys, with commas between them. ``key_bindings`` has those that work."""
    hint: str = ""
    """Label in the bottom line, empty for none."""
    on: tuple[str, ...] = ()
    """Kinds of rows it applies to; empty for all screens."""
    group: str = "View"
    deed: OperationSpec | None = None
    fits: Callable[[Row], bool] = lambda row: True
    """Whether it applies to a row of these kinds."""
    words: Callable[[Row], Sequence[str]] = lambda row: ()
    """Arguments of the ``pulsarbox`` command that prints what it shows of a row; empty for none."""
    titles: Mapping[str, str] = {}
    """Titles on the screens with these kinds of rows, if they are not ``title``."""

    @property
    def method(self) -> str:
        """Name of the method of the screen or application."""
        return "do_" + self.name.replace(" ", "_").replace("-", "_")

    def title_on(self, kind: str) -> str:
        """Return the title on a screen with this kind of rows. Elsewhere, actions of the browser are marked as such."""
        if self.deed is None and self.on[:1] == (MESSAGE,) and kind not in self.on:
            return f"Messages: {self.title[0].lower()}{self.title[1:]}"
        return self.titles.get(kind, self.title)

    @property
    def needs_row(self) -> bool:
        """Whether it does nothing on a screen without rows."""
        return self.deed is not None or self.name in _OF_ROWS

    @property
    def has_past(self) -> bool:
        """Whether it is hinted in history: not if it concerns what is there now, or has a tab."""
        return self.deed is None and self.group != "Screens" and self.name not in _OF_NOW


_OF_NOW: Final = frozenset({"menu", "pause", "edit", "cursor map", "key map", "groups"})
"""Actions on what is there now."""
_OF_ROWS: Final = frozenset({"menu", "sort", "messages", "cursor map", "key map", "difference", "edit", "groups"})

KEY_SHARED: Final = "Key_Shared"
MESSAGE: Final = "message"
"""Kind of the rows of the browser."""
CONTENT: Final = "content"
"""Kind of the screen with one message. Its keys may be those of actions that it does not have."""

PLACES: Final = (
    ("overview", "Overview", "Over", "1"),
    ("topics", "Topics", "Topics", "2"),
    ("subscriptions", "Subscriptions", "Subs", "3"),
    ("deadletters", "Dead letters", "DLQ", "4"),
    ("quotas", "Quotas", "Quotas", "5"),
    ("clients", "Clients", "Clients", "6"),
    ("storage", "Storage", "Store", "7"),
    ("plugins", "Plugins", "Plug", "8"),
    ("events", "Events", "Events", "9"),
    ("jobs", "Jobs", "Jobs", "0"),
    ("pipelines", "Pipelines", "Pipes", "P"),
)
"""Screens that have a key: name, title, short title, key."""

_GO: Final = tuple(Action(name, f"Go to: {title}", key, group="Screens") for name, title, _, key in PLACES)

_VIEW: Final = (
    Action("filter", "Filter the rows, in the language of --filter", "slash", "filter"),
    Action("sort", "Choose the sort column", "s", "sort"),
    Action("reverse", "Reverse the sort order", "S"),
    Action("columns", "Choose and order the columns", "c", "columns"),
    Action("row details", "Show or hide the side panels (if wide)", "i", "side panels"),
    Action("menu", "Actions for the row, or the marked rows", "x", "actions"),
    Action(
        *("copy", "Copy the equivalent pulsarbox command", "y", "copy"),
        titles={CONTENT: "Copy the message, a part of it, or a command for it"},
    ),
    Action("time travel", "Go back in recorded history", "t", "time"),
    Action("earlier", "In history: one step back", "left", "step"),
    Action("later", "In history: one step forward", "right", "step"),
    Action("much earlier", "In history: ten steps back", "shift+left"),
    Action("much later", "In history: ten steps forward", "shift+right"),
    Action("live", "Leave history and return to now", "n", "now"),
    Action("export", "Write the rows of the table to a file, as NDJSON", "e"),
    Action("export csv", "Write the rows of the table to a file, as CSV"),
    Action("clear marks", "Unmark all rows", "u", "unmark"),
    Action("refresh", "Refresh now", "r"),
    Action("pause", "Pause or resume refreshing", "p", "pause"),
    Action("faster", "Refresh twice as often", "plus,equals_sign"),
    Action("slower", "Refresh half as often", "minus"),
)

_PROGRAM: Final = (
    Action("back", "Clear the filter, then go back", "escape", group="Program", titles={CONTENT: "Go back"}),
    Action("command", "Enter a command, with completion", "colon", "command", group="Program"),
    Action("theme", "Switch to the next theme", "T", group="Program"),
    Action("help", "Show the keys of this screen", "question_mark,f1", "help", group="Program"),
    Action("quit", "Quit the dashboard; the box keeps running", "q,ctrl+c", "quit", group="Program"),
)


def _peek(row: Row) -> list[str]:
    """Return the command for the messages of a row: the unacknowledged ones of its subscription, or the last ones."""
    key = "topic" if row.get("topic") else "output"
    if "://" not in real(row, key):  # a pipeline that writes files
        return []
    subscription = real(row, "subscription") or real(row, "keptBy")
    return ["peek", short(row, key), *(["-s", subscription] if subscription else ["--from", "-10"])]


_WALKS: Final = (
    Action(
        "messages",
        "Browse the messages; nothing is acknowledged",
        "b",
        "messages",
        on=("topic", "subscription", "deadletters", "pipeline"),
        words=_peek,
    ),
    Action(
        *("cursor map", "Show acknowledged, in-flight and delayed messages", "m", "cursor map"),
        on=("subscription",),
        words=lambda row: ["sub", "holes", short(row), real(row, "subscription")],
    ),
    Action(
        *("key map", "Keys and consumers of a Key_Shared subscription", "K", "key map"),
        on=("subscription",),
        fits=lambda row: row.get("type") == KEY_SHARED,
    ),
    Action("topic map", "Show the topic map: areas by backlog, rate or size", "M", "map", on=("topic",)),
    Action("go to", "Go to a position, time or ID", "o", "go to", on=(MESSAGE,)),
    Action("follow", "Follow new messages", "F", "follow", on=(MESSAGE,)),
    Action(
        *("form", "Show the decoded value, text, or bytes", "v", "format"),
        on=(MESSAGE, CONTENT),
        titles={CONTENT: "Show the contents as an outline, text, or bytes"},
    ),
    Action(
        *("difference", "Compare the two marked messages", "D", "compare"),
        on=(MESSAGE, CONTENT),
        titles={CONTENT: "Compare the message with the marked one"},
    ),
    Action("edit", "Edit a dead letter and replay it", "E", "edit", on=(MESSAGE,), fits=is_dead_letter),
    Action("groups", "Group dead letters by failure", "f", "groups", on=("deadletters",)),
)

_CONTENT: Final = tuple(
    Action(name, title, keys, hint, on=(CONTENT,))
    for name, title, keys, hint in (
        ("fold", "Fold or unfold the value", "enter,space", "fold"),
        ("fold around", "Fold the value, or the one around it", "left", ""),
        ("unfold", "Unfold the value", "right", ""),
        ("fold all", "Fold everything", "z", ""),
        ("unfold all", "Unfold everything", "Z", ""),
        ("search", "Search for a text in names and values", "slash", "search"),
        ("next match", "Go to the next match", "n", "match"),
        ("previous match", "Go to the previous match", "N", ""),
        ("wrap", "Wrap long lines, or scroll them with shift and arrows", "w", ""),
        ("dump", "Show the bytes beside the contents", "h", "bytes"),
        ("details", "Metadata: show some, all or none", "i", "metadata"),
        ("next by key", "Go to the next message with the same key", "right_square_bracket", "same key"),
        ("previous by key", "Go to the previous message with the same key", "left_square_bracket", ""),
        ("next message", "Go to the next message", "greater_than_sign", "next"),
        ("previous message", "Go to the previous message", "less_than_sign", "previous"),
        ("mark message", "Mark the message, to compare another one with it", "M", "mark"),
    )
)

_DEEDS: Final = tuple(Action(deed.name, deed.title, deed.keys, on=deed.on, group="Box", deed=deed) for deed in DEEDS)

REGISTRY: Final = (*_GO, *_VIEW, *_WALKS, *_CONTENT, *_DEEDS, *_PROGRAM)
BY_NAME: Final = {action.name: action for action in REGISTRY}


def named(text: str) -> Action | None:
    """Return the action with this name or unique prefix, None without one."""
    words = " ".join(text.lower().split())
    if words in BY_NAME:
        return BY_NAME[words]
    fitting = [action for action in REGISTRY if action.name.startswith(words)]
    return fitting[0] if len(fitting) == 1 and words else None


def for_row(kind: str) -> list[Action]:
    """Return the actions on a kind of rows: views first, then deeds, dangerous ones last."""
    fitting = [action for action in (*_WALKS, *_DEEDS) if kind in action.on]
    return sorted(fitting, key=lambda action: action.deed is not None and action.deed.danger)
