"""Modal dialogs: a choice, a text, and a deed with its fields, confirmation and command line.

The screen below is not refreshed while a dialog is open.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Final

from rich.cells import cell_len
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Button, Input, Label, OptionList, Static
from textual.widgets.option_list import Option

from pulsarbox.cleaning import clean
from pulsarbox.tui.actions import dry_run
from pulsarbox.tui.actions.operation import (
    OperationField,
    OperationSpec,
    Request,
    Row,
    Values,
    Wrong,
    default_of,
    explained_of,
)
from pulsarbox.tui.widgets import command_lines
from pulsarbox.tui.widgets.columns import subscription_title
from pulsarbox.tui.widgets.dialogs.dialog import Dialog
from pulsarbox.tui.widgets.dialogs.dialog_keys import DANGER_OF_OPTION, key_hints
from pulsarbox.tui.widgets.dialogs.options import LegibleOptions
from pulsarbox.tui.widgets.dialogs.plain_title import plain_title
from pulsarbox.tui.widgets.wrapping import COMMAND_INDENT, HangingText

BUTTONS: Final = """
#buttons Button { background: $panel; color: $foreground; text-style: none; border-left: outer $field-edge !important;
  border-right: outer $field-edge !important; }
#buttons Button.-primary { color: $text-primary; text-style: bold; }
#buttons Button.-error { color: $text-error; text-style: bold; }
#buttons Button:focus { background: $here-background; color: $here-foreground; text-style: bold;
  background-tint: transparent; border-left: outer $field-edge-focus !important;
  border-right: outer $field-edge-focus !important; }
#buttons Button:ansi { text-style: bold underline; }
#buttons Button:ansi:focus { background: ansi_default; color: ansi_default; text-style: bold reverse; }
"""
"""Styles of the buttons of a dialog. Those of Textual show the focus only in some themes."""
FIELDS: Final = """
%(name)s Input, %(name)s TextArea { border: none; border-left: outer $field-edge; padding: 0 1 0 0;
  background: $field; }
%(name)s Input { height: 1; width: 1fr; padding: 0 1; }
%(name)s Input:ansi { text-style: underline; }
%(name)s Input:focus, %(name)s TextArea:focus { border: none; border-left: thick $field-edge-focus; background: $field;
  background-tint: transparent; }
%(name)s Input:focus > .input--cursor { background: $field; color: $foreground; text-style: reverse; }
%(name)s Input > .input--placeholder { color: $text-disabled; text-style: italic; }
"""
"""Styles of the fields of a dialog: an edge at the left, which is thick in the field with the focus."""
_CSS: Final = (
    """
%(name)s { align: center middle; background: $background 60%%; }
%(name)s > #box { width: %(width)s; max-width: 96%%; height: auto; max-height: 90%%; padding: 1 2;
  background: $surface; border: round $primary; border-title-color: $accent; border-title-style: bold; }
%(name)s .explained { color: $text-muted; margin-bottom: 1; }
%(name)s .field { height: 1; width: 100%%; }
%(name)s .field Label { width: 24; }
%(name)s Static, %(name)s Label { height: auto; width: 100%%; }
%(name)s .dim { color: $text-muted; }
%(name)s .line { color: $text-secondary; }
%(name)s .danger { color: $text-error; text-style: bold; margin-top: 1; }
%(name)s #line { margin-top: 1; }
%(name)s .keys { color: $text-muted; }
%(name)s OptionList { height: auto; max-height: 1fr; background: $surface; border: none; padding: 0; }
%(name)s OptionList:focus { border: none; background-tint: transparent; }
%(name)s #hint { min-height: 1; margin-bottom: 1; }
%(name)s #target { margin-bottom: 1; text-style: bold; }
%(name)s #buttons { height: 1; align-horizontal: right; }
%(name)s Button { margin-left: 2; min-width: 10; }
"""
    + FIELDS
    + BUTTONS
)

_CHOICE_WIDTH, _TEXT_WIDTH = 76, 96
"""Columns of dialogs on wide screens; on others, they have this share of the screen:"""
_SHARE: Final = 0.96
_OPERATION_WIDTH, _OPERATION_MAX = 84, 160
"""Columns of the dialog of an operation: as many as its longest value needs, between these."""
_BESIDE: Final = 34
"""Columns of that dialog beside the values of its fields: the names of the fields, edges and padding."""
_COMMANDS_SHOWN: Final = 3
"""Command lines shown of an operation on several targets."""
_FIELD: Final = 42
"""Characters of a hint that fit into a field on a screen of 80 columns."""
_LINE_MAX: Final = 400
_LINE_SHOWN: Final = 120
"""Characters shown of a command line longer than ``_LINE_MAX``, such as one with a payload."""


class Description(str):
    """The description of an option in place of a text to copy. It is dim, so that it does not look like one."""

    __slots__ = ()


class ChoiceDialog(Dialog[str | None]):
    """Dialog with a list of options; the line below describes the highlighted one."""

    DEFAULT_CSS = (
        _CSS % {"name": "ChoiceDialog", "width": _CHOICE_WIDTH}
        + """ChoiceDialog #said { margin-bottom: 1; min-height: 1; }
