"""The help: keys and commands of actions, and the meanings of the columns of a screen."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from rich.text import Text

from pulsarbox.tui.actions.action_table import REGISTRY, Action
from pulsarbox.tui.widgets.key_hints import KEY

_NARROW: Final = 75
"""Columns of a terminal below which the help has no commands."""
_KEYS, _NAMES = 8, 13
"""Least widths of the keys and the commands."""
_IN_TABLES: Final = (
    ("↑ ↓ j k", "up, down; page up, page down, home, end, g, G"),
    ("enter", "open the row; space: mark it"),
    ("mouse", "click: point; twice: open; a heading: sort; the wheel: scroll"),
)


class _Columns(NamedTuple):
    """The columns of a help: the same for all groups of actions, so that they are aligned."""

    keys: int
    names: int
    """Width of the commands, 0 for none."""

    def line(self, key: str, text: str) -> Text:
        """Return a line with a key, and a text in the next column."""
        return Text.assemble("  ", (key, KEY), " " * (self.keys - len(key) + 1), text)

    def listed(self, actions: Sequence[Action]) -> Iterator[Text]:
        """Yield the lines of actions. Without commands, only an action without a key has one, above its title."""
        for each in actions:
            if self.names:
                yield self.line(each.shown_keys, f":{each.name:<{self.names}}  {each.title}")
            elif each.keys:
                yield self.line(each.shown_keys, each.title)
            else:
                yield Text(f"  :{each.name}")
                yield Text(f"{'':{self.keys + 3}}{each.title}")


def help_text(kind: str, meanings: str, width: int = 80) -> Text:
    """Return the help for a terminal of this width: keys by group, starting with the actions on rows of this screen.

    Two blanks or more separate the columns of a line, which a dialog wraps below its last column.
    """
    groups = {"With the row, or with all marked ones (space)": [each for each in REGISTRY if kind and kind in each.on]}
    for group in ("View", "Screens", "Program"):
        groups[group] = [each for each in REGISTRY if each.group == group and not each.on]
    columns = _columns([each for actions in groups.values() for each in actions], width)
    parts = [[_heading(title), *columns.listed(actions)] for title, actions in groups.items() if actions]
    parts.append([_heading("In tables"), *(columns.line(*each) for each in _IN_TABLES)])
    if meanings:
        parts.append([_heading("Columns"), Text(meanings)])
    preferences = "  To change the keys, edit top.json in the configuration directory; see docs/tui.md"
    parts.append([_heading("Preferences"), Text(preferences)])
    return Text("\n\n").join(Text("\n").join(part) for part in parts)


def _heading(title: str) -> Text:
    return Text.assemble((title, "bold"))


def _columns(actions: Sequence[Action], width: int) -> _Columns:
    longest = max(len(each.shown_keys) for each in actions)
    if width < _NARROW:
        return _Columns(max(_KEYS, longest + 1), 0)
    return _Columns(max(_KEYS, longest), max(_NAMES, *(len(each.name) for each in actions)))
