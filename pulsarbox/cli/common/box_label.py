"""What a box is to those who look at it: ``--label`` and ``--label-color``, or what the context in use says."""

from typing import TYPE_CHECKING

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.connect.target import Target, current_context

if TYPE_CHECKING:
    from pulsarbox.tui.widgets.box_label import Label


def checked_label(text: str | None, color: str | None) -> "Label | None":
    """None where none is given. Raises Misused."""
    if not text:
        if color:
            raise Misused("--label-color goes with --label: a colour alone says nothing to who does not see it")
        return None
    from pulsarbox.tui.actions.operation import Wrong
    from pulsarbox.tui.widgets.box_label import label_of

    try:
        return label_of(text, color or "")
    except Wrong as wrong:
        raise Misused(f"--label, --label-color: {wrong}") from None


def label_for(found: Target, text: str | None, color: str | None) -> "Label | None":
    """The label of the command line, else of the context by which the box was found. Raises Misused."""
    if not text and found.by_context:
        context = current_context() or {}
        return checked_label(context.get("label"), color or context.get("label_color"))
    return checked_label(text, color)
