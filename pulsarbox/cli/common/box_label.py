"""Display label of a box: ``--label`` and ``--label-color``, or the values of the current context."""

from typing import TYPE_CHECKING

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.connect.target import Target, current_context

if TYPE_CHECKING:
    from pulsarbox.tui.widgets.box_label import Label


def checked_label(text: str | None, color: str | None) -> "Label | None":
    """Return the label, or None without a text. Raises Misused."""
    if not text:
        if color:
            raise Misused("--label-color requires --label: the label must be readable without colour")
        return None
    from pulsarbox.tui.actions.operation import Wrong
    from pulsarbox.tui.widgets.box_label import label_of

    try:
        return label_of(text, color or "")
    except Wrong as wrong:
        raise Misused(f"--label, --label-color: {wrong}") from None


def label_for(found: Target, text: str | None, color: str | None) -> "Label | None":
    """Return the label given on the command line, else that of the context that located the box. Raises Misused."""
    if not text and found.by_context:
        context = current_context() or {}
        return checked_label(context.get("label"), color or context.get("label_color"))
    return checked_label(text, color)
