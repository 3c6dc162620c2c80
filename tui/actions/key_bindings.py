"""Keys of the actions: the default ones, and those that the user has chosen instead."""

from collections.abc import Mapping, Sequence
from typing import Final

from textual.binding import Binding
from textual.keys import key_to_character

from pulsarbox.tui.actions.action_table import CONTENT, REGISTRY, Action
from pulsarbox.tui.preferences import Preferences

Keys = Mapping[str, tuple[str, ...]]
"""Keys by name of the action, as Textual names them."""
_NONE: Final[Keys] = {}
_SHOWN: Final = {
    "slash": "/",
    "backslash": "\\",
    "plus": "+",
    "minus": "-",
    "underscore": "_",
    "at": "@",
    "escape": "esc",
    "left": "←",
    "right": "→",
    "shift+left": "shift+←",
    "shift+right": "shift+→",
}
"""Keys that are not shown as the character of their name in Unicode, or as their name."""


def chosen_keys(kept: Preferences) -> Keys:
    """Return the keys that the user has chosen. Unusable ones add a note."""
    chosen = kept.checked("keys", "an object that maps action names to keys", lambda value: isinstance(value, dict))
    names = {action.name.replace(" ", "-"): action.name for action in REGISTRY}
    found = {}
    for name, key in (chosen or {}).items():
        action = names.get(name.replace(" ", "-"))
        if action is None:
            kept.note(f"keys: no such action: {name!r:.40}")
        elif not (isinstance(key, str) and key.strip(" ,")):
            kept.note(f"keys: {name}: invalid key {key!r:.40}")
        else:
            found[action] = _named(key)
    return found


def working_keys(kind: str, chosen: Keys = _NONE) -> Keys:
    """Return the keys of actions on the screens with a kind of rows; an action may have none.

    Each key runs one action: on the screen with one message, rather one of its own; then one for which the user has
    chosen the key. An action whose chosen keys run others keeps its default ones.
    """
    found: dict[str, tuple[str, ...]] = {}
    taken: set[str] = set()
    fitting = [action for action in REGISTRY if kind == CONTENT or not _is_of_content(action)]
    for action in sorted(
        fitting, key=lambda each: (kind == CONTENT and not _is_of_content(each), each.name not in chosen)
    ):
        wanted = (chosen.get(action.name, ()), _named(action.keys))
        free = (tuple(key for key in keys if key not in taken) for keys in wanted)
        found[action.name] = next(filter(None, free), ())
        taken.update(found[action.name])
    return found


def _is_of_content(action: Action) -> bool:
    return action.on == (CONTENT,)


def _named(keys: str) -> tuple[str, ...]:
    """Return the keys of a list with commas, characters by their names."""
    listed = [Binding(key, "") for each in keys.split(",") if (key := each.strip())]
    return tuple(dict.fromkeys(each.key for each in Binding.make_bindings(listed)))


DEFAULT_KEYS: Final = working_keys("")
"""The default keys of actions on all screens except that of a single message."""


def bindings(keys: Keys) -> list[Binding]:
    """Return the bindings of actions to their keys."""
    return [
        Binding(
            key,
            f"act('{name}')",
            show=False,
            priority=True,  # keeps keys in the order in which they are typed
        )
        for name, several in keys.items()
        for key in several
    ]


def shown_keys(keys: Sequence[str]) -> str:
    """Return keys for display; empty for none."""
    return " ".join(map(_shown, keys))


def _shown(key: str) -> str:
    character = key_to_character(key) or ""
    is_visible = character.isprintable() and not character.isspace()
    return _SHOWN.get(key) or (is_visible and character) or key


def shown_key(keys: Keys, name: str) -> str:
    """Return the first key of an action for display; empty for none."""
    return shown_keys(keys.get(name, ())[:1])


def key_or_command(keys: Keys, name: str) -> str:
    """Return the first key of an action for display, else the command that runs it."""
    return shown_key(keys, name) or f":{name}"
