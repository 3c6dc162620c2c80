"""The hash range of a Key_Shared subscription as one bar: its consumers by letter and color, and its keys by state."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.text import Text

from pulsarbox.cleaning import clean
from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.columns import state_look
from pulsarbox.tui.widgets.styles import ink_of
from pulsarbox.tui.widgets.table import Table

LETTERS: Final = "ABCDEFGHIJKL"
"""Letters of the first consumers; all further ones share ``OTHERS``."""
OTHERS: Final = "+"
NOBODY: Final = "·"
_COLORS: Final = ("text-primary", "text-success", "text-secondary", "text-accent")
"""Colors of consumers, as far as they differ in the theme, repeated after the last. Those of alarms are for keys."""
_ALARMS: Final = ("text-warning", "text-error")
_FEW: Final = 2
"""Number of colors up to which the next consumers with the same colors have them as those of letters."""
_NAME: Final = 24

STATES: Final = (
    ("stuck", "!", "stuck"),
    ("waiting", "▴", "waiting for a consumer"),
    ("draining", "~", "draining"),
    ("in flight", "•", "in flight"),
)
"""States of a key, worst first: name, sign, meaning."""
_RANK: Final = {name: at for at, (name, _, _) in enumerate(STATES)}


class KeyBar(NamedTuple):
    """The bar of one width."""

    owners: Sequence[int]
    """For each cell, the number of the consumer with most of it; -1 for none."""
    states: Sequence[str]
    """For each cell, the worst state of a key in it, empty for none."""


def key_bar(told: Mapping[str, Any], keys: Iterable[Mapping[str, Any]], width: int) -> KeyBar:
    """Return the bar of a map of the box, with its keys."""
    whole = told.get("slots") or 65536
    best, owners, states = [0.0] * width, [-1] * width, [""] * width
    for number, consumer in enumerate(told.get("consumers") or ()):
        for at, share in cells_of(consumer.get("ranges") or (), whole, width).items():
            if share > best[at]:
                best[at], owners[at] = share, number
    for key in keys:
        at, state = min(int((key.get("slot") or 0) * width / whole), width - 1), str(key.get("stands"))
        if state in _RANK and _RANK[state] < _RANK.get(states[at], len(STATES)):
            states[at] = state
    return KeyBar(owners, states)


def cells_of(ranges: Sequence[Sequence[int]], whole: int, width: int) -> dict[int, float]:
    """Return the cells of a bar that some hash ranges cover, with the covered share of each."""
    cells: dict[int, float] = {}
    for first, last in ranges:
        begin, end = first * width / whole, (last + 1) * width / whole
        for at in range(int(begin), min(int(end) + 1, width)):
            covered = min(end, at + 1) - max(begin, at)
            if covered > 0:
                cells[at] = cells.get(at, 0.0) + covered
    return cells


def sign_of(number: int) -> str:
    """Return the sign of a consumer by its number."""
    return NOBODY if number < 0 else LETTERS[number] if number < len(LETTERS) else OTHERS


def color_of(state: str) -> str:
    """Return the color of a state of a key, that of its name in the table."""
    return Table.looks[state_look(state) or "plain"].ink


def drawn(
    told: Mapping[str, Any], bar: KeyBar, keys: Sequence[Mapping[str, Any]], colors: Mapping[str, str], height: int = 1
) -> Text:
    """Return the bar, ``height`` lines high, the keys below it, and both legends.

    ``colors`` are the variables of the theme.
    """
    width, text = len(bar.owners), Text(no_wrap=True, overflow="crop")
    whole = told.get("slots") or 65536
    scale = f"0{f'hash {whole // 2:,}':^{max(width - 2 - len(f'{whole - 1:,}'), 1)}} {whole - 1:,}"
    text.append(scale[:width] + "\n", style=ink_of(colors, "text-muted"))
    for _ in range(height):
        for owner in bar.owners:
            text.append(sign_of(owner), style=consumer_style(owner, colors))
        text.append("\n")
    signs = {name: (sign, ink_of(colors, color_of(name))) for name, sign, _ in STATES}
    for state in bar.states:
        text.append(*signs.get(state, (" ",)))
    text.append("\n")
    _states(text, keys, width, colors)
    text.append("\n" * min(height, 2))
    _consumers(text, told, keys, width, colors)
    text.rstrip()
    return text


def _consumers(
    text: Text, told: Mapping[str, Any], keys: Sequence[Mapping[str, Any]], width: int, colors: Mapping[str, str]
) -> None:
    """Append the legend of the consumers, in as many columns as fit."""
    consumers = list(told.get("consumers") or ())[: len(LETTERS)]
    if not consumers:
        text.append("No client is connected.\n")
        return
    held = Counter(str(key.get("name")) for key in keys)
    entries = [_consumer(each, held[str(each.get("name"))]) for each in consumers]
    broad = max(map(cell_len, entries)) + 2
    columns = max(width // (broad + 2), 1)
    for number, entry in enumerate(entries):
        text.append(sign_of(number), style=consumer_style(number, colors))
        is_last = number % columns == columns - 1 or number == len(entries) - 1
        text.append(f" {entry}\n" if is_last else f" {set_cell_size(entry, broad)}")
    more = (told.get("consumersTotal") or 0) - len(consumers)
    if more > 0:
        text.append(f"{OTHERS} {numbers.counted(more, 'other consumer')}\n")


def _consumer(told: Mapping[str, Any], keys: int) -> str:
    """Return the name of a consumer, its share of the hashes, and the numbers of its keys in the table."""
    name = clean(str(told.get("name")))
    share = f"{numbers.percent(told.get('share')):>4}" if told.get("share") is not None else ""
    unacked = f"{numbers.count(told.get('unacked'))} unacked{'  blocked' if told.get('blocked') else ''}"
    return " ".join(
        filter(
            None, (set_cell_size(name, min(cell_len(name), _NAME)), share, numbers.counted(keys, "key") + ",", unacked)
        )
    )


def _states(text: Text, keys: Sequence[Mapping[str, Any]], width: int, colors: Mapping[str, str]) -> None:
    """Append the legend of the keys with their numbers."""
    counts = Counter(str(key.get("stands")) for key in keys)
    entries = [(sign, f"{counts[name]} {meaning}", color_of(name)) for name, sign, meaning in STATES]
    legend(text, entries, width, colors)


def legend(
    text: Text, entries: Iterable[tuple[str, str, str]], width: int, colors: Mapping[str, str], indent: str = ""
) -> None:
    """Append a legend, in lines that fit. ``entries``: signs, meanings and colors. ``indent`` begins further lines."""
    used = len(indent)
    for sign, meaning, color in entries:
        part = f" {meaning}   "
        if used > len(indent) and used + 1 + len(part.rstrip()) > width:
            text.append(f"\n{indent}")
            used = len(indent)
        text.append(sign, style=ink_of(colors, color))
        text.append(part, style=ink_of(colors, "text-muted"))
        used += 1 + len(part)


def consumer_style(number: int, colors: Mapping[str, str]) -> Style:
    """Return the style of a consumer's cells."""
    if number < 0:
        return ink_of(colors, "text-muted")
    alarms = {colors[name] for name in _ALARMS}
    names = list({colors[name]: name for name in _COLORS if colors[name] not in alarms}.values())
    round_number, at = divmod(number, len(names))
    is_filled = len(names) > _FEW or round_number % 2 == 0
    return ink_of(colors, names[at]) + Style(reverse=is_filled, bold=True)
