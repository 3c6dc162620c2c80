"""Messages as rows of a table, whose columns fit the first messages, because the next ones are unknown."""

import unicodedata
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from pulsarbox.cli.common.terminal_text import clean
from pulsarbox.cli.messages.message_colors import ID, KEY, NAME, TIME, painted, painted_json
from pulsarbox.client.message_decoder import ReceivedMessage

_PREVIEW: Final = 200
"""Maximum number of payload characters shown."""
_VALUE_MIN: Final = 40
"""Width of the values for which a narrow terminal hides other columns."""
_GAP: Final = "  "
_TOPIC: Final = "TOPIC"
_TIME: Final = "TIME"
_ID: Final = "ID"
_KEY: Final = "KEY"
_REDELIVERED: Final = "REDELIVERED"
_ORIGIN: Final = "ORIGIN"
_REASON: Final = "REASON"
_VALUE: Final = "VALUE"
_LETTER_VALUE_MIN: Final = 24
"""The same beside the columns of dead letters."""
_CUT: Final = (_TOPIC, _KEY, _ORIGIN, _REASON)
"""Columns of which a terminal shows only the beginning of texts that are longer than a fifth of its width."""
_WIDTH_MAX: Final = 32
"""Maximum width to which the first messages widen a column."""
_WIDTHS: Final = {_TOPIC: 12, _TIME: 12, _ID: 12, _KEY: 8, _REDELIVERED: 11, _ORIGIN: 6, _REASON: 8}
"""Minimum widths of the columns, in their order."""
_COLORS: Final = {_TOPIC: TIME, _TIME: TIME, _ID: ID, _KEY: KEY}


class MessageTable:
    """A table with a title line. On a terminal, each row is one line."""

    def __init__(
        self,
        *,
        colors: bool = False,
        width: int | None = None,
        several_topics: bool = True,
        redelivery: bool = False,
        dead_letters: bool = False,
    ) -> None:
        """``width`` is that of the terminal, None for no limit. ``redelivery`` adds a column with the counts,
        ``dead_letters`` those with the original topic and the reason.

        A narrow terminal hides the topic unless there are several, then the time, then the original topic.
        """
        self._colors = colors
        self._width = width
        self._least = [*([] if several_topics else [_TOPIC]), _TIME, *([_ORIGIN] if dead_letters else [])]
        absent = {*(() if redelivery else (_REDELIVERED,)), *(() if dead_letters else (_ORIGIN, _REASON))}
        self._columns = {name: least for name, least in _WIDTHS.items() if name not in absent}
        self._value_min = _LETTER_VALUE_MIN if dead_letters else _VALUE_MIN
        self._value_width: int | None = None

    def begin(self, messages: Iterable[ReceivedMessage]) -> bytes:
        """Fit the columns to the first messages, and return the title line. Later rows may be wider."""
        for message in messages:
            for name, width in self._columns.items():
                self._columns[name] = max(width, min(_cells(_text(name, message)), self._most(name)))
        for least in self._least:
            if self._width is not None and self._width - self._taken() < self._value_min:
                del self._columns[least]
        if self._width is not None:
            self._value_width = max(1, self._width - self._taken())
        titles = (f"{name:<{width}}{_GAP}" for name, width in self._columns.items())
        return f"{''.join(titles)}{_VALUE}\n".encode()

    def row(self, message: ReceivedMessage) -> bytes:
        """Return the line of a message."""
        cells = (self._cell(name, message) for name in self._columns)
        line = f"{''.join(cells)}{''.join(self._value(message))}\n"
        return line.encode("utf-8", "backslashreplace")

    def _most(self, name: str) -> int:
        return _WIDTH_MAX if self._width is None or name not in _CUT else min(_WIDTH_MAX, self._width // 5)

    def _taken(self) -> int:
        return sum(width + len(_GAP) for width in self._columns.values())

    def _cell(self, name: str, message: ReceivedMessage) -> str:
        text, width = _text(name, message), self._columns[name]
        if self._width is not None and name in _CUT:
            text = _cut(text, width)
        text += " " * (width - _cells(text))
        color = _COLORS.get(name)
        return (text if color is None else painted(text, color, self._colors)) + _GAP

    def _value(self, message: ReceivedMessage) -> Iterator[str]:
        """Yield the payload and the properties. Properties that do not fit the terminal are left out."""
        payload = self._payload(message.payload)
        yield painted_json(payload) if self._colors else payload
        pairs = [(clean(name), clean(value)) for name, value in message.properties]
        if not pairs or not self._fits(f"{payload}{_GAP}{{{', '.join(map('='.join, pairs))}}}"):
            return
        yield f"{_GAP}{{{', '.join(self._painted(pairs))}}}"

    def _painted(self, pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
        return (f"{painted(name, NAME, self._colors)}={value}" for name, value in pairs)

    def _payload(self, payload: bytes | None) -> str:
        if payload is None:
            return "(null)"
        text = clean(payload[: 4 * _PREVIEW].decode("utf-8", "backslashreplace"))
        if len(text) > _PREVIEW or len(payload) > 4 * _PREVIEW:
            text = f"{text[:_PREVIEW]}... ({len(payload):,} bytes)"
        return text if self._value_width is None else _cut(text, self._value_width)

    def _fits(self, text: str) -> bool:
        return self._value_width is None or _cells(text) <= self._value_width


def _text(name: str, message: ReceivedMessage) -> str:
    if name == _TOPIC:
        return clean(message.topic.rpartition("/")[2])
    if name == _TIME:
        when = datetime.fromtimestamp(min(message.publish_time, 2**42) / 1000).astimezone()
        return when.strftime("%H:%M:%S.%f")[:-3]
    if name == _ID:
        return str(message.id)
    if name == _KEY:
        return "-" if message.key is None else clean(message.key)
    if name == _ORIGIN:
        return clean(_origin(message))
    if name == _REASON:
        return clean(_reason(message))
    return str(message.entry.redelivery)


def _origin(message: ReceivedMessage) -> str:
    from pulsarbox.cli.connect.admin_client import short
    from pulsarbox.cli.messages.message_filter import ReceivedView

    return short(ReceivedView(message).origin or "-")


def _reason(message: ReceivedMessage) -> str:
    from pulsarbox.protocol.dead_letters.fingerprint import reason_of

    return reason_of(dict(message.properties)) or "-"


def _cut(text: str, width: int) -> str:
    """Return a text that fits into a number of cells."""
    if _cells(text) <= width:
        return text
    left = width - 1
    for at, character in enumerate(text):
        left -= _cells(character)
        if left < 0:
            return f"{text[:at]}…"
    return text


def _cells(text: str) -> int:
    """Return the number of cells that a terminal needs for a text without control characters."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
