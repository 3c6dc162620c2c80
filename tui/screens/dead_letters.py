"""Dead letter screens: the dead letter topics, and the groups of one topic by cause."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import urlencode

from pulsarbox.client.admin import path_of
from pulsarbox.tui import views
from pulsarbox.tui.actions.operation import short, topic_of
from pulsarbox.tui.feed import real
from pulsarbox.tui.screens.listed import ListScreen
from pulsarbox.tui.screens.topics import quoted
from pulsarbox.tui.screens.view import ViewScreen
from pulsarbox.tui.widgets.bars import Part
from pulsarbox.tui.widgets.table import Row


class DeadLettersScreen(ViewScreen):
    """Dead letter topics; enter shows the groups of one."""

    view: ClassVar[views.TableView] = views.DEAD_LETTERS
    place: ClassVar[str] = "deadletters"
    kind: ClassVar[str] = "deadletters"
    hinted: ClassVar[Sequence[str]] = ("groups", "messages", "dlq replay", "filter", "menu", "copy", "help", "quit")

    def opened(self, row: Row) -> None:
        """Show the groups of the topic."""
        self.top.open("dead_letters:Groups", row)

    def do_groups(self) -> None:
        """Show the groups of the topic."""
        if self.table.pointed is not None:
            self.opened(self.table.pointed)

    def do_messages(self) -> None:
        """Browse the messages of the topic."""
        row = self.table.pointed
        if row is not None:
            self.top.open("messages.browser:Browser", real(row, "topic"), real(row, "keptBy"))

    def status_line(self) -> list[Part]:
        """Warn of a topic that retains no messages."""
        row = self.table.pointed
        if row is not None and row.get("lost"):
            text = " New messages are lost: the topic has no subscription (x: create one)"
            return [(text, "bad", "menu")]
        return super().status_line()

    def command_line(self) -> str:
        """Return the command that shows the groups of the topic."""
        row = self.table.pointed
        return self.line(*groups_of(row)) if row is not None else self.line("dlq", "list")


class Groups(ListScreen):
    """Remaining dead letters of one topic, grouped by cause; enter shows the messages of a group."""

    view: ClassVar[views.TableView] = views.GROUPS
    place: ClassVar[str] = "deadletters"
    kind: ClassVar[str] = "group"
    hinted: ClassVar[Sequence[str]] = ("dlq replay", "messages", "filter", "menu", "copy", "back", "help", "quit")

    def __init__(self, row: Row) -> None:
        super().__init__()
        self.topic = row
        self.looked: tuple[int, int] = (0, 0)

    def path(self) -> str:
        """Return the request path of the groups."""
        _, _, tenant, namespace, local = path_of(topic_of(self.topic)).split("/")
        kept_by = real(self.topic, "keptBy")
        only = f"?{urlencode({'subscription': kept_by})}" if kept_by else ""
        return f"/pulsarbox/v1/dlq/{tenant}/{namespace}/{local}/groups{only}"

    def rows_in(self, told: Any) -> list[Mapping[str, Any]]:
        """Return the groups with the filters for jobs and the message browser."""
        if isinstance(told, dict):
            self.looked = (told.get("entries") or 0, told.get("of") or 0)
            told = told.get("groups")
        topic = real(self.topic, "topic")
        return [
            {
                **row,
                "topic": topic,
                "keptBy": real(self.topic, "keptBy"),
                "filter": (only := f"fingerprint == {quoted(str(row.get('fingerprint')))}"),
                "only": only,
            }
            for row in super().rows_in(told)
        ]

    def title_of(self, row: Row) -> str:
        """Return the reason of a group."""
        return str(row.get("reason") or "no reason")

    def status_line(self) -> list[Part]:
        """Return the full reason, and how many entries were scanned."""
        row = self.table.pointed
        looked, total = self.looked
        more = f"  (of the newest {looked:,} of {total:,})" if looked < total else ""
        if row is None:
            return super().status_line()
        return [(f" {row.get('reason') or 'no reason'}{more}", "plain", "")]

    def opened(self, row: Row) -> None:
        """Browse the messages of the group."""
        self.top.open("messages.browser:Browser", real(row, "topic"), real(row, "keptBy"), str(row["only"]))

    def do_messages(self) -> None:
        """Browse the messages of the group."""
        if self.table.pointed is not None:
            self.opened(self.table.pointed)

    def command_line(self) -> str:
        """Return the command that shows the groups."""
        return self.line(*groups_of(self.topic))


def groups_of(row: Row) -> list[str]:
    """Return the command that groups the backlog of a topic's only subscription, or else all stored messages."""
    kept_by = real(row, "keptBy")
    return ["dlq", "groups", short(row), *(["-s", kept_by] if kept_by else ["--stored"])]
