"""Table columns: format, width and colour of values, and the choice of columns on narrow screens."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from pulsarbox.tui.widgets import numbers

PLAIN: Final = ""


class Column(NamedTuple):
    """One column. Columns with a low ``rank`` stay on narrow screens; those with ``grow`` share the spare width."""

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

    @property
    def sorted_by(self) -> str | None:
        """The sort key to request, None if not sortable."""
        return self.key if self.sort == "" else self.sort


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
    """Format a list of topics."""
    text = ", ".join(short_topic(str(each)) for each in value or ())
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
    "unread": "bad",
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


def _share(value: Any, row: dict[str, Any], width: int) -> Cell:
    if value is None:
        return numbers.NOTHING, "dim"
    look = "bad" if value >= 1 else "warn" if value >= 0.8 else "good"
    told = numbers.percent(value)
    return f"{numbers.bar(value, max(width - 6, 1))} {told:>5}", look


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


def _in_unit(value: Any, row: dict[str, Any], width: int) -> Cell:
    """Format a number in the unit of its row."""
    if value is None:
        return numbers.NOTHING, "dim"
    return IN_UNIT.get(str(row.get("unit") or ""), numbers.count)(value), PLAIN


def _state(value: Any, row: dict[str, Any], width: int) -> Cell:
    word = str(value or "")
    return shortened(word or numbers.NOTHING, width), _STATES.get(word.lower(), PLAIN)


_POLICY_NAMES: Final = 44
"""Width from which policies have their names as in commands; below, all have short names in words."""


def _policy(value: Any, row: dict[str, Any], width: int) -> Cell:
    name = str(value or numbers.NOTHING)
    return (name if width >= _POLICY_NAMES else shortened(policy_in_words(name), width)), PLAIN


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
    "max-unacked-messages-per-consumer": "unacked, consumer",
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
    **dict.fromkeys(("failed", "broken", "tripped", "error", "disabled", "lost", "gone"), "bad"),
    **dict.fromkeys(("paused", "cancelled", "warning", "draining", "starting"), "warn"),
    **dict.fromkeys(("running", "active", "loaded", "open"), "good"),
    **dict.fromkeys(("done", "idle", "built in", "info", "sealed", "stopped"), "dim"),
}

IN_UNIT: Final[dict[str, Callable[[Any], str]]] = {
    "bytes": numbers.size,
    "bytes/s": lambda value: f"{numbers.size(value)}/s",
    "messages/s": lambda value: f"{numbers.rate(value)}/s",
    "entries/s": lambda value: f"{numbers.rate(value)}/s",
    "s": numbers.seconds,
    "seconds": numbers.seconds,
    "ms": lambda value: numbers.seconds(value / 1000),
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
_GROWN: Final = 8
"""Cells that a growing column gets before gaps become wider."""
TO_THE_RIGHT: Final = frozenset({"count", "rate", "size", "seconds", "ms", "ns", "change", "drain", "held", "unit"})
"""Kinds that are aligned to the right."""
_ENDS_RIGHT: Final = TO_THE_RIGHT | {"share", "progress", "trend"}
"""Kinds whose last cell has no blank, so that a text behind them would seem to belong to them."""


class PlacedColumn(NamedTuple):
    """A column of a layout."""

    column: Column
    width: int
    gap: int = 1
    """Blank cells behind it."""


def keys_of(columns: Iterable[Column]) -> list[str]:
    """Return the values of a row needed to draw these columns."""
    return [key for column in columns for key in (column.key, *column.beside)]


def short_id(value: object) -> str:
    """Return a message ID without unset partition and batch index."""
    return str(value).removesuffix(":-1").removesuffix(":-1")


def short_topic(name: str) -> str:
    """Return a topic name without the default domain and namespace."""
    return name.removeprefix("persistent://").removeprefix("public/default/")


def shortened(text: str, width: int) -> str:
    """Truncate a text in the middle, because names differ at both ends."""
    if len(text) <= width or width < 1:
        return text
    if width < 8:
        return text[: width - 1] + "…"
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def laid_out(columns: Sequence[Column], width: int) -> list[PlacedColumn]:
    """Return the columns that fit into a width, in order, with their widths and gaps. At least one is shown.

    Gaps are wider where there is room, first those between a number and a text. On a phone, where not even the columns
    of rank 0 fit, those that grow on other screens shrink.
    """
    kept = set(range(len(columns)))
    for at in sorted(kept, key=lambda each: (-columns[each].rank, -each)):
        if _needed((columns[each] for each in kept), shrunk=columns[at].rank == 0) <= width or len(kept) == 1:
            break
        kept.discard(at)
    shown = [columns[at] for at in sorted(kept)]
    widths = [_least(column) if _needed(shown) > width else column.width for column in shown]
    spare = max(width - sum(widths) - len(widths), 0)
    growing = sum(column.grow for column in shown)
    gaps = _gaps(shown, spare, spare - _GROWN * growing)
    spare -= sum(gaps) - len(gaps)
    out = []
    for column, least, gap in zip(shown, widths, gaps, strict=True):
        extra = 0
        if column.grow:
            extra = spare // growing
            spare -= extra
            growing -= 1
        out.append(PlacedColumn(column, least + extra, gap))
    return out


def _gaps(shown: Sequence[Column], spare: int, plenty: int) -> list[int]:
    """Return the gaps behind the columns: two cells between a number and a text, as far as ``spare`` cells suffice.

    Two or three cells everywhere if ``plenty`` cells suffice.
    """
    room = plenty // max(len(shown) - 1, 1)
    gaps = [min(max(room, 0), 2) + 1] * (len(shown) - 1) + [1]
    spare -= sum(gaps) - len(gaps)
    for at, (column, following) in enumerate(pairwise(shown)):
        is_close = gaps[at] == 1 and column.kind in _ENDS_RIGHT and following.kind not in TO_THE_RIGHT
        if is_close and spare > 0:
            gaps[at] += 1
            spare -= 1
    return gaps


def _needed(columns: Iterable[Column], *, shrunk: bool = False) -> int:
    return sum((_least(column) if shrunk else column.width) + 1 for column in columns)


def _least(column: Column) -> int:
    return min(column.width, _SHRUNK) if column.grow else column.width
