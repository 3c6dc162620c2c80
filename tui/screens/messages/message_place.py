"""The place of the cursor in a message, or why there is none, for the status line."""

from pulsarbox.tui.screens.messages.message_source import LoadedMessage
from pulsarbox.tui.viewer.lines import HexLines
from pulsarbox.tui.viewer.outline import Outline
from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.bars import Part
from pulsarbox.tui.widgets.pager import Pager


def place_in(message: LoadedMessage, pager: Pager) -> list[Part]:
    """Return the path, byte or share at the cursor; why there is nothing to show, if there is nothing."""
    lines, cursor, reason = pager.lines, pager.cursor, absence_of(message)
    if reason:
        return [(f"  {reason}", "warn", "")]
    if lines is None or cursor is None:
        return []
    if isinstance(lines, Outline):
        path = lines.document.path_of(cursor)
        return [(f"  {path}" if path else "  the whole value", "plain", "")]
    if isinstance(lines, HexLines):
        return [(f"  byte {cursor:,}", "plain", "")]
    return [(f"  {numbers.percent(lines.share(cursor))}", "plain", "")]


def absence_of(message: LoadedMessage) -> str:
    """Return why a message has no contents; empty if it has some."""
    if message.contents.payload is not None:
        return "" if message.contents.payload else "empty: no bytes"
    return str(message.row.get("damaged") or message.row.get("closed") or "null: a tombstone")
