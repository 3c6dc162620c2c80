"""Palette of all actions: found by a part of their titles or names. It looks like the other dialogs."""

from functools import partial
from typing import Any, Final, cast

from textual import events
from textual.app import ComposeResult
from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from pulsarbox.tui.actions.action_table import REGISTRY, Action
from pulsarbox.tui.actions.key_bindings import shown_key
from pulsarbox.tui.widgets.dialogs.dialog import FaintBelow
from pulsarbox.tui.widgets.dialogs.dialog_keys import KEY_OF_OPTION, MUTED_OF_OPTION, key_hints
from pulsarbox.tui.widgets.dialogs.options import LegibleParts

_KEYS: Final = 9
"""Width of the column of keys."""
_GROUPS: Final = 10
"""Width of the column of groups."""
_TITLES: Final = 58
"""Width of the column of titles, behind which are the names."""
_WIDE: Final = 104
"""Columns of a terminal from which the list has the groups and the names in columns."""
_FRAME: Final = 6
"""Lines around the list: the edge, its padding, and the field with a space."""
_HERE: Final = "Row"
_ELSEWHERE: Final = "not here"
"""Group of the actions of other screens. In a narrow terminal, it takes the place of a key, which they do not have."""
_ORDER: Final = (_HERE, "View", "Screens", "Program")


class ActionSearch(Provider):
    """Finds actions for the screen on which the palette was opened."""

    async def discover(self) -> Hits:
        """List the actions of the screen by group: those on its rows first."""
        screen: Any = self.screen
        here = sorted(filter(screen.offers, REGISTRY), key=lambda action: _ORDER.index(_group(action)))
        for before, action in zip([None, *here], here, strict=False):
            group = _group(action) if before is None or _group(action) != _group(before) else ""
            shown = self._shown(action, Content(action.title_on(screen.kind)), group)
            yield DiscoveryHit(shown, self._command(action), _text(action, screen.kind))

    async def search(self, query: str) -> Hits:
        """List the matching actions, also of other screens: with the words, or else with their letters in order."""
        matcher, screen, words = self.matcher(query), cast(Any, self.screen), query.casefold().split()
        texts = {action.name: _text(action, screen.kind) for action in REGISTRY}
        with_words = [action for action in REGISTRY if all(word in texts[action.name].casefold() for word in words)]
        for action in with_words or REGISTRY:
            text = texts[action.name]
            score = matcher.match(text)
            if score > 0:
                shown = matcher.highlight(text)[: len(action.title_on(screen.kind))]
                group = "" if screen.offers(action) else _ELSEWHERE
                yield Hit(score, self._shown(action, shown, group), self._command(action), text)

    def _shown(self, action: Action, title: Content, group: str) -> Content:
        screen: Any = self.screen
        key = shown_key(screen.keys, action.name) if screen.offers(action) else ""
        parts = [Content.assemble((key, KEY_OF_OPTION), " " * (_KEYS - len(key)))]
        if self.app.size.width < _WIDE:
            if group == _ELSEWHERE:
                parts = [Content.styled(f"{group:<{_KEYS}}", MUTED_OF_OPTION)]
            return Content.assemble(*parts, title, (f" ({action.name})", MUTED_OF_OPTION))
        parts.insert(0, Content.styled(f"{group:<{_GROUPS}}", MUTED_OF_OPTION))
        gap = " " * max(_TITLES - len(title), 2)
        return Content.assemble(*parts, title, gap, Content.styled(f":{action.name}", MUTED_OF_OPTION))

    def _command(self, action: Action) -> partial[None]:
        screen: Any = self.screen
        return partial(screen.act, action.name)


def _text(action: Action, kind: str) -> str:
    return f"{action.title_on(kind)} ({action.name})"


def _group(action: Action) -> str:
    return _HERE if action.on else action.group


class ActionList(LegibleParts, CommandList, can_focus=False):
    """The list of actions."""


class ActionPalette(FaintBelow, CommandPalette):
    """The palette."""

    DEFAULT_CSS = """
    ActionPalette { align: center middle; }
    ActionPalette > #--container { visibility: visible; width: 102; max-width: 96%; height: auto;
      max-height: 90%; margin: 0; padding: 1 2; background: $surface; border: round $primary;
      border-title-color: $accent; border-title-style: bold; border-subtitle-color: $text-muted; }
    ActionPalette #--input, ActionPalette #--input.--list-visible { border: none; border-left: thick $field-edge-focus;
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
    ActionPalette LoadingIndicator { display: none; }
    """

    def __init__(self) -> None:
        super().__init__([ActionSearch], placeholder="a part of a title or name")

    def compose(self) -> ComposeResult:
        """See textual.screen.Screen."""
        for each in super().compose():
            yield ActionList() if isinstance(each, CommandList) else each

    def on_mount(self) -> None:
        """Add the title and the hint."""
        box = self.query_one("#--container")
        box.border_title, box.border_subtitle = "Actions", key_hints(("enter", "run"), ("esc", "back"))

    def on_resize(self, event: events.Resize) -> None:
        """Limit the list to the lines that remain in the box."""
        self.query_one(CommandList).styles.max_height = max(event.size.height * 9 // 10 - _FRAME, 1)
