"""A text in a border with a title: the panel of numbers, maps and legends."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.text import Text
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from pulsarbox.tui.widgets.dialogs.plain_title import EDGE, plain_title
from pulsarbox.tui.widgets.styles import ink_of

EDGES: Final = 4
"""Columns of a panel beside its text: the border, and a blank on both sides."""
FRAME: Final = 2
"""Lines of a border."""
_LABEL: Final = re.compile(r"[^ ]*( [^ ]+)?(  +|(?<=[^ ]) )")
_GAP: Final = 3
"""Blank cells between facts on a line."""
_ALARMS: Final = {"bad": "text-error", "warn": "text-warning"}
_SIGNS: Final = {"bad": "!", "warn": "▲"}
"""Signs of alarms, so that color carries no information alone."""


class TextPanel(Static):
    """A text in a border. ``put`` shows another one; the same text causes no layout."""

    DEFAULT_CSS = """
    TextPanel { height: auto; padding: 0 1; border: round $edge; border-title-color: $text; border-title-style: bold;
            border-subtitle-color: $text-muted; }
    TextPanel.-flush { padding: 0; }
    TextPanel.-plain { border: none; }
    """

    def __init__(self, title: str = "", *, key: str | None = None, classes: str | None = None) -> None:
        super().__init__("", id=key, classes=classes, markup=False)
        self._called = title

    def on_mount(self) -> None:
        """Set the title."""
        self.border_title = plain_title(self._called, self.app.size.width)

    def put(self, text: str | Text, subtitle: str = "", width: int = 0) -> None:
        """Show a text, and a subtitle shortened to the width of the panel, if given."""
        told = plain_title(subtitle, width or self.app.size.width) if subtitle else ""
        if self.border_subtitle != str(told):
            self.border_subtitle = told
        if self.content != text:
            self.update(text, layout=str(text).count("\n") != str(self.content).count("\n"))

    def retitle(self, title: str, width: int = 0) -> None:
        """Change the title, shortened to the width of the panel, if given."""
        if title != self._called:
            self._called = title
            self.border_title = plain_title(title, width or self.app.size.width)


class PanelFrame(Vertical):
    """A border with a title around a widget, in the color of the focus if that has it."""

    DEFAULT_CSS = """
    PanelFrame { height: 1fr; width: 1fr; border: round $edge; border-title-color: $text; border-title-style: bold;
                 border-subtitle-color: $text-muted; }
    PanelFrame:focus-within { border: heavy $edge-focus; }
    """
    _title: str = ""
    _facts: Sequence[str] = ()

    def name_it(self, title: str, *facts: str) -> None:
        """Set the title, and facts at the lower edge, the most important ones first.

        The title is shortened to the width of the panel; facts without room are left out.
        """
        self._title, self._facts = title, facts
        self.on_resize()

    def on_resize(self) -> None:
        """Fit the title and the facts into the width. Equal ones draw nothing."""
        width, facts = self.outer_size.width or self.app.size.width, self._facts
        told, below = plain_title(self._title, width), Content("   ".join(fitting_facts(facts, width - EDGE)))
        if str(self.border_title or "") != str(told):
            self.border_title = told
        if str(self.border_subtitle or "") != str(below):
            self.border_subtitle = below


def fitting_facts(facts: Sequence[str], room: int) -> list[str]:
    """Return the first facts that fit beside each other into so many cells."""
    ends = accumulate((cell_len(each) for each in facts), lambda end, wide: end + _GAP + wide)
    return [each for each, end in zip(facts, ends, strict=True) if end <= room]


class LabeledFact(NamedTuple):
    """A value, or several in columns, with its name."""

    label: str
    values: tuple[str, ...]
    alarm: str = ""
    """``bad``, ``warn``, or empty."""

    @property
    def told(self) -> tuple[str, ...]:
        """The values, the first one with the sign of the alarm."""
        first, *others = self.values
        return (f"{_SIGNS[self.alarm]} {first}" if self.alarm else first, *others)


def fact(label: str, value: str, alarm: str = "") -> LabeledFact:
    """Return a fact with one value."""
    return LabeledFact(label, (value,), alarm)


def in_columns(facts: Sequence[LabeledFact], width: int, colors: Mapping[str, str], most: int = 0) -> Text:
    """Return a line per fact: labels to the left, values to the right, at most ``most`` cells apart (0: at the edge).

    ``colors`` are the variables of the theme.
    """
    text = Text(no_wrap=True, overflow="crop")
    columns = max((len(each.values) for each in facts), default=0)
    widths = [
        max((cell_len(each.told[at]) for each in facts if at < len(each.values)), default=0) for at in range(columns)
    ]
    taken = sum(widths) + 2 * columns
    needed = max((cell_len(each.label) for each in facts), default=0) + taken
    room = max(min(width, most) if most else width, min(needed, width)) - taken
    for number, each in enumerate(facts):
        text.append("\n" if number else "")
        text.append(set_cell_size(each.label, max(room, 1)), style=ink_of(colors, "text-muted"))
        for value, wide in zip(each.told, widths, strict=False):
            text.append(" " * (2 + wide - cell_len(value)))
            text.append(value, style=alarm_style(each.alarm, colors))
    return text


def in_a_row(facts: Sequence[LabeledFact], width: int, colors: Mapping[str, str]) -> Text:
    """Return facts beside each other, in lines that fit, each with its label before its value."""
    text, used = Text(no_wrap=True, overflow="crop"), 0
    for each in facts:
        value = " ".join(each.told)
        wide = cell_len(each.label) + 1 + cell_len(value)
        if used and used + _GAP + wide > width:
            text.append("\n")
            used = 0
        text.append(" " * _GAP if used else "")
        text.append(f"{each.label} ", style=ink_of(colors, "text-muted"))
        text.append(value, style=alarm_style(each.alarm, colors))
        used += wide + (_GAP if used else 0)
    return text


def labeled(lines: Iterable[str], colors: Mapping[str, str]) -> Text:
    """Return lines whose labels end in front of two blanks, with muted labels."""
    text = Text()
    for number, line in enumerate(lines):
        label = _LABEL.match(line)
        end = label.end() if label else 0
        text.append("\n" if number else "")
        text.append(line[:end], style=ink_of(colors, "text-muted"))
        text.append(line[end:])
    return text


def alarm_style(alarm: str, colors: Mapping[str, str]) -> Style:
    """Return the style of a value with an alarm, or without one."""
    return ink_of(colors, _ALARMS[alarm]) + Style(bold=True) if alarm else Style()


def lines_of(text: str | Text) -> int:
    """Return the number of lines of a text, 0 if it is empty."""
    plain = str(text).rstrip("\n")
    return plain.count("\n") + 1 if plain else 0


def beginning(text: Text, lines: int) -> Text:
    """Return the first lines of a text."""
    return Text("\n", no_wrap=True, overflow="crop").join(text.split("\n")[:lines])
