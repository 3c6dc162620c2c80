"""Payload templates of ``produce --template``: ``{{count}}``, ``{{random 1 100}}``, ``{{time}}``, ``{{uuid}}``, ..."""

import random
import re
import string
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Final

_FIELD: Final = re.compile(r"\{\{(.*?)\}\}")
_LETTERS: Final = string.ascii_letters + string.digits

HELP: Final = (
    "{{count}} {{count 100}} {{random 1 100}} {{text 8}} {{choice a b}} {{time}} {{time %H:%M}} {{millis}} {{uuid}}"
)

Fill = Callable[[int], str]
"""Map the message number, starting at 0, to a text."""


@lru_cache(maxsize=1024)
def template(text: str) -> Fill:
    """Compile a template. Raises ValueError for an unknown or invalid field."""
    pieces: list[Fill] = []
    at = 0
    for found in _FIELD.finditer(text):
        if found.start() > at:
            pieces.append(_fixed(text[at : found.start()]))
        pieces.append(_field(found[1].strip()))
        at = found.end()
    if not pieces:
        return _fixed(text)
    pieces.append(_fixed(text[at:]))
    return lambda number: "".join([piece(number) for piece in pieces])


def _fixed(text: str) -> Fill:
    return lambda number: text


def _field(field: str) -> Fill:
    name, _, rest = field.partition(" ")
    make = _FIELDS.get(name)
    if make is None:
        raise ValueError(f"unknown field {{{{{field}}}}}; expected one of {HELP}")
    try:
        return make(rest.strip())
    except (ValueError, IndexError):
        raise ValueError(f"invalid arguments in {{{{{field}}}}}; expected one of {HELP}") from None


def _count(words: str) -> Fill:
    first = int(words or 0)
    return lambda number: str(first + number)


def _random(words: str) -> Fill:
    low, high = map(int, words.split())
    if low > high:
        raise ValueError
    return lambda number: str(random.randint(low, high))


def _text(words: str) -> Fill:
    length = int(words or 8)
    return lambda number: "".join(random.choices(_LETTERS, k=length))


def _choice(words: str) -> Fill:
    choices = words.split()
    random.choice(choices)
    return lambda number: random.choice(choices)


def _time(words: str) -> Fill:
    from datetime import UTC, datetime

    if words:
        return lambda number: datetime.now(UTC).astimezone().strftime(words)
    return lambda number: datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _millis(words: str) -> Fill:
    return lambda number: str(time.time_ns() // 1_000_000)


def _uuid(words: str) -> Fill:
    from uuid import uuid4

    return lambda number: str(uuid4())


_FIELDS: Final = {
    "count": _count,
    "random": _random,
    "text": _text,
    "choice": _choice,
    "time": _time,
    "millis": _millis,
    "uuid": _uuid,
}
