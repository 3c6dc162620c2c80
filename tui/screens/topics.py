"""Topics screen."""

import json
from collections.abc import Sequence
from typing import ClassVar

from pulsarbox.tui import views
from pulsarbox.tui.actions.operation import short
from pulsarbox.tui.feed import real
from pulsarbox.tui.screens.view import ViewScreen
from pulsarbox.tui.widgets.table import Row


class TopicsScreen(ViewScreen):
    """Rates, backlogs, sizes and quotas; enter shows the subscriptions of one."""

    view: ClassVar[views.TableView] = views.TOPICS
    place: ClassVar[str] = "topics"
    kind: ClassVar[str] = "topic"
    opens: ClassVar[str] = "subscriptions"
    hinted_wide: ClassVar[Sequence[str]] = ("messages", "topic map", *ViewScreen.hinted_wide)

    def opened(self, row: Row) -> None:
        """Show the subscriptions of the topic."""
        self.top.open("subscriptions:Subscriptions", f"topic == {quoted(real(row, 'topic'))}")

    def do_topic_map(self) -> None:
        """Show the topics as areas."""
        sort = self.table.sorted_by[0] or ""
        self.top.open("maps.topic_map:TopicMap", sort)

    def command_line(self) -> str:
        """Return the command that shows the statistics of the topic."""
        row = self.table.pointed
        return self.line("topic", "stats", short(row)) if row is not None else super().command_line()


def quoted(text: str) -> str:
    """Quote a text for a filter expression."""
    return json.dumps(text, ensure_ascii=False)
