"""One message: its metadata, and its contents as an outline, as text or as bytes.

The contents are read in slices, and only visible lines are drawn, so a large message does not delay the keyboard.
"""

import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal

from pulsarbox.cleaning import clean
from pulsarbox.names import short_topic
from pulsarbox.tui.actions.action_table import CONTENT
from pulsarbox.tui.screens.messages.message_actions import MessageActions
from pulsarbox.tui.screens.messages.message_facts import facts, fitted_facts, properties_of
from pulsarbox.tui.screens.messages.message_place import absence_of, place_in
from pulsarbox.tui.screens.messages.message_source import LoadedMessage
from pulsarbox.tui.slices import in_slices
from pulsarbox.tui.viewer.contents import is_text
from pulsarbox.tui.viewer.lines import HexLines, Lines, TextLines, hex_columns
from pulsarbox.tui.viewer.outline import EVERYTHING, Outline
from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.bars import Part
from pulsarbox.tui.widgets.pager import Pager
from pulsarbox.tui.widgets.panel import FRAME, PanelFrame, TextPanel, labeled

FORMS: Final = ("outline", "text", "hex")
METADATA: Final = "metadata"
"""Form with all metadata in place of the contents, which scrolls and can be searched."""
_SOME, _ALL, _NONE = "some", "all", "none"
"""The metadata that is shown."""
_FACT_MAX: Final = 10_000
"""Maximum number of characters of a value among all metadata."""
FOLDED_FROM: Final = 64 << 10
"""Bytes of a payload from which only its first two levels are unfolded at first."""
FOUND_MAX: Final = 100_000
"""Maximum number of matches of a search."""
_WIDE: Final = 140
"""Columns from which a dump beside an outline has 16 bytes per row instead of 8."""
_NARROW: Final = 70
"""Columns below which it has 4."""
_BESIDE_BYTES: Final = 3 + FRAME
"""Columns beside a dump: the signs of the pager at its left, a blank at its right, and the border."""
_BESIDE: Final = 120
"""Columns from which the bytes are beside the contents at first."""
_REDRAWN: Final = 0.25
"""Seconds between two frames of a message that is being read, for the counts of its containers."""
_FACTS_SHARE: Final = 40
"""Percentage of the lines that the metadata has at most."""
_BESIDE_FACT: Final = 56
"""Columns beside the beginning of a long property: border, titles, and the length."""
_CONTENT_LEAST: Final = 12
"""Lines of the contents without which the metadata has no border."""
_HINT: Final = "a text in names or values; case is ignored"