ChoiceDialog #said.-description { color: $text-muted; }"""
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "Back", show=False),
        Binding("j", "down", show=False),
        Binding("k", "up", show=False),
        Binding("y", "copy", "Copy the command", show=False),
    ]

    def __init__(self, title: str, options: Sequence[tuple[str, str, str]], here: str = "") -> None:
        """``options`` are triples of name, shown text, and a text below.

        The text is a command line for each target, another text to copy, or a ``Description``.
        """
        super().__init__()
        self._title = title
        self._options = options
        self._here = here

    def compose(self) -> ComposeResult:
        """See textual.screen.Screen."""
        with Vertical(id="box") as box:
            box.border_title = _title(self, self._title, _CHOICE_WIDTH)
            yield from self.head()
            yield LegibleOptions(
                *(Option(_option(shown), id=f"at-{at}") for at, (_, shown, _) in enumerate(self._options))
            )
            with Vertical(id="foot"):
                yield HangingText(key="said", classes="line")
                yield Static(key_hints(("enter", "select"), ("esc", "back")), id="keys", classes="keys")

    def head(self) -> ComposeResult:
        """Compose what is above the options."""
        yield from ()

    def on_mount(self) -> None:
        """Highlight the current value."""
        names = [name for name, _, _ in self._options]
        listed = self.query_one(OptionList)
        if self._options:
            listed.highlighted = names.index(self._here) if self._here in names else 0
        self.set_focus(listed)  # now: keys may follow

    @on(OptionList.OptionHighlighted)
    def _status_line(self, event: OptionList.OptionHighlighted) -> None:
        told, said = self._options[event.option_index][2], self.query_one("#said", HangingText)
        is_copied = is_command(told)
        said.indent = COMMAND_INDENT if is_copied else 0
        said.set_class(isinstance(told, Description), "-description")
        said.update(shown_commands(told.split("\n"), 1) if is_copied else told)
        said.display = any(each for _, _, each in self._options)  # also a blank one, so that the dialog does not jump
        copied = [("y", f"copy the command{'s' if chr(10) in told else ''}")] if is_copied else []
        self.query_one("#keys", Static).update(key_hints(("enter", "select"), *copied, ("esc", "back")))

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._options[event.option_index][0])

    def action_leave(self) -> None:
        """Close without a choice."""
        self.dismiss(None)

    def action_down(self) -> None:
        """Move down, as the arrow key does."""
        self.query_one(OptionList).action_cursor_down()

    def action_up(self) -> None:
        """Move up, as the arrow key does."""
        self.query_one(OptionList).action_cursor_up()

    def action_copy(self) -> None:
        """Copy the command lines of the highlighted option."""
        at = self.query_one(OptionList).highlighted
        if at is not None and is_command(self._options[at][2]):
            copy(self, self._options[at][2])


class Question(Dialog[str | None]):
    """Dialog for a text, which stays open on invalid input."""

    DEFAULT_CSS = _CSS % {"name": "Question", "width": 70}
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Back", show=False)]

    def __init__(self, title: str, hint: str, value: str = "", check: Callable[[str], Any] | None = None) -> None:
        """``check`` raises Wrong."""
        super().__init__()
        self._title = title
        self._hint = hint
        self._value = value
        self._check = check

    def compose(self) -> ComposeResult:
        """See textual.screen.Screen."""
        with Vertical(id="box") as box:
            box.border_title = self._title
            yield Input(self._value, select_on_focus=True)
            yield Static(self._hint, classes="dim", markup=False)
            with Vertical(id="foot"):
                yield Static("", id="wrong", markup=False)
                yield Static(key_hints(("enter", "confirm"), ("esc", "back")), classes="keys")

    @on(Input.Submitted)
    def _answered(self, event: Input.Submitted) -> None:
        try:
            if self._check is not None:
                self._check(event.value)
        except Wrong as error:
            self.refuse(str(error))
            return
        self.dismiss(event.value)

    def action_leave(self) -> None:
        """Close without a text."""
        self.dismiss(None)


