"""Dialog to edit the payload, key and properties of a dead letter before its replay."""

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Input, Label, Static, TextArea

from pulsarbox.cleaning import clean
from pulsarbox.tui.actions.dialogs import BUTTONS, FIELDS, after_keys
from pulsarbox.tui.actions.operation import Row, Wrong
from pulsarbox.tui.widgets.columns import short_id
from pulsarbox.tui.widgets.dialogs.dialog import Dialog
from pulsarbox.tui.widgets.dialogs.dialog_keys import key_hints
from pulsarbox.tui.widgets.payload_view import SHOWN_MAX, payload_of

LINE_MAX: Final = 4096
"""Maximum length of an editable key."""


class Editing(Dialog[str | None]):
    """Editor of a message. Closes with the changes as JSON, None if cancelled."""

    DEFAULT_CSS = (
        """
    Editing { align: center middle; background: $background 60%; }
    Editing > #box { width: 100; max-width: 96%; height: 90%; padding: 1 2; background: $surface;
      border: round $primary;
      border-title-color: $accent; border-title-style: bold; }
    Editing TextArea { height: 1fr; min-height: 3; }
    Editing #properties { height: 1fr; min-height: 3; max-height: 14; }
    Editing Static, Editing Label { height: auto; }
    Editing .field { height: 1; margin: 1 0; }
    Editing .field Label { width: 12; }
    Editing TextArea { scrollbar-size-vertical: 1; }
    Editing .dim { color: $text-muted; width: 1fr; }
    Editing #foot { padding-top: 1; }
    Editing #buttons { height: 1; }
    Editing Button { margin-left: 2; min-width: 10; }
    """
        + FIELDS % {"name": "Editing"}
        + BUTTONS
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False, priority=True),
        Binding("ctrl+s", "take", show=False, priority=True),
    ]

    def __init__(self, row: Row) -> None:
        super().__init__()
        self._row = row
        self._text, self._why = text_of(row)
        properties = row.get("properties")
        self._properties: dict[str, Any] = dict(properties) if isinstance(properties, Mapping) else {}
        self._key = str(row.get("key") or "")
        self._has_warned = False
        """Whether leaving would discard changes, and the user knows."""
        self._written = json.dumps(self._properties, indent=2, ensure_ascii=True)

    def compose(self) -> ComposeResult:
        """See textual.screen.Screen."""
        with Vertical(id="box") as box:
            box.border_title = f"Edit {short_id(self._row.get('id'))} before replay"
            yield Label("Payload")
            if self._text is None:
                yield Static(f"{self._why}: it cannot be edited.", classes="dim", markup=False)
            else:
                yield TextArea(self._text, id="payload")
            with Horizontal(classes="field"):
                yield Label("Key")
                yield Input(self._key, id="key") if len(self._key) <= LINE_MAX else stays(self._key)
            yield Label("Properties, as JSON")
            few = len(self._written) <= SHOWN_MAX
            yield TextArea(self._written, id="properties") if few else stays(self._written)
            with Vertical(id="foot"):
                yield Static("", id="wrong", markup=False)
                with Horizontal(id="buttons"):
                    yield Static(key_hints(("ctrl+s", "continue (not sent yet)"), ("esc", "back")), classes="dim")
                    yield Button("Back", id="leave", compact=True)
                    yield Button("Continue", id="take", variant="primary", compact=True)

    def change(self) -> dict[str, Any]:
        """Return the changed parts. Raises Wrong."""
        found: dict[str, Any] = {}
        for field in self.query("#payload").results(TextArea):
            if field.text != self._text:
                if (self._text or "")[:1] in ("{", "["):
                    _checked(field.text, "payload")
                found["payload"] = field.text
        for line in self.query("#key").results(Input):
            if line.value != self._key:
                found["key"] = line.value
        for field in self.query("#properties").results(TextArea):
            found |= self._other_properties(field.text)
        return found

    def _other_properties(self, text: str) -> dict[str, Any]:
        told = _checked(text or "{}", "properties")
        if not isinstance(told, dict) or not all(isinstance(value, str) for value in told.values()):
            raise Wrong('properties: expected an object with text values, such as {"fixed": "yes"}')
        changed = {name: value for name, value in told.items() if self._properties.get(name) != value}
        removed = [name for name in self._properties if name not in told]
        return ({"setProperties": changed} if changed else {}) | ({"removeProperties": removed} if removed else {})

    @on(Button.Pressed, "#take")
    def action_take(self) -> None:
        """Validate the input and close with the changes."""
        after_keys(self, self._take)

    def _take(self) -> None:
        try:
            change = self.change()
            if not change:
                raise Wrong("no changes: esc goes back; R replays the message unchanged")
        except Wrong as wrong:
            self.refuse(str(wrong))
            return
        self.dismiss(json.dumps(change))

    @on(Button.Pressed, "#leave")
    def action_leave(self) -> None:
        """Close without a change. A text that was changed is discarded only when asked a second time."""
        if self._is_changed and not self._has_warned:
            self._has_warned = True
            self.refuse("the changes are not replayed; esc again discards them")
        else:
            self.dismiss(None)

    @property
    def _is_changed(self) -> bool:
        try:
            return bool(self.change())
        except Wrong:  # an invalid text is a changed one
            return True


def stays(text: str) -> Static:
    """Return a placeholder for a value too long to edit."""
    return Static(f"{len(text):,} characters: too long to edit.", classes="dim", markup=False)


def text_of(row: Row) -> tuple[str | None, str]:
    """Return the payload as text, or None and the reason if it cannot be edited."""
    payload = payload_of(row)
    if row.get("encrypted"):
        return None, "The payload is encrypted"
    if payload is None:
        return None, "The payload is null" if row.get("tombstone") else "The payload could not be decoded"
    if row.get("truncated"):
        return None, f"The payload exceeds {SHOWN_MAX:,} bytes (use dlq replay --payload-file)"
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return None, "The payload is not text"
    # Control characters can neither be edited nor shown safely on the terminal.
    if any(clean(line) != line for line in text.split("\n")):
        return None, "The payload has control characters"
    return text, ""


def _checked(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise Wrong(f"{what}: invalid JSON: {error}") from None
