"""Shared parts of the cursor map and the key map: the target of their requests, and the height of their bars."""

from typing import Final

from pulsarbox.client.admin import path_of, subscription_segment
from pulsarbox.tui.actions.operation import topic_of
from pulsarbox.tui.feed import real
from pulsarbox.tui.widgets.table import Row

_BARS: Final = ((40, 3), (30, 2))
"""Lines of a screen from which bars have more lines than one, and how many."""


def map_target(kind: str, row: Row) -> str:
    """Return the target of the request for a map of a subscription, ``kind`` being ``cursor`` or ``keys``."""
    _, _, tenant, namespace, local = path_of(topic_of(row)).split("/")
    return f"/pulsarbox/v1/maps/{kind}/{tenant}/{namespace}/{local}/{subscription_segment(real(row, 'subscription'))}"


def bar_lines(height: int) -> int:
    """Return the lines of a bar on a screen of this height."""
    return next((lines for least, lines in _BARS if height >= least), 1)
