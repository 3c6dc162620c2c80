"""The ``pulsarbox`` command that does the same as what is seen or done, ready for a shell."""

import shlex
from collections.abc import Iterable


def quoted(word: str) -> str:
    """A word for a shell; what cannot be seen, in bash's ``$'...'``."""
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
    """``pulsarbox`` and these words."""
    return " ".join(["pulsarbox", *map(quoted, words)])


def with_target(words: Iterable[str], target: Iterable[str]) -> str:
    """The same for another box than the one a command finds by itself: ``target`` are the options that name it."""
    return line(*words, *target)
