"""Shell command lines equivalent to a view or deed."""

import shlex
from collections.abc import Iterable
from typing import Final

_COMMAND: Final = ": pulsarbox "
"""Begins the command line at the end of a text."""


def quoted(word: str) -> str:
    """Quote a word for a shell, with unprintable characters in bash's ``$'...'``."""
    if word.isprintable():
        return shlex.quote(word)
    told = "".join(
        one if one.isprintable() and one not in "'\\" else f"\\{one}" if one in "'\\" else _escaped(one) for one in word
    )
    return f"$'{told}'"


def _escaped(one: str) -> str:
    code = ord(one)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def line(*words: str) -> str:
    """Return the command line ``pulsarbox`` with these arguments."""
    return " ".join(["pulsarbox", *map(quoted, words)])


def told_with_target(text: str, target: Iterable[str]) -> str:
    """Return a text that ends with a command line, with the options that name the box; any other text unchanged."""
    return " ".join([text, *map(quoted, target)]) if _COMMAND in text else text


def parted(text: str) -> tuple[str, str]:
    """Return the sentences of a text, and the command line at its end, empty for none."""
    sentences, colon, command = text.partition(_COMMAND)
    return (f"{sentences}:", f"pulsarbox {command}") if colon else (text, "")


def first_sentence(text: str) -> str:
    """Return the first sentence of a text, which describes the situation."""
    sentence, point, _ = text.partition(". ")
    return sentence + point.strip()


def without_advice(text: str) -> str:
    """Return only the first sentence of a text that ends with a command line; any other text unchanged."""
    return first_sentence(text) if _COMMAND in text else text


def at_moment(time: int) -> list[str]:
    """Return the option of ``pulsarbox top`` for a time of history (ms since 1970), exact and with its time zone."""
    from datetime import datetime  # late: history is rarely shown

    precision = "milliseconds" if time % 1000 else "seconds"
    return ["--at", datetime.fromtimestamp(time / 1000).astimezone().isoformat(timespec=precision)]


def with_target(words: Iterable[str], target: Iterable[str]) -> str:
    """Return the command line with the options that name the box."""
    return line(*words, *target)
