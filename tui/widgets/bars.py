"""Lines at the top and bottom of a screen: vital numbers, tabs, status and key hints."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from pulsarbox.tui.actions.action_table import BY_NAME, PLACES
from pulsarbox.tui.actions.key_bindings import DEFAULT_KEYS, Keys, shown_key
from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.columns import UNKNOWN
from pulsarbox.tui.widgets.styles import ColorNames, Looks

Part = tuple[str, str, str]
"""Text, look (a key of ``Line.looks``), and action of a click, empty for none."""


_MORE: Final[Sequence[Part]] = (("  ", "plain", ""), ("enter", "key", ""), (" shows all", "dim", ""))
_MORE_WIDTH: Final = sum(len(text) for text, _, _ in _MORE)
_GAP: Final = 2
"""Blanks between the left and the right side of a line, at least."""


class Line(Looks, Widget):
    """A line of texts, some of them clickable."""

    DEFAULT_CSS = """
    Line { height: 1; width: 1fr; background: $panel; }
    """
    looks: Mapping[str, ColorNames] = {
        "plain": ColorNames(),
        "dim": ColorNames("text-muted"),
        "stale": ColorNames("text-muted"),
        "key": ColorNames("accent", bold=True),
        "name": ColorNames("primary", bold=True),
        "here": ColorNames("here-foreground", "here-background", bold=True, flat=True),
        "good": ColorNames("text-success"),
        "warn": ColorNames("text-warning", bold=True),
        "bad": ColorNames("text-error", bold=True),
        "cool": ColorNames("text-secondary", bold=True),
        "badge": ColorNames("background", "warning", bold=True),
    }

    class Clicked(Message):
        """A part with an action was clicked."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self, *, key: str | None = None) -> None:
        super().__init__(id=key)
        self._left: Sequence[Part] = ()
        self._right: Sequence[Part] = ()
        self.dress: Style | None = None
        """Style of all parts except badges, for a labelled box; None for individual looks."""

    def put(self, left: Sequence[Part], right: Sequence[Part] = ()) -> None:
        """Show these parts, and redraw if they have changed."""
        if (left, right) != (self._left, self._right):
            self._left, self._right = left, right
            self.refresh()

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(text for text, _, _ in (*self._left, *self._right))

    def _parts(self) -> list[Part]:
        return fitted(self._left, self._right, self.size.width)

    def render_line(self, y: int) -> Strip:
        """See textual.widget.Widget."""
        if y:
            return Strip.blank(self.size.width, self.rich_style)
        base = self.rich_style if self.dress is None else self.dress
        is_own = self.dress is None
        return Strip(
            Segment(text, self.look(look) if is_own or look == "badge" else base) for text, look, _ in self._parts()
        ).adjust_cell_length(self.size.width, base)

    def on_click(self, event: events.Click) -> None:
        """Post the action of the clicked part."""
        at = 0
        for text, _, action in self._parts():
            at += cell_len(text)
            if event.x < at:
                if action:
                    self.post_message(self.Clicked(action))
                return


def fitted(left: Sequence[Part], right: Sequence[Part], width: int) -> list[Part]:
    """Fit the parts into a width: keep the right side, and truncate the left. The last cell stays blank."""
    gap = _GAP if right else 1
    room, out = width - sum(cell_len(text) for text, _, _ in right) - gap, list[Part]()
    for text, look, action in left:
        length = cell_len(text)
        if cell_len(text.rstrip()) > room:
            if room > 8 and length > 20:
                out.append((set_cell_size(text, room - 1) + "…", look, action))
                room = 0
            elif out and (out[-1][1] == "key" or (out[-1][1] == "dim" and look not in ("dim", "key"))):
                room += cell_len(out.pop()[0])  # a key without its label, or a label without its value, is useless
            break
        shown = text if length <= room else set_cell_size(text, room)
        out.append((shown, look, action))
        room -= cell_len(shown)
    return [*out, (" " * max(room + gap, 0), "plain", ""), *right]


def reasons(unknown: Sequence[tuple[str, str]]) -> list[Part]:
    """Return why columns show ``?``, by their titles."""
    return [part for title, why in unknown for part in ((f" {title} {UNKNOWN} ", "key", ""), (f"{why} ", "dim", ""))]


def by_enter(text: str, look: str, width: int) -> list[Part]:
    """Return the first line of a text as far as it fits, and that enter shows all of it if that is not the whole."""
    first, *others = text.splitlines() or [""]
    whole = f" {first}"
    if not others and cell_len(whole) < width:
        return [(whole, look, "")]
    room = max(width - 1 - _MORE_WIDTH, 2)
    shown = f"{set_cell_size(whole, room - 1)}…" if cell_len(whole) >= room else f"{whole}…"
    return [(shown, look, ""), *_MORE]


