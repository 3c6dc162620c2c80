"""Colours of messages on a terminal: keys, properties, and the parts of JSON.

Only text without control characters is coloured, so that the escape sequences of the colours are the only ones.
"""

import re
from typing import Final

import click

TIME: Final = "bright_black"
ID: Final = "blue"
KEY: Final = "yellow"
NAME: Final = "cyan"

_COLORS: Final = {"text": "green", "number": "magenta", "word": "red"}
# Linear: a text without an end extends to the end of the input, so that no later quotation mark is searched again.
_JSON: Final = re.compile(
    r'(?P<text>"(?:[^"\\]|\\.)*"?)(?P<colon>\s*:)?'
    r"|(?P<number>-?\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    r"|(?P<word>\b(?:true|false|null)\b)",
    re.DOTALL,
)


def painted(text: str, color: str, wanted: bool = True) -> str:
    """Return a text in a colour, if wanted."""
    return click.style(text, fg=color) if wanted and text else text


def painted_json(text: str) -> str:
    """Return JSON, which may be truncated, with coloured names, texts, numbers and words. Other text is unchanged."""
    return _JSON.sub(_painted, text) if text.startswith(("{", "[")) else text


def _painted(found: re.Match[str]) -> str:
    if found["colon"] is not None:
        return painted(found["text"], NAME) + found["colon"]
    kind = found.lastgroup
    assert kind is not None, "every alternative is a group"
    return painted(found[0], _COLORS[kind])
