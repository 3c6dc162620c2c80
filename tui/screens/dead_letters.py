"""Dead letter screens: the dead letter topics, and the groups of one topic by cause."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, Final
from urllib.parse import urlencode

from pulsarbox.client.admin import path_of
from pulsarbox.names import short_topic
from pulsarbox.protocol.dead_letters.reason_groups import ReasonGroup, by_reason, shape_filter
from pulsarbox.tui import views
from pulsarbox.tui.actions.operation import short, topic_of
from pulsarbox.tui.feed import RowQuery, ShownRow, ViewSnapshot, real
from pulsarbox.tui.screens.listed import ListScreen, fetch
from pulsarbox.tui.screens.trouble import ScreenFacts, check_recorded
from pulsarbox.tui.screens.view import ViewScreen
from pulsarbox.tui.widgets.bars import Part
from pulsarbox.tui.widgets.dialogs.plain_title import plain_title
from pulsarbox.tui.widgets.local_rows import chosen
from pulsarbox.tui.widgets.table import Row

_NO_REASON: Final = "no reason"


class DeadLettersScreen(ViewScreen):
    """Dead letter topics; enter shows the groups of one."""

    view: ClassVar[views.TableView] = views.DEAD_LETTERS
    place: ClassVar[str] = "deadletters"
    kind: ClassVar[str] = "deadletters"
    opens: ClassVar[str] = "failures"
    hinted: ClassVar[Sequence[str]] = ("messages", "dlq replay", "filter", "menu", "copy", "help", "quit")

    def opens_now(self) -> str:
        """Return that enter shows the failures, unless in history, which has none."""
        return "" if self.top.at is not None else super().opens_now()

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
            self.top.open("messages.browser:Browser", real(row, "topic"), real(row, "keptBy"), dead_letters=True)

    def status_line(self) -> list[Part]:
        """Warn of a topic that retains no messages."""
        row = self.table.pointed
        if row is not None and row.get("lost"):
            text = " New messages are lost: the topic has no subscription (x: create one)"
            return self.with_command([(text, "bad", "menu")])
        return super().status_line()

    def command_line(self) -> str:
        """Return the command that shows the groups of the topic."""
        row = self.table.pointed
        return self.line(*groups_of(row)) if row is not None else self.line("dlq", "list")


class Groups(ListScreen):
    """Remaining dead letters of one topic, grouped by reason.

    Enter shows the shapes of a reason as further rows, or the messages of a row without further shapes.
    """

    view: ClassVar[views.TableView] = views.GROUPS
    place: ClassVar[str] = "deadletters"
    kind: ClassVar[str] = "group"
    opens: ClassVar[str] = "messages"
    hinted: ClassVar[Sequence[str]] = ("dlq replay", "filter", "menu", "copy", "back", "help", "quit")

    def __init__(self, row: Row) -> None:
        super().__init__()
        self.topic = row
        self.looked: tuple[int, int] = (0, 0)
        self.unfolded: set[str] = set()
        """Reasons whose shapes are shown, as ``group`` of their rows."""

    def begin(self) -> None:
        """Name the topic in the title."""
        super().begin()
        title = f"Groups of {short_topic(str(self.topic.get('topic')))}"
        self.table.border_title = plain_title(title, self.app.size.width)

    def path(self) -> str:
        """Return the request path of the groups."""
        _, _, tenant, namespace, local = path_of(topic_of(self.topic)).split("/")
        kept_by = real(self.topic, "keptBy")
        only = f"?{urlencode({'subscription': kept_by})}" if kept_by else ""
        return f"/pulsarbox/v1/dlq/{tenant}/{namespace}/{local}/groups{only}"

    def rows_in(self, told: Any) -> list[Mapping[str, Any]]:
        """Return the groups of the box, one per reason and shape. Raises FeedError."""
        if isinstance(told, dict):
            self.looked = (told.get("entries") or 0, told.get("of") or 0)
            told = told.get("groups")
        return super().rows_in(told)

    def load(self) -> Callable[[], Any]:
        """Return a function that queries all groups, and applies filter and order to the reasons."""
        check_recorded(self.top.at)
        query, path, passes = self.query_now(), self.path(), self.passes()
        unfolded, more = frozenset(self.unfolded), {name: real(self.topic, name) for name in ("topic", "keptBy")}

        def ask() -> ViewSnapshot:
            return reasons_of(query, self.rows_in(fetch(self.top.feed, path)), passes, unfolded, more)

        return ask

    def facts_of_trouble(self) -> ScreenFacts:
        """Return the state of this screen for the texts of an error."""
        return super().facts_of_trouble()._replace(title="Groups of failures")

    def counted(self, answer: ViewSnapshot) -> tuple[int, int]:
        """Count reasons, not the rows of their shapes."""
        return answer.totals["matching"], answer.totals["total"]

    def nothing(self) -> str:
        """Return the command that shows acknowledged dead letters."""
        return f"No dead letters remain. Show stored ones: {self.line('dlq', 'groups', short(self.topic), '--stored')}"

    def title_of(self, row: Row) -> str:
        """Return the reason of a group, and its shape if the row has only one of several."""
        return str(row.get("title") or _NO_REASON)

    def status_line(self) -> list[Part]:
        """Return the full reason, and how many entries were scanned."""
        row = self.table.pointed
        looked, total = self.looked
        more = f"  (of the newest {looked:,} of {total:,})" if looked < total else ""
        if row is None:
            return super().status_line()
        fold: list[Part] = []
        if row["shapes"] > 1:
            enter = "hides" if row["group"] in self.unfolded else "shows"
            shapes = f" {enter} its {row['shapes']} payload shapes"
            fold = [("  ", "plain", ""), ("enter", "key", ""), (shapes, "dim", "")]
        return self.with_command([(f" {self.title_of(row)}{more}", "plain", ""), *fold])

    def detailed(self, row: Row) -> Row:
        """Return the row with its whole reason and shape, without the signs and blanks of the table."""
        return {**row, **row["whole"]}

    def opens_now(self) -> str:
        """Return what enter opens: the shapes of a reason with several, else messages."""
        row = self.table.pointed
        return "shapes" if row is not None and row["shapes"] > 1 else super().opens_now()

    def opened(self, row: Row) -> None:
        """Fold or unfold a reason with several shapes; browse the messages of other rows."""
        if row["shapes"] > 1:
            self.unfolded ^= {row["group"]}
            self.ask_again()
        else:
            self._browse(row)

    def do_messages(self) -> None:
        """Browse the messages of the group: of a reason, those of all shapes."""
        if self.table.pointed is not None:
            self._browse(self.table.pointed)

    def _browse(self, row: Row) -> None:
        topic, keeper, only = real(row, "topic"), real(row, "keptBy"), str(row["only"])
        self.top.open("messages.browser:Browser", topic, keeper, only, dead_letters=True)

    def command_line(self) -> str:
        """Return the command that shows the groups."""
        return self.line(*groups_of(self.topic))


def reasons_of(
    query: RowQuery,
    groups: Sequence[Mapping[str, Any]],
    passes: Callable[[Any], bool],
    unfolded: Collection[str],
    more: Mapping[str, Any],
) -> ViewSnapshot:
    """Return a row per reason in the order of the query, each unfolded one followed by the rows of its shapes.

    A reason passes the filter if one of its groups does. ``unfolded``: ``group`` of rows. ``more``: fields of all rows.
    """
    reasons = {_id(each): each for each in by_reason(groups)}
    passing = {name for name, each in reasons.items() if any(passes(ShownRow(shape)) for shape in each.shapes)}
    order = chosen(query._replace(offset=0, limit=len(reasons)), [_reason_row(each) for each in reasons.values()], _all)
    rows, matching = [], []
    blank = "  " if any(len(each.shapes) > 1 for each in reasons.values()) else ""
    for name in (row["group"] for row in order.rows):
        shown = _shown(reasons[name], blank, is_unfolded=name in unfolded)
        rows += shown
        matching += shown if name in passing else []
    part = [ShownRow({**each, **more}) for each in matching[query.offset : query.offset + query.limit]]
    totals = {"total": len(reasons), "matching": len(passing)}
    return ViewSnapshot(query, 0, len(rows), len(matching), query.offset, part, totals)


def _all(row: Row) -> bool:
    return True


def _id(reason: ReasonGroup) -> str:
    """Return the identity of the row of a reason, in ASCII, as control characters are replaced in rows."""
    return ascii(reason.key)


def _shown(reason: ReasonGroup, blank: str, *, is_unfolded: bool) -> list[dict[str, Any]]:
    """Return the rows of a reason. ``blank`` takes the place of the sign of a reason with a single shape."""
    row = _reason_row(reason)
    sign = blank if row["shapes"] == 1 else "▾ " if is_unfolded else "▸ "
    return [row | {"reason": f"{sign}{row['title']}"}, *(_shape_rows(reason) if is_unfolded else ())]


def _reason_row(reason: ReasonGroup) -> dict[str, Any]:
    row, count = reason.row, len(reason.shapes)
    title, shape = row["reason"] or _NO_REASON, f"{count} shapes" if count > 1 else row["shape"]
    return row | {
        "shape": shape,
        "filter": reason.filter,
        "only": reason.filter,
        "group": _id(reason),
        "shapes": count,
        "title": title,
        "whole": {"reason": title, "shape": shape},
    }


def _shape_rows(reason: ReasonGroup) -> list[dict[str, Any]]:
    """Return the rows of the shapes, each below the reason, as narrow screens have no column for it."""
    return [
        {
            **each,
            "group": f"{_id(reason)} {each['fingerprint']}",
            "shapes": 1,
            "title": f"{each['reason'] or _NO_REASON}: {each['shape']}",
            "whole": {"reason": each["reason"] or _NO_REASON, "shape": each["shape"]},
            "reason": f"    {each['shape']}",
            "shape": " ",
            "filter": (only := shape_filter(each)),
            "only": only,
        }
        for each in reason.shapes
    ]


def groups_of(row: Row) -> list[str]:
    """Return the command that groups the backlog of a topic's only subscription, or else all stored messages."""
    kept_by = real(row, "keptBy")
    return ["dlq", "groups", short(row), *(["-s", kept_by] if kept_by else ["--stored"])]