def tabs(here: str, width: int, keys: Keys = DEFAULT_KEYS) -> list[Part]:
    """Return the tabs of screens with their keys. On narrow screens, tabs far from the current one have only a key.

    The last cell of the line stays blank.
    """
    titles = [title for _, title, _, _ in PLACES]
    at = next((number for number, (name, *_) in enumerate(PLACES) if name == here), 0)
    if _fits(found := _tabs(here, titles, 1, keys), width):
        return found
    while not _fits(found := _tabs(here, titles, 0, keys), width) and any(titles[:at] + titles[at + 1 :]):
        far = max((number for number, title in enumerate(titles) if title), key=lambda number: abs(number - at))
        titles[far] = ""
    return found


def _tabs(here: str, titles: Sequence[str], gap: int, keys: Keys) -> list[Part]:
    """Return tabs with these titles and so many more cells, 0 or 1, between them: each at one place on all screens.

    The background of the current tab includes the cells around it, if these are not the only ones between tabs.
    """
    parts: list[Part] = []
    for (name, *_), title in zip(PLACES, titles, strict=True):
        key = shown_key(keys, name)
        if name == here:
            parts += (
                [(f" {key} {title} ", "here", name)] if gap else [(" ", "plain", ""), (f"{key} {title}", "here", name)]
            )
        else:
            parts += [(f" {key}", "key", name), (f" {title}" if title else "", "dim", name)]
            parts.append((" " * gap, "plain", ""))
    return parts


def _fits(parts: Sequence[Part], width: int) -> bool:
    text = "".join(text for text, _, _ in parts)
    return len(text) <= width and len(text.rstrip()) < width


def vitals(label: str, totals: Mapping[str, Any], width: int, name: str = "") -> list[Part]:
    """Return the top line with the vital numbers. ``name`` is the label of the box."""
    if name:
        room = width - cell_len(name) - 3
        return [(f" {name} ", "name", "overview"), ("│", "plain", ""), *vitals(label, totals, room)]
    box = str(totals.get("clusterName") or label or "pulsarbox")
    if len(box) > width // 3:  # the end of an address or a path is more telling
        box = f"…{box[1 - width // 3 :]}"
    parts: list[Part] = [(" pulsarbox ", "name", "overview"), (f"{box}  ", "plain", "overview")]
    if totals.get("lostDirectories"):
        parts.append((f"✕ {lost_directories(totals['lostDirectories'])}  ", "bad", "storage"))
    told: list[tuple[str, Any, Callable[[Any], str]]] = [
        ("in", totals.get("publishRate"), lambda value: f"{numbers.rate(value)}/s"),
        ("out", totals.get("deliverRate"), lambda value: f"{numbers.rate(value)}/s"),
        ("backlog", totals.get("backlog"), numbers.count),
        ("p99", totals.get("p99"), numbers.milliseconds),
        ("mem", totals.get("memory"), numbers.size),
        ("up", totals.get("uptime"), lambda value: numbers.seconds(value / 1000)),
    ]
    for word, value, form in told[: 3 if width < 100 else 6]:
        if value is not None:
            parts += [(f"{word} ", "dim", ""), (f"{form(value)}  ", "plain", "")]
    return parts


def lost_directories(count: int) -> str:
    """Return how many data directories are out of use."""
    return "1 directory lost" if count == 1 else f"{count} directories lost"


_TITLES: Final = {name: title.lower() for name, title, _, _ in PLACES}


def hints(names: Sequence[str], called: Mapping[str, str] = {}, keys: Keys = DEFAULT_KEYS) -> list[Part]:
    """Return the key hints of these actions. Keys that follow each other with the same word share it.

    ``called`` has the words of actions that do not have their usual one. Actions without keys have no hint.
    """
    names = [name for name in names if keys.get(name)]
    parts: list[Part] = [(" ", "plain", "")]
    words = [called.get(name) or _word_of(name) for name in names]
    for name, word, following in zip(names, words, [*words, ""][1:], strict=True):
        parts += [
            (shown_key(keys, name), "key", name),
            (" ", "plain", "") if word == following else (f" {word}  ", "dim", name),
        ]
    return parts


def _word_of(name: str) -> str:
    return BY_NAME[name].hint or _TITLES.get(name) or name.rpartition(" ")[2]
