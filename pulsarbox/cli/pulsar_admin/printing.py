"""Answers as pulsar-admin prints them: JSON with its spacing, a line for each of a list, ``key    value``."""

import json
from typing import Any, Final

import click

from pulsarbox.cli.common.terminal_text import clean


class Number(float):
    """A number with a fraction that is printed as it came."""

    def __new__(cls, text: str) -> "Number":
        """``text``: as in the JSON."""
        made = super().__new__(cls, text)
        made.text = text
        return made

    text: str


def loads(text: str) -> Any:
    """The value of JSON. Raises ValueError."""
    return json.loads(text, parse_float=Number)


def pretty(value: Any, indent: str = "") -> str:
    """JSON over several lines, with the spaces of Jackson, which prints for pulsar-admin."""
    inner = indent + "  "
    if isinstance(value, dict):
        if not value:
            return "{ }"
        rows = (f"{inner}{scalar(str(key))} : {pretty(one, inner)}" for key, one in value.items())
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    if isinstance(value, list):
        # Jackson leaves the elements of a list on its line.
        return "[ " + ", ".join(pretty(one, indent) for one in value) + " ]" if value else "[ ]"
    return scalar(value)


def scalar(value: Any) -> str:
    """JSON of a string, a number, a truth value or null. What a terminal would obey shows as an escape."""
    if isinstance(value, Number):
        return value.text
    if isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False)
        return "".join(one if one.isprintable() else _escaped(one) for one in text)
    return json.dumps(value)


def compact(value: Any) -> str:
    """JSON on one line."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{scalar(str(key))}:{compact(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(compact, value)) + "]"
    return scalar(value)


def show(printing: str, answer: Any) -> None:
    """Print an answer in one of the ways of the tables."""
    how, _, text = printing.partition(" ")
    if how == "said":
        click.echo(text)
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
    """A string as it is, all else as JSON over several lines."""
    return "".join(map(_line, value.splitlines(keepends=True))) if isinstance(value, str) else pretty(value)


def inline(value: Any) -> str:
    """A value beside its key: strings as they are, lists as Java prints them, all else as JSON on one line."""
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
