"""List of findings of the diagnosis: one line each, the most urgent first, opened with enter or a click."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from pulsarbox.names import short_topic
from pulsarbox.tui.actions.diagnosis import BAD, CALM, WARN, BoxFinding
from pulsarbox.tui.widgets import command_lines, numbers
from pulsarbox.tui.widgets.columns import shortened
from pulsarbox.tui.widgets.styles import ColorNames, Looks
from pulsarbox.tui.widgets.wrapping import rows_of, rows_with_command

_LOOKS: Final = {BAD: "bad", WARN: "warn", CALM: "good"}
_NOTHING_ELSE: Final = "   Nothing else needs attention."
_MARK: Final = 3
"""Width of the mark of a finding."""
_ENTER: Final = " enter "
_LOOSE: Final = 10
"""Cells that a row may leave to the next one because a word does not fit."""
_NAME_LEAST: Final = 16
"""Cells that remain of a name that is too long."""
_ROWS_MAX: Final = 99
"""Rows of a finding whose room is not limited."""


def fitted(found: BoxFinding, room: int) -> str:
    """Return the text of a finding in ``room`` cells, by shortening the names in it: the statement follows them."""
    text, row = found.text, found.row or {}
    for key in ("topic", "subject", "subscription"):
        name = short_topic(str(row.get(key) or ""))
        surplus, wide = cell_len(text) - room, cell_len(name)
        if surplus > 0 and wide > _NAME_LEAST:
            text = text.replace(name, shortened(name, max(wide - surplus, _NAME_LEAST)), 1)
    return text


class DiagnosisList(Looks, Widget, can_focus=True):
    """As many findings as it has lines; the rest are counted, and the cursor scrolls to them."""

    DEFAULT_CSS = """
    DiagnosisList { height: 1; width: 1fr; }
    """
    looks: Mapping[str, ColorNames] = {
        "bad": ColorNames("text-error", bold=True),
        "warn": ColorNames("text-warning", bold=True),
        "good": ColorNames("text-success"),
        "plain": ColorNames(),
        "dim": ColorNames("text-muted"),
        "key": ColorNames("accent", bold=True),
        "cursor": ColorNames("block-cursor-foreground", "block-cursor-background", bold=True),
    }
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False, priority=True),
        Binding("down,j", "move(1)", "Down", show=False, priority=True),
        Binding("enter", "choose", "Open", show=False, priority=True),
    ]

    class Chosen(Message):
        """A finding was opened."""

        def __init__(self, finding: BoxFinding | None) -> None:
            super().__init__()
            self.finding = finding

    class Moved(Message):
        """The cursor moved to another finding, or the focus came or went."""

    class Left(Message):
        """The cursor moved below the last finding."""

    def __init__(self) -> None:
        super().__init__(id="findings")
        self.found: Sequence[BoxFinding] = ()
        self.empty = numbers.LOADING
        """Text before the first response."""
        self._at = 0
        self._top = 0
        """Number of the finding in the first line."""

    def show(self, found: Sequence[BoxFinding]) -> None:
        """Show findings. The cursor stays at its line."""
        if list(found) != list(self.found):
            self.found = found
            self._at = min(self._at, max(len(found) - 1, 0))
            if self.has_focus:
                self._reveal()
            self._show_count()
            self.refresh()

    @property
    def lines_needed(self) -> int:
        """The number of lines in which all findings fit, of which the first one may be wrapped."""
        room = max(self.size.width - _MARK, 1)
        first = rows_with_command(self.found[0].text, room, _ROWS_MAX) if self.found else []
        return len(first) + max(len(self.found) - 1, 0)

    @property
    def pointed(self) -> BoxFinding | None:
        """The finding of the cursor."""
        return self.found[self._at] if self._at < len(self.found) else None

    def action_move(self, by: int) -> None:
        """Move the cursor, scroll to further findings, and leave at the end."""
        if not 0 <= self._at + by < len(self.found):
            if by > 0:
                self.post_message(self.Left())
            return
        self._at += by
        self._reveal()
        self._show_count()
        self.refresh()
        self.post_message(self.Moved())

    def _reveal(self) -> None:
        """Scroll to the cursor."""
        self._top = min(self._top, self._at)
        while self._top < self._at and self._at not in {at for at, _ in self._laid_out()}:
            self._top += 1

    def on_focus(self) -> None:
        """Report the focus."""
        self._reveal()
        self._show_count()
        self.post_message(self.Moved())

    def on_blur(self) -> None:
        """Show the most urgent findings again, and report the focus."""
        self._top = 0
        self._show_count()
        self.refresh()
        self.post_message(self.Moved())

    def on_resize(self) -> None:
        """Keep the cursor visible."""
        if self.has_focus:
            self._reveal()
        self._show_count()

    def action_choose(self) -> None:
        """Open the finding of the cursor."""
        self.post_message(self.Chosen(self.pointed))

    def on_click(self, event: events.Click) -> None:
        """Open the clicked finding."""
        offset, laid_out = event.get_content_offset(self), self._laid_out()
        if offset is not None and offset.y < len(laid_out):
            self._at = laid_out[offset.y][0]
            self.refresh()
            self.action_choose()

    def _laid_out(self) -> list[tuple[int, str]]:
        """Return the lines: the number of the finding, and its part of the text. The first finding may be wrapped."""
        width, height = self.size
        room = max(width - _MARK, 1)
        lines: list[tuple[int, str]] = []
        for at in range(self._top, len(self.found)):
            parts = self._parts(at, room, room, height)
            if len(lines) + len(parts) > height:
                break
            lines += [(at, part) for part in parts]
        if lines:  # beside the last row is the number of further findings
            end = lines[-1][0]
            above = [line for line in lines if line[0] != end]
            last = room - cell_len(self._count_behind(end))
            lines = above + [(end, part) for part in self._parts(end, room, last, height - len(above))]
        return lines

    def _parts(self, at: int, room: int, last: int, height: int) -> list[str]:
        """Return the text of a finding in one row, or up to ``height`` of the first finding.

        A row has ``room`` cells, the last one ``last``.
        """
        found = self.found[at]
        if at > 0:
            return [fitted(found, last)]
        text, most = fitted(found, max(room * height - _LOOSE * (height - 1), room)), max(height, 1)
        if command_lines.parted(text)[1]:
            return [row for row, _ in rows_with_command(text, room, height)][:most]
        rows = rows_of(text, room)
        if len(rows) < most:
            rows[-1:] = rows_of(rows[-1], last)
        if len(rows) > most or cell_len(rows[-1]) > last:
            cut = set_cell_size(" ".join(rows[most - 1 :]), max(last - 1, 0)).rstrip()
            rows[most - 1 :] = [f"{cut}…"]
        return rows

    def _count_behind(self, at: int) -> str:
        """Return how many findings follow the last visible one; empty if the edge has the number."""
        return "" if self._has_edge or at + 1 == len(self.found) else f" {self._further(at)} "

    def _further(self, at: int) -> str:
        return f"+{len(self.found) - at - 1} more"

    @property
    def _has_edge(self) -> bool:
        """Whether there is an edge below, which has the number of further findings."""
        return self.styles.border_bottom[0] not in ("", "none")

    def _show_count(self) -> None:
        """Show in the edge how many findings follow the last visible one."""
        if self._has_edge:
            last = next((at for at, _ in reversed(self._laid_out())), len(self.found) - 1)
            self.border_subtitle = self._further(last) if last + 1 < len(self.found) else ""

    def render_line(self, y: int) -> Strip:
        """See textual.widget.Widget."""
        width, lines = self.size.width, self._laid_out()
        if y < len(lines):
            return self._finding(y, lines, width)
        is_next = self.found and y == len(lines) and not self._top and self.found[0].severity != CALM
        text = _NOTHING_ELSE if is_next else "" if self.found or y else f" {self.empty}"
        return Strip([Segment(text[:width], self.look("dim"))]).adjust_cell_length(width, self.look("plain"))

    def _finding(self, y: int, lines: list[tuple[int, str]], width: int) -> Strip:
        at, text = lines[y]
        found = self.found[at]
        is_here = self.has_focus and at == self._at and bool(found.screen)
        is_end = lines[y + 1 : y + 2] == [] or lines[y + 1][0] != at
        count = self._count_behind(at) if y == len(lines) - 1 else ""
        room = max(width - _MARK - len(count), 0)
        has_enter = is_here and is_end and cell_len(text) + len(_ENTER) <= room  # the status line has it too
        hint, room = (_ENTER + count, room - len(_ENTER)) if has_enter else (count, room)
        shown = set_cell_size(text, max(room - 1, 0)) + "…" if cell_len(text) > room else set_cell_size(text, room)
        base = self.look("cursor") if is_here else None
        is_first = y == 0 or lines[y - 1][0] != at
        look = _LOOKS[found.severity]
        own = self.look(look) if base is None else self.kept_on(look, base)
        is_colored = at == 0 and (base is None or self.is_legible_on(look, base))
        around = base or own
        segments = [
            *(Segment(" ", around), Segment(found.mark, own) if is_first else Segment(" ", around)),
            Segment(" ", around),
            Segment(shown, own if is_colored else base or self.look("plain")),
            Segment(hint, base or self.look("dim")),
        ]
        return Strip(segments).adjust_cell_length(width, base or self.look("plain"))
