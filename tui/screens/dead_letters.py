"""``4``: dead letters: of all topics, by what went wrong, and from there one by one."""

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


class DeadLetters(ViewScreen):
    """The topics that dead letters are in; enter shows one by what went wrong."""

    view: ClassVar[views.View] = views.DEAD_LETTERS
    place: ClassVar[str] = "deadletters"
    kind: ClassVar[str] = "deadletters"
    hinted: ClassVar[Sequence[str]] = ("groups", "messages", "dlq replay", "filter", "menu", "copy", "help", "quit")

    def opened(self, row: Row) -> None:
        """By what went wrong."""
        self.top.open("dead_letters:Groups", row)

    def do_groups(self) -> None:
        """``f``"""
        if self.table.pointed is not None:
            self.opened(self.table.pointed)

    def do_messages(self) -> None:
        """``b``"""
        row = self.table.pointed
        if row is not None:
            self.top.open("browser:Browser", real(row, "topic"), real(row, "keptBy"))

    def told(self) -> list[Part]:
        """Where nobody keeps what comes, that is said first."""
        row = self.table.pointed
        if row is not None and row.get("lost"):
            text = " What comes here is lost: nobody has subscribed (x: make a subscription)"
            return [(text, "bad", "menu")]
        return super().told()

    def command_line(self) -> str:
        """The topic's groups."""
        row = self.table.pointed
        return self.line(*groups_of(row)) if row is not None else self.line("dlq", "list")


class Groups(ListScreen):
    """The dead letters of one topic that are left, those that failed alike together; enter shows them one by one."""

    view: ClassVar[views.View] = views.GROUPS
    place: ClassVar[str] = "deadletters"
    kind: ClassVar[str] = "group"
    hinted: ClassVar[Sequence[str]] = ("dlq replay", "messages", "filter", "menu", "copy", "back", "help", "quit")

    def __init__(self, row: Row) -> None:
        super().__init__()
        self.topic = row
        self.looked: tuple[int, int] = (0, 0)

    def path(self) -> str:
        """By fingerprint."""
        _, _, tenant, namespace, local = path_of(topic_of(self.topic)).split("/")
        kept_by = real(self.topic, "keptBy")
        only = f"?{urlencode({'subscription': kept_by})}" if kept_by else ""
        return f"/pulsarbox/v1/dlq/{tenant}/{namespace}/{local}/groups{only}"

    def rows_in(self, told: Any) -> list[Mapping[str, Any]]:
        """With what a job or a browser is to be about."""
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
        """What went wrong."""
        return str(row.get("reason") or "no reason given")

    def told(self) -> list[Part]:
        """The whole reason, and how many were looked at."""
        row = self.table.pointed
        looked, total = self.looked
        more = f"  (of the newest {looked:,} of {total:,})" if looked < total else ""
        if row is None:
            return super().told()
        return [(f" {row.get('reason') or 'no reason given'}{more}", "plain", "")]

    def opened(self, row: Row) -> None:
        """Its messages."""
        self.top.open("browser:Browser", real(row, "topic"), real(row, "keptBy"), str(row["only"]))

    def do_messages(self) -> None:
        """``b``"""
        if self.table.pointed is not None:
            self.opened(self.table.pointed)

    def command_line(self) -> str:
        """The same."""
        return self.line(*groups_of(self.topic))


def groups_of(row: Row) -> list[str]:
    """The command that shows the groups of a topic, of what its only subscription has not acknowledged, or of all."""
    kept_by = real(row, "keptBy")
    return ["dlq", "groups", short(row), *(["-s", kept_by] if kept_by else ["--stored"])]