class ChoiceInput(Input):
    """Field for one of a few words, which can be typed. Space changes to the next one."""

    def __init__(self, choices: Sequence[str], value: str, **options: Any) -> None:
        super().__init__(value, **options)
        self._choices = choices

    def on_key(self, event: events.Key) -> None:
        """Change to the next word."""
        if event.key == "space":
            at = self._choices.index(self.value) if self.value in self._choices else -1
            self.value = self._choices[(at + 1) % len(self._choices)]
            self.cursor_position = len(self.value)
            event.stop()
            event.prevent_default()


class OperationDialog(Dialog[list[Request] | None]):
    """Dialog of a deed: its target, fixed when opened; fields; command line; and, if dangerous, the name to type."""

    DEFAULT_CSS = (
        _CSS % {"name": "OperationDialog", "width": 84}
        + "OperationDialog #box.-danger { border: heavy $error; } OperationDialog #confirmation { height: auto; }"
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back", show=False),
        Binding("ctrl+y", "copy", "Copy the command", show=False, priority=True),
        Binding("ctrl+s", "do", "Confirm", show=False, priority=True),
        Binding("pagedown", "page(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
    ]

    def __init__(self, deed: OperationSpec, rows: Sequence[Row], target: Sequence[str] = ()) -> None:
        """``rows`` are the targets, processed in order; ``target`` has the options that name the box."""
        super().__init__()
        self.deed = deed
        self._rows = tuple(rows)
        self._options = tuple(target)
        self.confirmed: Values = {}
        """Values of the fields when the dialog was confirmed."""
        self._typed: str = clean(deed.target(rows[0])) if len(rows) == 1 else str(len(rows))

    @property
    def _is_dry(self) -> bool:
        return self.values.get(dry_run.FIELD) == "yes"

    @property
    def values(self) -> dict[str, str]:
        """Values of the fields."""
        return {field.name: self.query_one(f"#field-{field.name}", Input).value for field in self.deed.fields}

    @property
    def lines(self) -> list[str]:
        """Equivalent command lines."""
        values: Values = self.values
        return [command_lines.with_target(self.deed.words(row, values), self._options) for row in self._rows]

    def compose(self) -> ComposeResult:
        """See textual.screen.Screen."""
        with Vertical(id="box") as box:
            label = getattr(self.app, "label", None)
            box.border_title = Content(f"{label.text}: {self.deed.title}" if label else self.deed.title)
            with VerticalScroll(id="body", can_focus=False):
                yield from self._body()
            with Vertical(id="foot"):
                yield Static("", id="wrong", markup=False)
                with Horizontal(id="buttons"):
                    keys = ("ctrl+s", "confirm"), ("ctrl+y", "copy"), ("esc", "back")
                    yield Static(key_hints(*keys), classes="dim")
                    yield Button("Back", id="leave", compact=True)
                    yield Button("Confirm", id="do", compact=True)

    def _body(self) -> ComposeResult:
        yield HangingText(_listed([whole(row, self.deed) for row in self._rows]), COMMAND_INDENT, key="target")
        yield Static("", classes="explained", id="explained", markup=False)
        for field in self.deed.fields:
            with Horizontal(classes="field"):
                yield Label(field.title, markup=False)
                kind = partial(ChoiceInput, field.choices) if field.choices else Input
                yield kind(default_of(field, self._rows[0]), id=f"field-{field.name}", placeholder=brief_hint_of(field))
        yield HangingText(indent=COMMAND_INDENT, key="hint", classes="dim")
        yield HangingText(indent=COMMAND_INDENT, key="line", classes="line")
        if self.deed.danger:
            with Vertical(id="confirmation"):
                yield from self._confirmation()

    def _confirmation(self) -> ComposeResult:
        what = "the name" if len(self._rows) == 1 else "the number of targets"
        yield Static(f"This cannot be undone. Type {what} to confirm: {self._typed}", classes="danger", markup=False)
        with Horizontal(classes="field"):
            yield Label(what[:1].upper() + what[1:], markup=False)
            yield Input("", id="typed", placeholder=f"type {what} here")

    def on_mount(self) -> None:
        """Focus the first input field."""
        self.query_one("#buttons Static").styles.width = "1fr"
        self.query_one("#hint").display = any(map(hint_of, self.deed.fields))
        self.query_one("#box").styles.width = self._width()
        fields = self.query(Input)
        self.set_focus(fields.first() if fields else self.query_one("#do", Button))  # now: keys may follow
        self._refresh_status_line()

    def _width(self) -> int:
        """Return the width of the dialog, which its style limits to that of the screen."""
        longest = max(map(cell_len, [*self.values.values(), self._typed if self.deed.danger else ""]))
        return min(max(longest + _BESIDE, _OPERATION_WIDTH), _OPERATION_MAX)

    def on_descendant_focus(self) -> None:
        """Show the hint of the focused field."""
        name = (self.focused.id or "") if self.focused is not None else ""
        hints = {f"field-{field.name}": focused_hint_of(field) for field in self.deed.fields}
        self.query_one("#hint", HangingText).update(hints.get(name, ""))

    @on(Input.Changed)
    def _refresh_status_line(self) -> None:
        self.query_one("#line", Static).update(shown_commands(self.lines, _COMMANDS_SHOWN))
        self.refuse("")
        self._show_effect()

    def _show_effect(self) -> None:
        """Show whether the deed changes anything. A dry run has nothing to confirm."""
        is_danger = self.deed.danger and not self._is_dry
        explained, button = self.query_one("#explained", Static), self.query_one("#do", Button)
        told = dry_run.explained(self.deed) if self._is_dry else explained_of(self.deed, self._rows)
        explained.update(told)
        explained.display = bool(told)
        button.label = "Dry run" if self._is_dry else "Confirm"
        button.variant = "error" if is_danger else "primary"
        self.query_one("#box").set_class(is_danger, "-danger")
        self.query("#confirmation").set(display=is_danger)

    @on(Input.Submitted)
    def _next(self, event: Input.Submitted) -> None:
        fields = [each for each in self.focus_chain if isinstance(each, Input)]
        at = fields.index(event.input)
        if at + 1 < len(fields):
            self.set_focus(fields[at + 1])
        else:
            self.action_do()

    @on(Button.Pressed, "#do")
    def action_do(self) -> None:
        """Validate the fields and close with the requests."""
        after_keys(self, self._do)

    def _do(self) -> None:
        try:
            values = self.values
            for field in self.deed.fields:
                if field.choices and values[field.name] not in field.choices:
                    self.set_focus(self.query_one(f"#field-{field.name}", Input))
                    raise Wrong(f"{field.title}: one of {', '.join(field.choices)}")
            if self.deed.danger and not self._is_dry and self.query_one("#typed", Input).value != self._typed:
                self.set_focus(self.query_one("#typed", Input))
                raise Wrong(f"type '{self._typed}' to confirm")
            asked = [request for row in self._rows for request in self.deed.requests(row, values)]
        except Wrong as error:
            self.refuse(str(error))
            return
        self.confirmed = values
        self.dismiss(asked)

    @on(Button.Pressed, "#leave")
    def action_leave(self) -> None:
        """Close without doing anything."""
        self.dismiss(None)

    def action_copy(self) -> None:
        """Copy the command lines."""
        after_keys(self, lambda: copy(self, "\n".join(self.lines)))

    def action_page(self, by: int) -> None:
        """Scroll by pages."""
        body = self.query_one("#body", VerticalScroll)
        body.scroll_relative(y=by * body.size.height, animate=False)

    def on_key(self, event: events.Key) -> None:
        """Move between fields with down and up."""
        if event.key in ("down", "up"):
            (self.focus_next if event.key == "down" else self.focus_previous)()
            event.stop()


class TextDialog(Dialog[None]):
    """Dialog with text: help, details, or a full error."""

    DEFAULT_CSS = (
        _CSS % {"name": "TextDialog", "width": _TEXT_WIDTH}
        + """
TextDialog HangingText { padding-right: 1; }
TextDialog #line { margin: 0 0 1 0; }
TextDialog.-beside > #box { width: 184; }
TextDialog #parts { height: auto; }
TextDialog #parts HangingText { width: 1fr; }
TextDialog #parts HangingText.-further { margin-left: 2; }
"""
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,question_mark", "leave", "Back", show=False),
        Binding("j,down", "scroll(1)", show=False),
        Binding("k,up", "scroll(-1)", show=False),
        Binding("y", "copy", show=False),
    ]

    def __init__(self, title: str, text: Text | str, line: str = "", beside: Sequence[Text] = ()) -> None:
        """``line`` is the equivalent command line. ``beside`` are further texts, shown beside the first one."""
        super().__init__(classes="-beside" if beside else None)
        self._title = title
        self._text = Text(text) if isinstance(text, str) else text
        self._text.rstrip()
        self._line = line
        self._beside = beside

    def compose(self) -> ComposeResult:
        """See textual.screen.Screen."""
        with Vertical(id="box") as box:
            box.border_title = _title(self, self._title, _TEXT_WIDTH)
            with VerticalScroll(id="body"):
                if self._beside:
                    with Horizontal(id="parts"):
                        yield HangingText(self._text)
                        yield from (HangingText(each, classes="-further") for each in self._beside)
                else:
                    yield HangingText(self._text)
            with Vertical(id="foot"):
                if self._line:
                    yield HangingText(clean(self._line), COMMAND_INDENT, key="line", classes="line")
                yield Static(id="keys", classes="dim")

    def on_mount(self) -> None:
        """Hint at the keys, and again once the size of the text is known."""
        body = self.query_one("#body", VerticalScroll)
        self.watch(body, "show_vertical_scrollbar", self._hint)

    def _hint(self, is_long: bool) -> None:
        scroll = [("↑↓", "scroll")] if is_long else []
        copied = [("y", "copy the command")] if self._line else []
        self.query_one("#keys", Static).update(key_hints(*scroll, *copied, ("esc", "back")))

    def action_leave(self) -> None:
        """Close the dialog."""
        self.dismiss(None)

    def action_scroll(self, by: int) -> None:
        """Scroll by lines."""
        self.query_one("#body", VerticalScroll).scroll_relative(y=by, animate=False)

    def action_copy(self) -> None:
        """Copy the command line."""
        if self._line:
            copy(self, self._line)


def after_keys(screen: Screen[Any], act: Callable[[], None]) -> None:
    """Act only after earlier keys are processed, because a priority key overtakes keys that go to a field.

    The call passes through the same message queues: from the focused field up to the application.
    """
    way = list((screen.focused or screen).ancestors_with_self)

    def go_on() -> None:
        if way:
            way.pop(0).call_later(go_on)
        else:
            act()

    go_on()


def copy(screen: Any, text: str) -> None:
    """Copy to the terminal's clipboard (OSC 52), and show the text, because not every terminal supports it."""
    screen.app.copy_to_clipboard(text)
    screen.app.notify(clean(text), title="Copied", markup=False, timeout=4)


def _option(text: str) -> Content:
    """Return the text of an option. The mark of a dangerous one has a style of its own."""
    mark = "!" if text.startswith("! ") else ""
    return Content.assemble((mark, DANGER_OF_OPTION), text.removeprefix(mark))


def is_command(text: str) -> bool:
    """Return whether a text is a whole command line, which can be copied."""
    return text.startswith("pulsarbox ") and not text.endswith(" ...")


def shown_commands(lines: Sequence[str], most: int) -> str:
    """Return up to ``most`` command lines, one per line, and the number of those left out."""
    more = [f"... and {len(lines) - most} more"] if len(lines) > most else []
    return "\n".join([*(clean(_brief(line)) for line in lines[:most]), *more])


def _brief(line: str) -> str:
    return line if len(line) <= _LINE_MAX else f"{line[:_LINE_SHOWN]}... ({len(line):,} characters: ctrl+y copies it)"


def _title(screen: Screen[Any], text: str, width: int) -> Content:
    """Return the title of a dialog that is so wide where there is room."""
    return plain_title(clean(text), min(width, int(screen.app.size.width * _SHARE)))


def _listed(names: Sequence[str]) -> str:
    shown = "\n".join(clean(name) for name in names[:8])
    return shown + (f"\n... and {len(names) - 8} more" if len(names) > 8 else "")


def whole(row: Row, deed: OperationSpec) -> str:
    """Return the name of the target of a deed, that of a subscription with its topic."""
    if deed.on[0] == "subscription" and row.get("subscription"):
        return subscription_title(row)
    return deed.target(row)


def hint_of(field: OperationField) -> str:
    """Return the hint of a field."""
    return " | ".join(field.choices) or field.hint


def focused_hint_of(field: OperationField) -> str:
    """Return the hint of a field with the focus, behind its title, because it is below all fields; empty for none."""
    hint = f"{hint_of(field)}   space: next" if field.choices else hint_of(field)
    return f"{field.title}: {hint}" if hint else ""


def brief_hint_of(field: OperationField) -> str:
    """Return the hint of a field, or its end about an empty value if the hint is too long for the field."""
    hint = hint_of(field)
    return hint if len(hint) <= _FIELD else hint.rpartition("; ")[2]