class MessageViewer(MessageActions):
    """The whole message, loaded from the box by its ID."""

    DEFAULT_CSS = """
    MessageViewer #facts { max-height: 40%; }  /* _FACTS_SHARE */
    MessageViewer #facts.-hidden { display: none; }
    MessageViewer #dump { display: none; }
    MessageViewer.-beside #dump { display: block; }
    """
    place: ClassVar[str] = "topics"
    kind: ClassVar[str] = CONTENT
    hinted: ClassVar[Sequence[str]] = (
        *("fold", "search", "next match", "copy", "form", "dump", "next message", "next by key", "details"),
        *("difference", "mark message", "previous message", "back", "help", "quit"),
    )

    def __init__(self, topic: str, subscription: str, message_id: str) -> None:
        super().__init__(topic, subscription, message_id)
        self.form = ""
        """One of ``FORMS``, or ``METADATA``; empty until the message is loaded."""
        self.searched = ""
        self.found: list[int] = []
        """Lines with a match, in order."""
        self._outline: Outline | None = None
        self._is_beside: bool | None = None
        """Whether the user wants the bytes beside the contents; None: where there is room."""
        self._is_wanted = True
        self._is_reading = self._is_searching = False
        self._drawn = 0.0
        self._metadata = _SOME
        self._has_more_metadata = False
        """Whether the panel lacks properties, or parts of values."""
        self._form_before = ""
        """Form of the contents to return to from the metadata."""

    def body(self) -> ComposeResult:
        """Compose the metadata, the contents, and the bytes beside them."""
        yield TextPanel("Metadata", key="facts")
        with Horizontal():
            with PanelFrame(id="contents"):
                yield Pager(key="content")
            with PanelFrame(id="dump"):
                yield Pager(key="bytes")

    @property
    def pager(self) -> Pager:
        """The pager of the contents."""
        return self.query_one("#content", Pager)

    @property
    def dump(self) -> Pager:
        """The pager of the bytes beside the contents."""
        return self.query_one("#bytes", Pager)

    def begin(self) -> None:
        """Start to load the message."""
        super().begin()
        self.dump.has_cursor = self.dump.can_focus = False
        self.query_one("#dump", PanelFrame).name_it("Bytes")
        self.app.theme_changed_signal.subscribe(self, lambda _: self._lay_out())  # the metadata has colors of the theme
        self.set_focus(self.pager)

    def on_resize(self) -> None:
        """Lay out the panels for the new size, once the layout has it."""
        self.call_after_refresh(self._lay_out)

    def _lay_out(self) -> None:
        """Draw the metadata, without a border where the contents would lack lines."""
        if self.message is None:
            return
        panel, height = self.query_one("#facts", TextPanel), self.query_one("#body").size.height
        row, room = self.message.row, height * _FACTS_SHARE // 100
        lines = fitted_facts(row, self._fact_room, room - FRAME)
        is_framed = height - len(lines) - 2 * FRAME >= _CONTENT_LEAST
        if not is_framed:
            lines = fitted_facts(row, self._fact_room, room)
        self._has_more_metadata = lines != facts(row, _FACT_MAX)
        panel.set_class(not is_framed, "-plain")
        panel.put(labeled(lines, self.app.theme_variables))
        panel.retitle(f"Metadata: {self._called}")
        self._show_bytes()
        self._show_titles()

    @property
    def _called(self) -> str:
        row: Mapping[str, Any] = self.message.row if self.message is not None else {}
        return f"{row.get('id')} of {short_topic(self.topic)}"

    def _show_titles(self) -> None:
        """Update the form, the numbers of values and matches, and the size in the border of the contents."""
        if self.message is None:
            return
        panel = self.query_one("#facts", TextPanel)
        frame = self.query_one("#contents", PanelFrame)
        matches = [numbers.counted(len(self.found), "match", "matches")] if self.searched and self.found else []
        if self.form == METADATA:
            count = numbers.counted(properties_of(self.message.row), "property", "properties")
            frame.name_it(f"Metadata: {self._called}", count, *matches)
            return
        is_named = panel.display and not panel.has_class("-plain")
        document, told = self.message.contents.document, [self.form]
        if self.form == "outline" and document is not None:
            told.append(numbers.counted(len(document), "value"))
        told += [numbers.size(self.message.row.get("size")), *matches]
        frame.name_it("Contents" if is_named else f"Contents: {self._called}", *told)

    def refresh_status_lines(self) -> None:
        """See TopScreen."""
        super().refresh_status_lines()
        if self.is_whole:
            self._show_titles()

    # Loading

    def load(self) -> Callable[[], Any]:
        """Return a function that loads the message, unless it is loaded."""
        if not self._is_wanted:
            return lambda: None
        return partial(self.source.load, self.message_id)

    def open_message(self, message_id: str) -> None:
        """See MessageActions."""
        self.message_id, self._is_wanted = message_id, True
        self.ask_again()

    def show(self, answer: Any) -> None:
        """Show a loaded message."""
        if not isinstance(answer, LoadedMessage):
            return
        self._is_wanted, self.message, self._outline = False, answer, None
        reason = absence_of(answer)
        self.pager.empty = self.dump.empty = f"({reason})" if reason else ""
        contents = answer.contents
        payload = contents.payload or b""
        if contents.document is not None:
            self._outline = Outline(contents.document, 2 if len(payload) > FOLDED_FROM else EVERYTHING)
        self._use("outline" if self._outline is not None else "text" if is_text(payload) else "hex")
        self._lay_out()
        if self._metadata == _ALL:
            self._show_metadata(_ALL if self._has_more_metadata else _SOME)
        self.run_worker(self._read(), group="reading", exclusive=True)

    @property
    def _fact_room(self) -> int:
        """Characters of a value that fit on a line of the metadata with its title and length."""
        return max(self.size.width - _BESIDE_FACT, 20)

    async def _read(self) -> None:
        """Read the contents in slices, and show what has been read."""
        assert self.message is not None
        contents = self.message.contents
        self._is_reading = True
        await in_slices(contents.steps(), lambda _: None, self._progressed)
        self._is_reading = False
        if contents.document is None and self._outline is not None:
            self._outline = None
            if self.form == "outline":
                self._use("text")
            elif self._form_before == "outline":
                self._form_before = "text"
        self.pager.changed()
        self.refresh_status_lines()
        if self.searched:
            self._search()

    def _progressed(self) -> None:
        """Draw new lines where there is room, and otherwise the grown counts now and then."""
        now = time.monotonic()
        if len(self.pager.rows) < self.pager.size.height or now - self._drawn >= _REDRAWN:
            self._drawn = now
            self.pager.changed()

    # Forms

    def _use(self, form: str) -> None:
        """Show the contents in a form."""
        assert self.message is not None
        self.form, self.found = form, []
        self.pager.show(self._lines(form))
        self._show_bytes()
        if self.searched:
            self._search()
        self.refresh_status_lines()

    def _lines(self, form: str) -> Lines | None:
        assert self.message is not None
        contents = self.message.contents
        if form == METADATA:
            return TextLines("\n".join(facts(self.message.row, _FACT_MAX)).encode("utf-8", "replace"))
        if form == "outline":
            return self._outline
        return contents.text if form == "text" else contents.dump()

    def do_form(self) -> None:
        """Show the contents in the next form."""
        if self.form == METADATA:
            self._show_metadata(_SOME)
        elif self.message is not None:
            forms = [form for form in FORMS if form != "outline" or self._outline is not None]
            self._use(forms[(forms.index(self.form) + 1) % len(forms)])

    def do_wrap(self) -> None:
        """Start or stop wrapping lines."""
        self.pager.wrap()
        self.refresh_status_lines()

    def do_details(self) -> None:
        """Show all metadata if the panel has only some, then none, then some."""
        if self.message is not None:
            states = [_SOME, _ALL, _NONE] if self._has_more_metadata else [_SOME, _NONE]
            at = states.index(self._metadata) if self._metadata in states else -1
            self._show_metadata(states[(at + 1) % len(states)])

    def _show_metadata(self, which: str) -> None:
        self._metadata = which
        self.query_one("#facts").set_class(which != _SOME, "-hidden")
        if which == _ALL and self.form != METADATA:
            self._form_before = self.form
            self._use(METADATA)
        elif which != _ALL and self.form == METADATA:
            self._use(self._form_before)
        self._show_titles()

    def do_dump(self) -> None:
        """Show or hide the bytes beside the contents, of which a message without bytes has none."""
        if self.message is not None and not self._has_bytes:
            self.top.notify("The message has no bytes", severity="warning")
            return
        self._is_beside = not self.has_class("-beside")
        self._show_bytes()

    def _show_bytes(self) -> None:
        """Show the bytes of the value at the cursor, on a wide screen also unasked, but none beside a dump."""
        is_wanted = self.size.width >= _BESIDE if self._is_beside is None else self._is_beside
        is_dump = isinstance(self.pager.lines, HexLines) or self.form == METADATA
        is_shown = is_wanted and not is_dump and self._has_bytes
        self.set_class(is_shown, "-beside")
        if self.message is None or not is_shown:
            return
        width = 16 if self.size.width >= _WIDE else 8 if self.size.width >= _NARROW else 4
        self.query_one("#dump").styles.width = hex_columns(width) + _BESIDE_BYTES
        lines = self.message.contents.dump(width)
        lines.marked = self._marked_bytes()
        self.dump.show(lines, lines.marked[0] if lines.marked else None)

    @property
    def _has_bytes(self) -> bool:
        return self.message is not None and bool(self.message.contents.payload)

    def _marked_bytes(self) -> tuple[int, int] | None:
        """Return the place of the value or line at the cursor; None for the whole contents, which need no mark."""
        assert self.message is not None
        at, lines, contents = self.pager.cursor, self.pager.lines, self.message.contents
        if isinstance(lines, Outline):
            return contents.bytes_of(at) if at else None
        if not isinstance(lines, TextLines) or at is None:
            return None
        end = lines.after(at)
        return None if at == 0 and end is None else (at, end or len(contents.payload or b""))

    @on(Pager.Moved)
    def _moved(self) -> None:
        self._show_bytes()
        self.refresh_status_lines()

    # Folding

    @on(Pager.Chosen)
    def do_fold(self) -> None:
        """Fold or unfold the container at the cursor."""
        self._folded(Outline.toggle)

    def do_fold_around(self) -> None:
        """Fold the container at the cursor, or the one around it."""
        self._folded(Outline.fold)

    def do_unfold(self) -> None:
        """Unfold the container at the cursor."""
        self._folded(Outline.unfold)

    def do_fold_all(self) -> None:
        """Fold everything."""
        self._folded(Outline.fold_all)

    def do_unfold_all(self) -> None:
        """Unfold everything."""
        self._folded(Outline.unfold_all)

    def _folded(self, change: Callable[[Outline, int], int]) -> None:
        pager = self.pager
        if isinstance(pager.lines, Outline) and pager.cursor is not None:
            pager.point(change(pager.lines, pager.cursor))

    # Search

    def do_search(self) -> None:
        """Ask for a text to search for."""
        self.open_prompt("/", self.searched, _HINT)

    def filtered(self, text: str) -> None:
        """Search for a text; none ends the search."""
        self.searched, self.found = text, []
        for pager in (self.pager, self.dump):
            pager.highlight(text)
        if text:
            self._search(is_new=True)
        else:
            self.workers.cancel_group(self, "searching")
            self._is_searching = False
        self.refresh_status_lines()

    def _search(self, *, is_new: bool = False, goes: bool = True) -> None:
        """Search the current contents; only a new search notifies that there is no match."""
        self.run_worker(self._find(is_new, goes), group="searching", exclusive=True)

    @on(Pager.Divided)
    def _divided(self) -> None:
        """Find the lines with a match again, which are other ones."""
        if self.searched:
            self._search(goes=False)

    async def _find(self, is_new: bool, goes: bool) -> None:
        """Search all lines in slices, and go to the first match from the cursor on, if wanted."""
        lines, start = self.pager.lines, self.pager.cursor or 0
        if lines is None:
            return
        self._is_searching, self.found = True, []
        seen = not goes

        def take(line: int | None) -> None:
            nonlocal seen
            if line is None or len(self.found) >= FOUND_MAX:
                return
            self.found.append(line)
            if line >= start and not seen:
                seen = True
                self._go_to(line)

        await in_slices(lines.found(self.searched), take)
        self._is_searching = False
        if self.found and not seen:
            self._go_to(self.found[0])
        if not self.found and is_new:
            self.top.notify(f"'{clean(self.searched)}' does not occur", severity="warning", markup=False)
        self.refresh_status_lines()

    def _go_to(self, line: int) -> None:
        if isinstance(self.pager.lines, Outline):
            self.pager.lines.reveal(line)
        self.pager.point(line)

    def do_next_match(self) -> None:
        """Go to the next match, after the last one to the first."""
        if self._has_matches():
            at = bisect_right(self.found, self.pager.cursor or 0)
            self._go_to(self.found[at % len(self.found)])

    def do_previous_match(self) -> None:
        """Go to the previous match, before the first one to the last."""
        if self._has_matches():
            self._go_to(self.found[bisect_left(self.found, self.pager.cursor or 0) - 1])

    def _has_matches(self) -> bool:
        if not self.found:
            self.top.notify("Search for a text first: /" if not self.searched else "No match", severity="warning")
        return bool(self.found)

    # Lines

    def status_line(self) -> list[Part]:
        """Return the place of the cursor, matches, and what is missing."""
        if self.message is None:
            return []
        contents = self.message.contents
        parts: list[Part] = [(f" {self.form}", "key", "form"), *place_in(self.message, self.pager)]
        if self._is_reading:
            parts.append(("  reading", "dim", ""))
        if contents.trouble and contents.payload is not None:
            parts.append((f"  {contents.trouble}", "warn", ""))
        elif not contents.is_whole:
            size = numbers.size(self.message.row.get("size"))
            parts.append((f"  only {numbers.size(len(contents.payload or b''))} of {size} are loaded", "warn", ""))
        return [*parts, *self._matches()]

    def hints_now(self) -> list[str]:
        """Return the hinted actions that apply to the message and its form."""
        return [name for name in self.hinted if self._applies(name)]

    def _applies(self, name: str) -> bool:
        lines = self.pager.lines
        if name == "fold":
            return isinstance(lines, Outline) and lines.first is not None and lines.document.is_container(lines.first)
        if name == "dump":
            is_dump = isinstance(lines, HexLines) or self.form == METADATA
            return not is_dump and self._has_bytes
        if name == "details":
            return self._has_more_metadata
        if name == "next match":
            return bool(self.found)
        if name == "next by key":
            return self.key is not None
        return name != "difference" or self.has_other_marked

    def _matches(self) -> list[Part]:
        if not self.searched:
            return []
        at = bisect_left(self.found, self.pager.cursor or 0)
        is_on = at < len(self.found) and self.found[at] == self.pager.cursor
        which = f"{at + 1:,} of " if is_on else ""
        going_on = " so far" if self._is_searching else ""
        count = numbers.counted(len(self.found), "match", "matches")
        look = "good" if self.found else "plain"
        return [(f"  '{clean(self.searched)}': {which}{count}{going_on}", look, "next match")]
