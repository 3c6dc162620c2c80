"""Input line at the bottom of a screen, for a filter or a command."""

from typing import Any, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.suggester import SuggestFromList
from textual.widgets import Input, Static

from pulsarbox.tui.actions.action_table import REGISTRY
from pulsarbox.tui.widgets.bars import Part


class Prompt(Input, inherit_css=False):
    """Input for a filter or command. Has its own short CSS, because that of Input takes long to parse."""

    COMPONENT_CLASSES: ClassVar[set[str]] = Input.COMPONENT_CLASSES

    DEFAULT_CSS = """
    Prompt { height: 1; width: 1fr; padding: 0 1 0 0; background: $panel; color: $foreground;
             overflow: auto auto; scrollbar-size: 0 0; pointer: text; }
    Prompt > .input--cursor, Prompt > .input--selection { text-style: reverse; }
    Prompt > .input--placeholder, Prompt > .input--suggestion { color: $text-disabled; }
    Prompt:ansi > .input--placeholder, Prompt:ansi > .input--suggestion { color: ansi_default; text-style: dim; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back", show=False),
        Binding("tab,shift+tab", "complete", "Complete", show=False),
    ]

    def __init__(self) -> None:
        super().__init__(id="prompt")
        self.kind = ""
        self.words: list[str] = []
        """Texts with which an input is completed."""

    @property
    def hints(self) -> list[Part]:
        """The hints of its keys, in place of those of the screen."""
        keys = [("enter", "confirm"), *([("tab", "complete")] if self.words else []), ("esc", "back")]
        return [
            (" ", "plain", ""),
            *(part for key, word in keys for part in ((key, "key", ""), (f" {word}  ", "dim", ""))),
        ]

    def action_complete(self) -> None:
        """Accept the completion. The focus stays, because the next keys are text."""
        found = next((word for word in self.words if self.value and word.startswith(self.value)), self.value)
        self.value = found
        self.cursor_position = len(found)

    def action_leave(self) -> None:
        """Close the line without input."""
        screen: Any = self.screen
        screen.close_prompt()


class PromptLine(Horizontal):
    """The input with its kind before it: ``/`` for a filter or a search, ``:`` for a command."""

    DEFAULT_CSS = """
    PromptLine { height: 1; width: 100%; display: none; background: $panel; }
    PromptLine #mode { width: 2; padding: 0 0 0 1; color: $accent; text-style: bold; }
    PromptLine:ansi #mode { color: ansi_default; }
    """

    def __init__(self) -> None:
        self.input = Prompt()
        self._mode = Static("", id="mode", markup=False)
        super().__init__(self._mode, self.input, id="prompt-line")  # at once: the next keys are for the input

    def open(self, kind: str, value: str, hint: str) -> None:
        """Open the line for a filter (``/``) or a command (``:``), with a hint while it is empty."""
        words = [action.name for action in REGISTRY] if kind == ":" else []
        self._mode.update(kind)
        self.display = True
        line = self.input
        line.kind, line.words = kind, words
        line.suggester = SuggestFromList(words) if words else None
        line.placeholder = hint
        line.value = value
        line.cursor_position = len(value)
