"""``2``: the topics of the box."""

import json
from typing import ClassVar

from pulsarbox.tui import views
from pulsarbox.tui.actions.operation import short
from pulsarbox.tui.feed import real
from pulsarbox.tui.screens.view import ViewScreen
from pulsarbox.tui.widgets.table import Row


class Topics(ViewScreen):
    """Rates, backlogs, sizes and quotas; enter shows the subscriptions of one."""

    view: ClassVar[views.View] = views.TOPICS
    place: ClassVar[str] = "topics"
    kind: ClassVar[str] = "topic"

    def opened(self, row: Row) -> None:
        """Its subscriptions."""
        self.top.open("subscriptions:Subscriptions", f"topic == {quoted(real(row, 'topic'))}")

    def command_line(self) -> str:
        """Of the topic."""
        row = self.table.pointed
        return self.line("topic", "stats", short(row)) if row is not None else super().command_line()


def quoted(text: str) -> str:
    """A text in the language of filters."""
    return json.dumps(text, ensure_ascii=False)
