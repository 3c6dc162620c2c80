"""The help: keys and commands of actions, and the meanings of the columns of a screen."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from rich.text import Text

from pulsarbox.tui.actions.action_table import CONTENT, REGISTRY, Action
from pulsarbox.tui.actions.key_bindings import Keys, shown_keys, working_keys
from pulsarbox.tui.widgets.dialogs.dialog_keys import KEY

_NARROW: Final = 75
"""Columns of a terminal below which the help has no commands."""
_WIDE: Final = 170
"""Columns of a terminal from which the help is in two parts."""
_BESIDE: Final = frozenset({"Screens", "Program", "Columns", "Preferences"})
"""Groups in the second part."""
_KEYS, _NAMES = 8, 13
"""Least widths of the keys and the commands."""
_MOVEMENT: Final = (("↑ ↓ j k", "up, down; page up, page down, home, end, g, G"),)
_IN_TABLES: Final = (
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

    def listed(self, actions: Sequence[Action], keys: Keys) -> Iterator[Text]:
        """Yield the lines of actions. Without commands, only an action without a key has one, above its title."""
        for each in actions:
            if self.names:
                yield self.line(shown_keys(keys[each.name]), f":{each.name:<{self.names}}  {each.title}")
            elif keys[each.name]:
                yield self.line(shown_keys(keys[each.name]), each.title)
            else:
                yield Text(f"  :{each.name}")
                yield Text(f"{'':{self.keys + 3}}{each.title}")


def help_text(
    kind: str,
    meanings: str,
    width: int = 80,
    offers: Callable[[Action], bool] = lambda action: True,
    keys: Keys | None = None,
) -> list[Text]:
    """Return the help for a terminal of this width, on a wide one in two parts beside each other.

    It has the keys by group, starting with the actions on rows of this screen; then those of the others that the screen
    ``offers``. ``keys`` are those that work on the screen; without them, the default keys are listed. Two blanks
    or more separate the columns of a line, which a dialog wraps below its last column.
    """
    keys = working_keys(kind) if keys is None else keys
    titled = [each._replace(title=each.title_on(kind)) for each in REGISTRY]
    here = [each for each in titled if kind in each.on or (kind in each.titles and each.group == "View")]
    groups = {"In the message" if kind == CONTENT else "With the row, or with all marked ones (space)": here}
    for group in ("View", "Screens", "Program"):
        groups[group] = [
            each for each in titled if each.group == group and not each.on and each not in here and offers(each)
        ]
    columns = _columns([each for actions in groups.values() for each in actions], keys, width)
    parts = {title: [_heading(title), *columns.listed(actions, keys)] for title, actions in groups.items() if actions}
    movement = _MOVEMENT if kind == CONTENT else (*_MOVEMENT, *_IN_TABLES)
    parts["Movement"] = [_heading("Movement"), *(columns.line(*each) for each in movement)]
    if meanings:
        parts["Columns"] = [_heading("Columns"), Text(meanings)]
    preferences = "  To change the keys, edit top.json in the configuration directory; see docs/tui.md"
    parts["Preferences"] = [_heading("Preferences"), Text(preferences)]
    further = [part for title, part in parts.items() if width >= _WIDE and title in _BESIDE]
    return [_joined(each) for each in ([part for part in parts.values() if part not in further], further) if each]


def _joined(parts: Iterable[Iterable[Text]]) -> Text:
    return Text("\n\n").join(Text("\n").join(part) for part in parts)


def _heading(title: str) -> Text:
    return Text.assemble((title, "bold"))


def _columns(actions: Sequence[Action], keys: Keys, width: int) -> _Columns:
    longest = max(len(shown_keys(keys[each.name])) for each in actions)
    if width < _NARROW:
        return _Columns(max(_KEYS, longest + 1), 0)
    return _Columns(max(_KEYS, longest), max(_NAMES, *(len(each.name) for each in actions)))
