"""Backlogs behind the largest ones: those that grow the fastest, and the number of those without consumers."""

from collections.abc import Sequence
from typing import NamedTuple

from pulsarbox.tui.actions.box_queries import of_growing, of_unused
from pulsarbox.tui.actions.diagnosis import Row
from pulsarbox.tui.feed import Feed, FeedError


class BacklogsBehind(NamedTuple):
    """Facts for the diagnosis beside the largest backlogs; none if these are all. See ``OverviewFacts``."""

    growing: Sequence[Row] = ()
    growing_count: int = 0
    unused_count: int = 0


def backlogs_behind(feed: Feed, largest: int, count: int, at: int | None = None) -> BacklogsBehind:
    """Request the backlogs behind the ``largest`` ones that are known, unless these are all of ``count``.

    Raises FeedError if the box is gone.
    """
    if count <= largest:
        return BacklogsBehind()
    try:
        growing, unused = feed.view(of_growing(at)), feed.view(of_unused(at))
    except FeedError as trouble:
        if trouble.is_gone:
            raise
        return BacklogsBehind()
    return BacklogsBehind(growing.rows, growing.matching, unused.matching)
