"""Table columns: format, width and colour of values, and the choice of columns on narrow screens."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from rich.cells import cell_len, set_cell_size

from pulsarbox.names import short_topic
from pulsarbox.tui.widgets import numbers

PLAIN: Final = ""


class Column(NamedTuple):
    """One column. Columns with a low ``rank`` stay on narrow screens; those with ``grow`` get room for long texts."""

    key: str
    title: str
    width: int
    kind: str = "text"
    rank: int = 5
    grow: bool = False
    sort: str | None = ""
    """Sort key of the box: by default ``key``, None if not sortable."""
    meaning: str = ""
    beside: tuple[str, ...] = ()
    """Other values of the row needed to draw it."""
    useful: int = 0
    """Cells of a long text for which less important columns are left out; 0 for none."""
    useful_from: int = 3
    """Rank from which columns are left out for them."""

    @property
    def sorted_by(self) -> str | None:
        """The sort key to request, None if not sortable."""
        return self.key if self.sort == "" else self.sort

    def orders(self, key: str | None) -> bool:
        """Whether rows that are sorted by a key, if any, are sorted by this column."""
        return key is not None and self.sorted_by == key


UNKNOWN: Final = "?"
"""Text of a value that exists and is not known."""
UNREAD: Final = "the message is not read yet, or its topic is not loaded"
"""Why the age of an oldest message is unknown."""
Cell = tuple[str, str]
"""Text and look (a key of ``Table.looks``)."""


def _plain(form: Callable[[Any], str]) -> "Callable[[Any, dict[str, Any], int], Cell]":
    return lambda value, row, width: (form(value), "dim" if value in (None, 0) else PLAIN)


def _text(value: Any, row: dict[str, Any], width: int) -> Cell:
    if value is None or value == "":
        return numbers.NOTHING, "dim"
    if isinstance(value, bool):
        return ("yes" if value else "no"), PLAIN if value else "dim"
    return shortened(str(value), width), PLAIN


def _line(value: Any, row: dict[str, Any], width: int) -> Cell:
    """Format a sentence, truncated at its end."""
    text, look = _text(value, row, 10_000)
    return (text if len(text) <= width else f"{text[: width - 1]}…"), look


def _message(value: Any, row: dict[str, Any], width: int) -> Cell:
    return shortened(short_id(value or numbers.NOTHING), width), PLAIN


def _progress(value: Any, row: dict[str, Any], width: int) -> Cell:
    text, look = _share(value, row, width)
    return text, look if value is None else PLAIN


def _topic(value: Any, row: dict[str, Any], width: int) -> Cell:
    return _text(short_topic(str(value or "")), row, width)


def _topics(value: Any, row: dict[str, Any], width: int) -> Cell:
    """Format a list of topics: the first one and the number of the others if there is no room for all."""
    names = [short_topic(str(each)) for each in value or ()]
    text = ", ".join(names)
    if len(names) > 1 and cell_len(text) > width:
        others = f" +{len(names) - 1}"
        return f"{shortened(names[0], max(width - len(others), 1))}{others}", PLAIN
    return shortened(text or numbers.NOTHING, width), PLAIN


def _change(value: Any, row: dict[str, Any], width: int) -> Cell:
    text = numbers.change(value)
    return text, "warn" if text.startswith("▲") else "good" if text.startswith("▼") else "dim"


def _drain(value: Any, row: dict[str, Any], width: int) -> Cell:
    text = numbers.drain(row)
    return text, "bad" if text == "never" else "dim" if text == numbers.NOTHING else PLAIN


_GRAVE: Final = {
    "no-consumer": "bad",
    "key-blocked": "bad",
    "unacked-limit": "bad",
    "throttled": "warn",
    "suspended": "warn",
    "unread": "warn",
    "slow-connection": "warn",
    "no-permits": "warn",
    "unacknowledged": "warn",
    "draining": "warn",
    "delayed": "cool",
}


def _cause(value: Any, row: dict[str, Any], width: int) -> Cell:
    if not value or value in ("end-of-log", "none"):
        return numbers.NOTHING, "dim"
    if numbers.keeps_up(row):
        return "in flight", "dim"
    word = str(value)
    return shortened(word.replace("-", " "), width), _GRAVE.get(word.lower().replace("_", "-"), PLAIN)


def cause_look(row: Mapping[str, Any]) -> str:
    """Return the look of the cause of a row, as in its column."""
    return _cause(row.get("cause"), dict(row), 0)[1]


def _share(value: Any, row: dict[str, Any], width: int) -> Cell:
    room = width - _PERCENTAGE - 1
    if value is None:
        return numbers.NOTHING if room >= _BAR_LEAST else f"{numbers.NOTHING:>{width}}", "dim"
    look, told = "bad" if value >= 1 else "warn" if value >= 0.8 else "good", numbers.percent(value)
    return (f"{numbers.bar(value, room)} {told:>{_PERCENTAGE}}" if room >= _BAR_LEAST else f"{told:>{width}}"), look


def _trend(value: Any, row: dict[str, Any], width: int) -> Cell:
    return numbers.trend(value, width), "trend"


def _flag(value: Any, row: dict[str, Any], width: int) -> Cell:
    return ("● yes", "bad") if value else ("no", "dim")


def _yes(value: Any, row: dict[str, Any], width: int) -> Cell:
    return ("yes", "cool") if value else ("no", "dim")


def _held(value: Any, row: dict[str, Any], width: int) -> Cell:
    if not value:
        return numbers.NOTHING, "dim"
    mark = "● " if row.get("holding") else ""
    return f"{mark}{numbers.seconds(value / 1000)}", "bad" if row.get("holding") else "warn"


def _age(value: Any, row: dict[str, Any], width: int) -> Cell:
    return (UNKNOWN, "dim") if is_unread(value, row) else (numbers.seconds(value), PLAIN if value else "dim")


def is_unread(value: Any, row: Mapping[str, Any]) -> bool:
    """Return whether the age of the oldest message is unknown although there is one."""
    return value is None and bool(row.get("backlog"))


def _in_unit(value: Any, row: dict[str, Any], width: int) -> Cell:
    """Format a number in the unit of its row."""
    if value is None:
        return numbers.NOTHING, "dim"
    return numbers.in_unit(value, str(row.get("unit") or "")), PLAIN


def _state(value: Any, row: dict[str, Any], width: int) -> Cell:
    return shortened(str(value or numbers.NOTHING), width), state_look(value)


def state_look(value: object) -> str:
    """Return the look of a state."""
    return _STATES.get(str(value or "").lower(), PLAIN)


def _policy(value: Any, row: dict[str, Any], width: int) -> Cell:
    return shortened(policy_in_words(str(value or numbers.NOTHING)), width), PLAIN


def policy_in_words(name: str) -> str:
    """Return a short name of a policy or setting, without what its limit is set for: ``dispatch rate``."""
    return _POLICIES.get(name) or name.replace("-", " ").replace(":", " ").replace("_", " ")


_POLICIES: Final = {
    "backlog-quota:destination_storage": "backlog size",
    "backlog-quota:message_age": "backlog age",
    "subscription-dispatch-rate": "dispatch rate",
    "max-consumers-per-subscription": "consumers",
    "max-subscriptions-per-topic": "subscriptions",
    "max-topics-per-namespace": "topics",
    "max-producers": "producers",
    "max-consumers": "consumers",
    "max-unacked-messages-per-consumer": "unacked/consumer",
    "max-unacked-messages-per-subscription": "unacked messages",
    "maxUnackedMessagesPerBroker": "unacked messages",
    "brokerMaxConnections": "connections",
    "brokerPublisherThrottlingMaxMessageRate": "publish rate",
    "brokerPublisherThrottlingMaxByteRate": "publish rate",
    "publishRateInMsgs": "publish rate",
    "publishRateInBytes": "publish rate",
    "dispatchThrottlingRateInMsg": "dispatch rate",
    "dispatchThrottlingRateInByte": "dispatch rate",
    "dispatchRateInMsgs": "dispatch rate",
    "dispatchRateInBytes": "dispatch rate",
}

_STATES: Final = {
    **dict.fromkeys(("failed", "broken", "tripped", "error", "disabled", "lost", "gone", "stuck"), "bad"),
    **dict.fromkeys(("paused", "cancelled", "warning", "draining", "starting", "waiting"), "warn"),
    **dict.fromkeys(("running", "active", "loaded", "open", "in flight"), "good"),
    **dict.fromkeys(("done", "idle", "built in", "info", "sealed", "stopped"), "dim"),
}

KINDS: Final[dict[str, Callable[[Any, dict[str, Any], int], Cell]]] = {
    "text": _text,
    "line": _line,
    "topic": _topic,
    "topics": _topics,
    "message": _message,
    "progress": _progress,
    "policy": _policy,
    "count": _plain(numbers.count),
    "rate": _plain(numbers.rate),
    "size": _plain(numbers.size),
    "seconds": _plain(numbers.seconds),
    "age": _age,
    "ms": _plain(numbers.milliseconds),
    "ns": _plain(numbers.nanoseconds),
    "moment": _plain(numbers.moment),
    "change": _change,
    "drain": _drain,
    "cause": _cause,
    "share": _share,
    "trend": _trend,
    "flag": _flag,
    "yes": _yes,
    "held": _held,
    "unit": _in_unit,
    "state": _state,
}

_SHRUNK: Final = 9
"""Width of a growing column on a narrow screen."""
_SQUEEZED: Final = 2
"""Cells that a growing column gives up for the gaps between columns."""
_PERCENTAGE: Final = 5
"""Width of a percentage, such as that of ``>999%``."""
_BAR_LEAST: Final = 8
"""Width from which a bar is drawn before its percentage; in shorter ones, different shares look the same."""
BAR: Final = _BAR_LEAST + 1 + _PERCENTAGE
"""Width of a bar with its percentage."""
_STEP: Final = 4
"""A growing column has a multiple of so many cells if there is room, so that few longer texts move the others."""
_GAP_MAX: Final = 4
"""Blank cells between columns up to which these share spare cells. Others remain at the right."""
_GROWING_MAX: Final = 60
_FIXED_MAX: Final = 24
"""Widths up to which a column gets the room that its texts need before gaps become wider, if it grows or not. Each
growing column first gets as much as others."""
_UNKNOWN: Final[Mapping[str, int]] = {}
_MEASURED: Final = frozenset({"text", "line", "topic", "topics", "message", "policy", "cause", "state"})
"""Kinds of texts. Those of other kinds have about the same width in each row, measured only if a text is cut."""
TO_THE_RIGHT: Final = frozenset(
    {"count", "rate", "size", "seconds", "age", "ms", "ns", "change", "drain", "held", "unit"}
)
"""Kinds that are aligned to the right."""
_SPARING: Final = TO_THE_RIGHT | {"moment", "flag", "yes"}
"""Other kinds whose columns give up cells that they do not need."""
_NUMBER_MAX: Final = {"count": 7, "rate": 5, "seconds": 6, "size": 8}
"""Widths that numbers have at most, such as those of ``999,999``, ``12.3k``, ``23h59m`` and ``99.9 KiB``."""
BARS: Final = frozenset({"share", "progress"})
"""Kinds that are drawn as a bar with its percentage."""
_ENDS_RIGHT: Final = TO_THE_RIGHT | BARS | {"trend"}
"""Kinds whose last cell has no blank, so that a text behind them would seem to belong to them."""


class PlacedColumn(NamedTuple):
    """A column of a layout."""

    column: Column
    width: int
    gap: int = 1
    """Blank cells behind it."""


def is_cut(placed: Iterable[PlacedColumn], content: Mapping[str, int]) -> bool:
    """Return whether a column of a layout is too narrow for a text of up to ``content`` cells."""
    return any(width < content.get(column.key, 0) for column, width, _ in placed if column.kind in _MEASURED)


def widest_numbers(
    columns: Iterable[Column], rows: Sequence[Mapping[str, Any]], known: Mapping[str, int]
) -> dict[str, int]:
    """Return the widths of columns without texts, by key: of the title or the widest value, also of earlier rows.

    Skips values that cannot be wider, as their formatting would take longer than all texts.
    """
    found = {}
    for column in columns:
        if column.kind in _SPARING:
            wide, form = max(known.get(column.key, 0), len(column.title)), KINDS[column.kind]
            if wide < min(column.width, _NUMBER_MAX.get(column.kind, column.width)):
                told = (row if isinstance(row, dict) else dict(row) for row in rows)
                wide = max(wide, *(len(form(row.get(column.key), row, column.width)[0]) for row in told), 0)
            found[column.key] = wide
    return found


def widest(columns: Iterable[Column], rows: Sequence[Mapping[str, Any]], known: Mapping[str, int]) -> dict[str, int]:
    """Return the widths of the widest texts of columns with texts, by key, in cells. ``known``: those of other rows."""
    found = {}
    for column in columns:
        if column.kind in _MEASURED and rows:
            found[column.key] = known.get(column.key, 0)
            for row in rows:
                value = row.get(column.key)
                if not (type(value) is str and len(value) <= found[column.key] and value.isascii()):
                    text = KINDS[column.kind](value, row if isinstance(row, dict) else dict(row), _GROWING_MAX)[0]
                    found[column.key] = max(found[column.key], cell_len(text))
    return found


def keys_of(columns: Iterable[Column]) -> list[str]:
    """Return the values of a row needed to draw these columns."""
    return [key for column in columns for key in (column.key, *column.beside)]


def short_id(value: object) -> str:
    """Return a message ID without unset partition and batch index."""
    return str(value).removesuffix(":-1").removesuffix(":-1")


def subscription_title(row: Mapping[str, Any]) -> str:
    """Return the name of a subscription with its topic: ``shipping of orders-1``."""
    return f"{row.get('subscription')} of {short_topic(str(row.get('topic')))}"


def client_title(row: Mapping[str, Any]) -> str:
    """Return the kind and name of a client, its subscription and topic, and its address.

    Example: ``consumer c1 of shipping of orders-1 (127.0.0.1:40001)``.
    """
    used = subscription_title(row) if row.get("subscription") else short_topic(str(row.get("topic") or ""))
    told = (row.get("kind"), row.get("name"), used and f"of {used}", f"({row.get('address')})")
    return " ".join(str(each) for each in told if each)


def shortened(text: str, width: int, *, ends: bool = False) -> str:
    """Truncate a text in the middle to a width in cells, because names differ at both ends.

    A width with few cells holds the beginning of the text, or its end if ``ends``.
    """
    if width < 1 or (len(text) if text.isascii() else cell_len(text)) <= width:
        return text
    if width < 8 and not ends:
        return f"{_beginning(text, width - 1)}…"
    head = (width - 1) // 2 if width >= 5 else 0
    return f"{_beginning(text, head)}…{_beginning(text[::-1], width - 1 - head)[::-1]}"


def _beginning(text: str, width: int) -> str:
    """Return the beginning of a text, up to a width in cells."""
    return text[:width] if text.isascii() else set_cell_size(text[:width], width).rstrip()


def laid_out(
    columns: Sequence[Column],
    width: int,
    sorted_by: str | None = None,
    content: Mapping[str, int] = _UNKNOWN,
) -> list[PlacedColumn]:
    """Return the columns that fit into a width, in order, with their widths and gaps. At least one is shown.

    The column that the rows are sorted by is always shown, with its whole title. ``content`` has the widest text of
    columns by key. A column gives up cells that its texts do not need. These and the spare cells let useful texts fit,
    then make two cells between columns, then give more important columns the width of their texts, then draw bars
    before percentages, and then make wider gaps; texts that are longer than most get the rest. On a phone, where not
    even the columns of rank 0 fit, those that grow on other screens shrink.
    """
    shown = _shown(columns, width, sorted_by, content)
    is_narrow = _needed(shown, sorted_by) > width
    declared = [
        (_least if is_narrow else _percentage if column.kind in BARS else _width)(column, sorted_by) for column in shown
    ]
    wanted = [
        _wanted(column, wide, sorted_by, content.get(column.key)) for column, wide in zip(shown, declared, strict=True)
    ]
    widths = [min(pair) for pair in zip(declared, wanted, strict=True)]
    spare = width - sum(widths) - len(widths)
    gaps, spare = _gaps(shown, spare - _complete(shown, widths, wanted, spare))
    if not is_narrow:
        _squeeze(shown, widths, gaps, sorted_by)
    for most in (_FIXED_MAX, _GROWING_MAX):  # not all of one name before the others
        for at in sorted(range(len(shown)), key=lambda each: (shown[each].grow, _rank(shown[each], sorted_by))):
            spare -= _widen(widths, at, min(wanted[at], max(most, shown[at].useful)), spare)
    for at, least in enumerate(declared):
        spare -= _widen(widths, at, least, spare)
    for at, column in enumerate(shown):
        if column.kind in BARS and BAR - widths[at] <= spare:
            spare -= _widen(widths, at, BAR, spare)
    growing = [at for at, column in enumerate(shown) if column.grow]
    for at in growing:
        spare -= _widen(widths, at, -(-widths[at] // _STEP) * _STEP, spare)
    for wanted_gap in range(min(gaps) + 1, _GAP_MAX + 1):
        narrow = [at for at, gap in enumerate(gaps[:-1]) if gap < wanted_gap]
        if len(narrow) <= spare:
            spare -= len(narrow)
            gaps = [gap + (at in narrow) for at, gap in enumerate(gaps)]
    long = [at for at in growing if content.get(shown[at].key, 0) >= _GROWING_MAX]
    for left, at in zip(range(len(long), 0, -1), long, strict=True):
        spare -= _widen(widths, at, widths[at] + spare // left, spare)
    return [PlacedColumn(*placed) for placed in zip(shown, widths, gaps, strict=True)]


def _shown(columns: Sequence[Column], width: int, sorted_by: str | None, content: Mapping[str, int]) -> list[Column]:
    """Return the columns to show: the least important are left out until the others fit, with useful parts of texts."""
    kept, ranks = set(range(len(columns))), [_rank(column, sorted_by) for column in columns]
    for at in sorted(kept, key=lambda each: (-ranks[each], -each)):
        others = [columns[each] for each in sorted(kept)]
        wished = [
            column for column in others if column.useful and max(column.rank + 1, column.useful_from) <= ranks[at]
        ]
        more = sum(max(min(column.useful, content.get(column.key, 0)) - column.width, 0) for column in wished)
        if (_needed_shrunk if ranks[at] <= 0 else _needed)(others, sorted_by) + more <= width or len(kept) == 1:
            break
        kept.discard(at)
    return [columns[at] for at in sorted(kept)]


def _rank(column: Column, sorted_by: str | None) -> int:
    return -1 if column.orders(sorted_by) else column.rank


def _gaps(shown: Sequence[Column], spare: int) -> tuple[list[int], int]:
    """Return the gaps behind the columns, and the cells that remain: two between columns, as far as the cells suffice.

    A text behind a number comes first, then one behind a text, because a number seldom fills its column.
    """
    gaps = [1] * len(shown)
    order = [
        (following.kind in TO_THE_RIGHT, column.kind not in _ENDS_RIGHT, at)
        for at, (column, following) in enumerate(pairwise(shown))
    ]
    for _, _, at in sorted(order)[: max(spare, 0)]:
        gaps[at] += 1
        spare -= 1
    return gaps, max(spare, 0)


def _squeeze(shown: Sequence[Column], widths: list[int], gaps: list[int], sorted_by: str | None) -> None:
    """Take cells from growing columns for two cells before texts, as two texts with one blank would seem to be one."""
    spare = {at: widths[at] - _least_squeezed(column, sorted_by) for at, column in enumerate(shown) if column.grow}
    for at, (gap, following) in enumerate(zip(gaps, shown[1:], strict=False)):
        if gap == 1 and following.kind not in TO_THE_RIGHT:
            # not from a title, unless there is no other cell
            giver = max(
                spare,
                key=lambda each: (widths[each] > _title(shown[each], sorted_by) and spare[each] > 0, spare[each]),
                default=None,
            )
            if giver is None or spare[giver] < 1:
                return
            spare[giver] -= 1
            widths[giver] -= 1
            gaps[at] += 1


def _least_squeezed(column: Column, sorted_by: str | None) -> int:
    return max(column.width - _SQUEEZED, min(column.width, _SHRUNK), _title_min(column, sorted_by))


def _complete(shown: Sequence[Column], widths: list[int], wanted: Sequence[int], spare: int) -> int:
    """Widen columns whose useful texts then fit as a whole. Return the number of cells."""
    used = 0
    for at, column in enumerate(shown):
        if widths[at] < wanted[at] <= min(column.useful, widths[at] + spare - used):
            used += _widen(widths, at, wanted[at], spare - used)
    return used


def _widen(widths: list[int], at: int, wanted: int, spare: int) -> int:
    """Widen a column up to a width, as far as ``spare`` cells suffice. Return the number of cells."""
    more = min(max(wanted - widths[at], 0), spare)
    widths[at] += more
    return more


def _wanted(column: Column, declared: int, sorted_by: str | None, content: int | None) -> int:
    """Return the width that a column needs for its title and texts: the declared one for numbers of unknown width."""
    if content is None:
        return _title(column, sorted_by) if column.kind in _MEASURED else max(declared, _title(column, sorted_by))
    most = max(_GROWING_MAX if column.grow else _FIXED_MAX, declared)
    return min(max(content, _title(column, sorted_by)), most)


def _title(column: Column, sorted_by: str | None) -> int:
    """Return the width of a title, with the mark of the order."""
    return len(column.title) + column.orders(sorted_by)


def _title_min(column: Column, sorted_by: str | None) -> int:
    """Return the least width for a title, which is shortened except above the column that the rows are sorted by."""
    return _title(column, sorted_by) if column.orders(sorted_by) else 0


def _needed(columns: Sequence[Column], sorted_by: str | None) -> int:
    """Return the width of columns that are squeezed for two cells before texts."""
    texts = sum(column.kind not in TO_THE_RIGHT for column in columns[1:])
    given = sum(_width(column, sorted_by) - _least_squeezed(column, sorted_by) for column in columns if column.grow)
    return sum(_width(column, sorted_by) + 1 for column in columns) + max(texts - given, 0)


def _needed_shrunk(columns: Sequence[Column], sorted_by: str | None) -> int:
    return sum(_least(column, sorted_by) + 1 for column in columns)


def _width(column: Column, sorted_by: str | None) -> int:
    return max(column.width, _title_min(column, sorted_by))


def _least(column: Column, sorted_by: str | None) -> int:
    """Return the width of a column on a phone."""
    most = _SHRUNK if column.grow else _percentage(column, sorted_by) if column.kind in BARS else column.width
    return min(_width(column, sorted_by), most)


def _percentage(column: Column, sorted_by: str | None) -> int:
    """Return the width of a column without the bar before its percentage."""
    return max(_PERCENTAGE, _title(column, sorted_by))
