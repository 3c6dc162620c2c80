"""A screen whose rows come all at once, because there are few of them: filter and order are done here."""

from collections.abc import Callable, Mapping
from typing import Any

from pulsarbox.tui.feed import Feed, Snapshot, Trouble
from pulsarbox.tui.screens.view import ViewScreen
from pulsarbox.tui.widgets.local_rows import chosen


class ListScreen(ViewScreen):
    """One question, whose answer has all rows."""

    def path(self) -> str:
        """What is asked."""
        raise NotImplementedError

    def rows_in(self, told: Any) -> list[Mapping[str, Any]]:
        """The rows of the answer. Raises Trouble."""
        if not isinstance(told, list):
            raise Trouble("the answer is no list: is this the Admin API of a box?", 502)
        return told

    def load(self) -> Callable[[], Any]:
        """All rows, then those that pass."""
        query, path, passes = self.query_now(), self.path(), self.passes()

        def ask() -> Snapshot:
            return chosen(query, self.rows_in(told_by(self.top.feed, path)), passes)

        return ask


def told_by(feed: Feed, path: str) -> Any:
    """The answer to a GET."""
    return feed.ask("GET", path)
