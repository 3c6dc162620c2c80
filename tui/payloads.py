"""What is in a message, for the eye: by its schema, as JSON, text or bytes; always without what a terminal obeys."""

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

from pulsarbox.cleaning import clean

FORMS: Final = ("auto", "text", "hex")
SHOWN_MAX: Final = 64 * 1024
"""Bytes that are looked at for the eye."""
_LINE_MAX: Final = 400


def payload_of(row: Mapping[str, Any]) -> bytes | None:
    """The payload as it came; None where the message has none."""
    told = row.get("payload")
    if not isinstance(told, str):
        return None
    try:
        return base64.b64decode(told, validate=True)
    except ValueError:
        return told.encode()


def lines_of(row: Mapping[str, Any], form: str = "auto") -> list[str]:
    """The payload in lines."""
    payload = payload_of(row)
    if payload is None:
        reason = row.get("damaged") or row.get("closed")
        return [f"({clean(str(reason))})" if reason else "(null: a tombstone)"]
    decoded = row.get("decoded")
    if form == "hex":
        lines = _hex(payload[:SHOWN_MAX])
    elif form == "auto" and decoded is not None:
        lines = _json(decoded)
    else:
        lines = _text(payload[:SHOWN_MAX], form)
    if row.get("truncated") or len(payload) > SHOWN_MAX:
        lines.append(f"... (of {row.get('size', len(payload)):,} bytes)")
    return lines


def _json(value: Any) -> list[str]:
    return [clean(line)[:_LINE_MAX] for line in json.dumps(value, indent=2, ensure_ascii=False).split("\n")]


def _text(payload: bytes, form: str) -> list[str]:
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return _hex(payload) if form == "auto" else [clean(payload.decode("utf-8", "backslashreplace"))]
    if form == "auto" and text[:1] in ("{", "["):
        try:
            return _json(json.loads(text))
        except (ValueError, RecursionError):
            pass
    if not text:
        return ["(empty)"]
    return [part for line in text.split("\n") for part in _cut(clean(line))]


def _cut(line: str) -> list[str]:
    return [line[at : at + _LINE_MAX] for at in range(0, len(line), _LINE_MAX)] or [""]


def _hex(payload: bytes) -> list[str]:
    lines = []
    for at in range(0, len(payload), 16):
        row = payload[at : at + 16]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{at:06x}  {row[:8].hex(' '):<23}  {row[8:].hex(' '):<23}  {shown}")
    return lines or ["(empty)"]


def brief(row: Mapping[str, Any], length: int = 300) -> str:
    """One line of it."""
    payload = payload_of(row)
    if payload is None:
        return "(null)"
    decoded = row.get("decoded")
    if decoded is not None:
        return clean(json.dumps(decoded, ensure_ascii=False))[:length]
    return clean(payload[: 4 * length].decode("utf-8", "backslashreplace"))[:length]


def properties(row: Mapping[str, Any]) -> str:
    """In one line."""
    found = row.get("properties")
    if not isinstance(found, Mapping):
        return ""
    return clean(" ".join(f"{name}={value}" for name, value in found.items()))
