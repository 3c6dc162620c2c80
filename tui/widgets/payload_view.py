"""Payload display: decoded by schema, as JSON, text or hex, always without control characters."""

import base64
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from pulsarbox.cleaning import clean, hex_rows
from pulsarbox.tui.widgets.wrapping import breaks

FORMS: Final = ("auto", "text", "hex")
SHOWN_MAX: Final = 64 * 1024
"""Maximum number of bytes or characters to show."""
_CONTINUED: Final = "↪ "
"""Begins the further rows of a line that is wrapped."""


class WrappedLines:
    """Lines wrapped at the width of the view. A sign marks the further rows of a line."""

    def __init__(self, lines: Sequence[str | Text]) -> None:
        self._lines = lines
        self._rows: tuple[int, Text] | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """See rich.console."""
        width = options.max_width
        if self._rows is None or self._rows[0] != width:  # measured before it is drawn
            rows = [row for line in self._lines for row in _rows_of(line, width)]
            shown = Text("\n", no_wrap=True, overflow="crop").join(rows)
            self._rows = width, shown
        yield self._rows[1]


def _rows_of(line: str | Text, width: int) -> list[Text]:
    """Return the rows of a line with the styles of its parts."""
    if isinstance(line, str):
        return [Text(row) for row in wrapped(line, width)]
    offsets = _offsets(line.plain, width)
    rows = list(line.divide(offsets)) if offsets else [line]
    return [rows[0], *(Text(_CONTINUED).append_text(each) for each in rows[1:])]


def wrapped(line: str, width: int) -> list[str]:
    """Break a line at words into rows of a width in cells, those after the first with a sign."""
    offsets = _offsets(line, width)
    rows = [line[begin:end] for begin, end in pairwise([0, *offsets, len(line)])]
    return [rows[0], *(f"{_CONTINUED}{each}" for each in rows[1:])]


def _offsets(line: str, width: int) -> list[int]:
    """Return where the rows of a line after the first begin."""
    if len(line) <= width and line.isascii():
        return []
    return list(breaks(line, max(width, 2), max(width - len(_CONTINUED), 2)))


def is_json(row: Mapping[str, Any], lines: Sequence[str]) -> bool:
    """Return whether the lines of a payload in the form ``auto`` are JSON, or a value decoded to JSON."""
    return isinstance(row.get("decoded"), str) or (len(lines) > 1 and lines[0] in ("{", "["))


def named_form(row: Mapping[str, Any], form: str) -> str:
    """Return how the payload is shown, in words."""
    if form != "auto":
        return "bytes" if form == "hex" else "text"
    if isinstance(row.get("decoded"), str):
        return "by schema" if row.get("schemaVersion") is not None else "JSON"
    try:
        (payload_of(row) or b"").decode()
    except UnicodeDecodeError:
        return "bytes"
    return "JSON" if is_json(row, lines_of(row)) else "text"


def payload_of(row: Mapping[str, Any]) -> bytes | None:
    """Return the raw payload, None without one."""
    told = row.get("payload")
    if not isinstance(told, str):
        return None
    try:
        return base64.b64decode(told, validate=True)
    except ValueError:
        return told.encode()


def lines_of(row: Mapping[str, Any], form: str = "auto") -> list[str]:
    """Return the payload as lines."""
    payload = payload_of(row)
    if payload is None:
        reason = row.get("damaged") or row.get("closed")
        return [f"({clean(str(reason))})" if reason else "(null: a tombstone)"]
    decoded, size = row.get("decoded"), row.get("size", len(payload))
    if form == "auto" and isinstance(decoded, str):
        lines = _lines(decoded[:SHOWN_MAX])
        return [*lines, f"... (of {size:,} bytes)"] if len(decoded) > SHOWN_MAX else lines
    lines = _hex(payload[:SHOWN_MAX]) if form == "hex" else _text(payload[:SHOWN_MAX], form)
    if row.get("truncated") or len(payload) > SHOWN_MAX:
        lines.append(f"... (of {size:,} bytes)")
    return lines


def as_text(decoded: Any) -> str | None:
    """Return a decoded value as JSON, truncated to what is shown; None without a value."""
    return None if decoded is None else json.dumps(decoded, indent=2, ensure_ascii=False)[: SHOWN_MAX + 1]


def cut(value: object, most: int) -> str:
    """Return a value for one line, truncated with its length if too long."""
    text = str(value)
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


def _text(payload: bytes, form: str) -> list[str]:
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return _hex(payload) if form == "auto" else [clean(payload.decode("utf-8", "backslashreplace"))]
    if form == "auto" and text[:1] in ("{", "["):
        try:
            return _lines(json.dumps(json.loads(text), indent=2, ensure_ascii=False))
        except (ValueError, RecursionError):
            pass
    if not text:
        return ["(empty)"]
    return _lines(text)


def _lines(text: str) -> list[str]:
    return [clean(line) for line in text.split("\n")]


def _hex(payload: bytes) -> list[str]:
    lines = [f"{row.offset:06x}  {row.hex}  {row.text}" for row in hex_rows(payload)]
    return lines or ["(empty)"]


def brief(row: Mapping[str, Any], length: int = 300) -> str:
    """Return one line of the payload."""
    payload = payload_of(row)
    if payload is None:
        return "(not decoded)" if row.get("closed") else "(damaged)" if row.get("damaged") else "(null)"
    chunk = chunk_of(row)
    if chunk:
        return clean(f"({chunk}) {payload[:length].decode('utf-8', 'backslashreplace')}")[:length]
    decoded = row.get("decoded")
    if isinstance(decoded, str):  # join the lines without indentation
        return clean(" ".join(line.strip() for line in decoded[: 4 * length].split("\n")))[:length]
    return clean(payload[: 4 * length].decode("utf-8", "backslashreplace"))[:length]


def chunk_of(row: Mapping[str, Any]) -> str:
    """Describe the chunk; empty for a whole message."""
    chunk = row.get("chunk")
    return f"chunk {number_of_chunk(chunk)}" if isinstance(chunk, Mapping) else ""


def number_of_chunk(chunk: Mapping[str, Any]) -> str:
    """Return ``2 of 5``."""
    return f"{chunk.get('index', 0) + 1} of {chunk.get('count')}"


def properties(row: Mapping[str, Any], length: int = 300) -> str:
    """Return the properties on one line, truncated."""
    found = row.get("properties")
    if not isinstance(found, Mapping):
        return ""
    return clean(" ".join(f"{name[:length]}={str(value)[:length]}" for name, value in found.items())[:length])
