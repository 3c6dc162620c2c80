"""Palette of all actions: found by a part of their titles or names. It looks like the other dialogs."""

from functools import partial
from typing import Any, Final

from textual import events
from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from pulsarbox.tui.actions.action_table import REGISTRY, Action
from pulsarbox.tui.widgets.dialog import FaintBelow
from pulsarbox.tui.widgets.key_hints import KEY_OF_OPTION, key_hints

_KEYS: Final = 9
"""Width of the column of keys."""
_FRAME: Final = 6
"""Lines around the list: the edge, its padding, and the field with a space."""


class ActionSearch(Provider):
    """Finds actions for the screen on which the palette was opened."""

    async def discover(self) -> Hits:
        """List all actions."""
        for action in REGISTRY:
            yield DiscoveryHit(self._shown(action, Content(_text(action))), self._command(action), _text(action))

    async def search(self, query: str) -> Hits:
        """List matching actions."""
        matcher = self.matcher(query)
        for action in REGISTRY:
            text = _text(action)
            score = matcher.match(text)
            if score > 0:
                yield Hit(score, self._shown(action, matcher.highlight(text)), self._command(action), text)

    def _shown(self, action: Action, text: Content) -> Content:
        key = action.shown_keys.split(" ")[0]
        return Content.assemble((key, KEY_OF_OPTION), " " * (_KEYS - len(key)), text)

    def _command(self, action: Action) -> partial[None]:
        screen: Any = self.screen
        return partial(screen.act, action.name)


def _text(action: Action) -> str:
    return f"{action.title} ({action.name})"


class ActionPalette(FaintBelow, CommandPalette):
    """The palette."""

    DEFAULT_CSS = """
    ActionPalette { align: center middle; }
    ActionPalette > #--container { visibility: visible; width: 84; max-width: 96%; height: auto;
      max-height: 90%; margin: 0; padding: 1 2; background: $surface; border: round $primary;
      border-title-color: $accent; border-title-style: bold; border-subtitle-color: $text-muted; }
    ActionPalette #--input, ActionPalette #--input.--list-visible { border: none; border-left: thick $edge-focus;
      height: 1; background: $field; }
    ActionPalette #--input:ansi { text-style: underline; }
    ActionPalette SearchIcon { display: none; }
    ActionPalette CommandInput, ActionPalette CommandInput:focus { border: none; height: 1; padding: 0 1; }
    ActionPalette CommandInput:focus > .input--cursor { background: $field; color: $foreground;
      text-style: reverse; }
    ActionPalette #--results { overlay: none; height: auto; margin-top: 1; }
    ActionPalette CommandList { border: none; background: $surface; text-wrap: nowrap;
      text-overflow: ellipsis; }
    ActionPalette CommandList > .option-list--option { padding: 0; text-style: none; }
    ActionPalette CommandList > .option-list--option-highlighted { color: $block-cursor-foreground;
      background: $block-cursor-background; text-style: $block-cursor-text-style; }
    ActionPalette CommandList:ansi:nocolor > .option-list--option-highlighted { text-style: bold underline; }
    ActionPalette LoadingIndicator { display: none; }
    """

    def __init__(self) -> None:
        super().__init__([ActionSearch], placeholder="a part of a title or name")

    def on_mount(self) -> None:
        """Add the title and the hint."""
        box = self.query_one("#--container")
        box.border_title, box.border_subtitle = "Actions", key_hints(("enter", "run"), ("esc", "back"))

    def on_resize(self, event: events.Resize) -> None:
        """Limit the list to the lines that remain in the box."""
        self.query_one(CommandList).styles.max_height = max(event.size.height * 9 // 10 - _FRAME, 1)
