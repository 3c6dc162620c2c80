"""Key bindings of the actions."""

from textual.binding import Binding, BindingType

from pulsarbox.tui.actions.action_table import CONTENT, REGISTRY


def bindings(kind: str = "") -> list[BindingType]:
    """Return the default key bindings of all actions, which users may override by name.

    Those of a screen with one message are separate: ``kind`` is ``CONTENT`` for these only.
    """
    return [
        Binding(
            action.keys,
            f"act('{action.name}')",
            action.title,
            show=False,
            id=action.name.replace(" ", "-"),
            priority=True,  # keeps keys in the order in which they are typed
        )
        for action in REGISTRY
        if action.keys and (action.on == (CONTENT,)) == (kind == CONTENT)
    ]
