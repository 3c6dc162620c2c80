"""The help: keys and commands of actions, and the meanings of the columns of a screen."""

from collections.abc import Sequence
from typing import Final

from rich.text import Text

from pulsarbox.tui.actions.action_table import REGISTRY, Action

_NARROW: Final = 75
"""Columns of a terminal below which the help has no commands."""
_KEYS, _NAMES = 8, 13
"""Least widths of the keys and the commands, so that the groups are aligned."""
_HEADING: Final = r"(?m)^\S.*$"


def help_text(kind: str, meanings: str, width: int = 80) -> Text:
    """Return the help for a terminal of this width: keys by group, starting with the actions on rows of this screen.

    Two blanks or more separate the columns of a line, which a dialog wraps below its last column.
    """
    parts = []
    fitting = [action for action in REGISTRY if kind and kind in action.on]
    if fitting:
        parts.append("With the row, or with all marked ones (space)\n" + _listed(fitting, width))
    parts += [
        f"{group}\n" + _listed([each for each in REGISTRY if each.group == group and not each.on], width)
        for group in ("View", "Screens", "Program")
    ]
    parts.append(
        "In tables\n"
        "  ↑ ↓ j k     up, down; page up, page down, home, end, g, G\n"
        "  enter       open the row; space: mark it\n"
        "  mouse       click: point; twice: open; a heading: sort; the wheel: scroll"
    )
    if meanings:
        parts.append("Columns\n" + meanings)
    parts.append("Preferences\n  To change the keys, edit top.json in the configuration directory; see docs/tui.md")
    text = Text("\n\n".join(parts))
    text.highlight_regex(_HEADING, "bold")
    return text


def _listed(actions: Sequence[Action], width: int) -> str:
    longest = max(len(each.shown_keys) for each in actions)
    if width < _NARROW:
        return "\n".join(_listed_narrow(each, max(_KEYS, longest + 1)) for each in actions)
    keys, names = max(_KEYS, longest), max(_NAMES, *(len(each.name) for each in actions))
    return "\n".join(f"  {each.shown_keys:<{keys}} :{each.name:<{names}}  {each.title}" for each in actions)


def _listed_narrow(action: Action, keys: int) -> str:
    """Return an action with its key, or above its title the command of an action without a key."""
    if action.keys:
        return f"  {action.shown_keys:<{keys}} {action.title}"
    return f"  :{action.name}\n{'':{keys + 3}}{action.title}"
