"""Output in the formats of pulsar-admin: JSON with its spacing, one line per item, ``key    value``."""

import json
from typing import Any, Final

import click

from pulsarbox.cli.common.terminal_text import clean


class Number(float):
    """A float printed exactly as received."""

    def __new__(cls, text: str) -> "Number":
        """``text`` is the JSON literal."""
        made = super().__new__(cls, text)
        made.text = text
        return made

    text: str


def loads(text: str) -> Any:
    """Parse JSON, keeping float literals. Raises ValueError."""
    return json.loads(text, parse_float=Number)


def pretty(value: Any, indent: str = "") -> str:
    """Format JSON over several lines with the spacing of Jackson, as pulsar-admin does."""
    inner = indent + "  "
    if isinstance(value, dict):
        if not value:
            return "{ }"
        rows = (f"{inner}{scalar(str(key))} : {pretty(one, inner)}" for key, one in value.items())
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    if isinstance(value, list):
        # Jackson prints the elements of a list on one line.
        return "[ " + ", ".join(pretty(one, indent) for one in value) + " ]" if value else "[ ]"
    return scalar(value)


def scalar(value: Any) -> str:
    """Format a string, number, boolean or null as JSON, with unprintable characters escaped."""
    if isinstance(value, Number):
        return value.text
    if isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False)
        return "".join(one if one.isprintable() else _escaped(one) for one in text)
    return json.dumps(value)


def compact(value: Any) -> str:
    """Format JSON on one line."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{scalar(str(key))}:{compact(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(compact, value)) + "]"
    return scalar(value)


_HTML: Final = {ord(one): f"\\u{ord(one):04x}" for one in "<>&='"}


def gson(value: Any, indent: str | None = "") -> str:
    """Format JSON as Java's Gson does: without null fields, one element per line, or on one line without ``indent``."""
    inner = None if indent is None else indent + "  "
    if isinstance(value, dict):
        colon = ":" if inner is None else ": "
        rows = [f"{gson(str(key))}{colon}{gson(one, inner)}" for key, one in value.items() if one is not None]
        return _bracketed("{", rows, "}", indent)
    if isinstance(value, list):
        return _bracketed("[", [gson(one, inner) for one in value], "]", indent)
    return scalar(value).translate(_HTML) if isinstance(value, str) else scalar(value)


def _bracketed(opening: str, rows: list[str], closing: str, indent: str | None) -> str:
    if indent is None or not rows:
        return opening + ",".join(rows) + closing
    return f"{opening}\n" + ",\n".join(f"{indent}  {row}" for row in rows) + f"\n{indent}{closing}"


def show(printing: str, answer: Any) -> None:
    """Print a response in a format of the tables."""
    how, _, text = printing.partition(" ")
    if how == "said":
        click.echo(text)
    elif how == "gson":
        click.echo(gson(answer))
    elif how == "lines" and isinstance(answer, list):
        for one in answer:
            click.echo(plain(one))
    elif how == "pairs" and isinstance(answer, dict):
        for key, one in answer.items():
            click.echo(f"{clean(str(key))}    {inline(one)}")
    elif how in ("lines", "pairs") and answer is None:
        return
    elif how:
        click.echo(plain(answer))


def plain(value: Any) -> str:
    """Return a string unchanged except for escapes, other values as JSON over several lines."""
    return "".join(map(_line, value.splitlines(keepends=True))) if isinstance(value, str) else pretty(value)


def inline(value: Any) -> str:
    """Format a value beside its key: strings plain, string lists as in Java, other values as JSON on one line."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return "[" + ", ".join(map(clean, value)) + "]"
    return compact(value)


_ENDS: Final = "\r\n"


def _line(line: str) -> str:
    text = line.rstrip(_ENDS)
    return clean(text) + ("\n" if line != text else "")


def _escaped(character: str) -> str:
    code = ord(character)
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
