"""Shorthand of the tests of live views: all rows of a view, by whatever way they are found."""

from typing import Any

from pulsarbox.server.live.answering import Choices, answers
from pulsarbox.server.live.asking import asked
from pulsarbox.server.live.table import VIEWS
from tests.unit.broker.playbook import Box

Row = dict[str, Any]


def rows(box: Box, view: str, **query: str) -> list[Row]:
    """The rows of a view, as an answer has them."""
    work = answers(box.broker, asked(VIEWS[view], query), Choices(), box.now)
    try:
        next(work)
        while True:
            work.send(box.now)
    except StopIteration as stop:
        box.turn()
        found: list[Row] = stop.value.rows
        return found
