"""Helper for live view tests: all rows of a view, by each way of querying."""

from typing import Any

from pulsarbox.server.live.answering import Choices, answers
from pulsarbox.server.live.asking import asked
from pulsarbox.server.live.table import VIEWS
from tests.unit.broker.playbook import Box

Row = dict[str, Any]


def rows(box: Box, view: str, **query: str) -> list[Row]:
    """Return the rows of a view as in a response."""
    work = answers(box.broker, asked(VIEWS[view], query), Choices(), box.now)
    try:
        next(work)
        while True:
            work.send(box.now)
    except StopIteration as stop:
        box.turn()
        found: list[Row] = stop.value.rows
        return found
