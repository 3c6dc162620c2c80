"""Reading of JSON text into a document, a little at a time, at any depth, and as far as a truncated text goes.

The C parser of Python would take tens of milliseconds for a large text, and refuses nesting of about a thousand.
"""

import re
from collections.abc import Iterator
from typing import Final

from pulsarbox.tui.viewer.document import NODES_MAX, Document, Kind, unescaped

TOKENS: Final = 256
"""Tokens read between two pauses."""
WINDOW: Final = 1 << 16
"""Characters of a string scanned between two pauses."""

_SPACE: Final = re.compile(r"[ \t\r\n]*+")
_INSIDE: Final = re.compile(r"(?:[^\"\\]++|\\.)*+", re.DOTALL)
_SHORT: Final = re.compile(r'"[^"\\]{0,4096}+"')
"""A string without escapes that is short enough to be read in one step."""
_PLAIN: Final = re.compile(r"-?[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null|NaN|-?Infinity")
_WORD_MAX: Final = len("-Infinity")
_DELIMITERS: Final = frozenset(',:]} \t\r\n[{"')


class _Invalid(Exception):
    """The text is not JSON from here on."""

    def __init__(self, at: int, wanted: str) -> None:
        super().__init__(f"expected {wanted} at character {at + 1:,}")


class _Ended(Exception):
    """The text ends before the document does."""


class JsonReader:
    """Reads one text into ``document``."""

    def __init__(self, text: str, is_whole: bool = True, most: int = NODES_MAX) -> None:
        """``is_whole`` is False for a text that was truncated; ``most`` is the maximum number of nodes."""
        self.document = Document(text)
        self._text = text
        self._is_whole = is_whole
        self._most = most
        self._at = 0
        self._name = ""
        self._open: list[int] = []
        self._counts: list[int] = []

    def steps(self) -> Iterator[None]:
        """Read the text; the time between two values is short and does not depend on the text."""
        try:
            yield from self._values()
            self._skip_space()
            if self._at < len(self._text):
                raise _Invalid(self._at, "the end")
        except _Invalid as invalid:
            self.document.trouble = f"not valid JSON: {invalid}"
        except _Ended:
            self.document.trouble = "not valid JSON: it ends too early" if self._is_whole else "the rest is not loaded"
        self._close_all()
        self.document.is_complete = True

    def _values(self) -> Iterator[None]:
        """Read the root and everything in it."""
        tokens = 0
        name: str | int = ""
        while True:
            tokens += 1
            if tokens % TOKENS == 0:
                yield
            if len(self.document) >= self._most:
                self.document.trouble = f"only the first {self._most:,} values are shown"
                self._at = len(self._text)
                return
            yield from self._value(name)
            while self._is_after_value():
                tokens += 1
                if tokens % TOKENS == 0:
                    yield
            if not self._open:
                return
            if self.document.kinds[self._open[-1]] == Kind.OBJECT:
                yield from self._read_name()
                name = self._name
            else:
                name = self._counts[-1]

    def _skip_space(self) -> None:
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found else self._at

    def _next(self) -> str:
        self._skip_space()
        if self._at >= len(self._text):
            raise _Ended
        return self._text[self._at]

    def _value(self, name: str | int) -> Iterator[None]:
        first, parent = self._next(), self._open[-1] if self._open else -1
        start = self._at
        if first in "{[":
            self._open.append(self.document.open(name, Kind.OBJECT if first == "{" else Kind.ARRAY, parent, start))
            self._counts.append(0)
            self._at += 1
            return
        if first == '"':
            if not self._is_short_string():
                yield from self._string()
            self.document.read(name, Kind.STRING, parent, start, self._at)
        else:
            self._plain(name, parent, first)
        self._counted()

    def _plain(self, name: str | int, parent: int, first: str) -> None:
        start = self._at
        found = _PLAIN.match(self._text, start)
        if not self._is_whole and (len(self._text) - start < _WORD_MAX or (found and found.end() == len(self._text))):
            raise _Ended  # it may go on
        if found is None or (found.end() < len(self._text) and self._text[found.end()] not in _DELIMITERS):
            raise _Invalid(start, "a value")
        self._at = found.end()
        kind = Kind.NUMBER if first in "-0123456789NI" else Kind.WORD
        self.document.read(name, kind, parent, start, self._at)

    def _is_short_string(self) -> bool:
        """Move behind a string if it is short and has no escapes."""
        found = _SHORT.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return found is not None

    def _string(self) -> Iterator[None]:
        """Move behind a string."""
        at, text = self._at + 1, self._text
        while True:
            found = _INSIDE.match(text, at, at + WINDOW)
            at = found.end() if found else at
            if at >= len(text) or (text[at] == "\\" and at + 1 >= len(text)):
                self._at = len(text)
                raise _Ended
            if text[at] == '"':
                self._at = at + 1
                return
            yield

    def _read_name(self) -> Iterator[None]:
        """Read a name and the colon after it."""
        if self._next() != '"':
            raise _Invalid(self._at, "a name in quotes")
        start = self._at
        if not self._is_short_string():
            yield from self._string()
        self._name = unescaped(self._text[start : self._at])
        if self._next() != ":":
            raise _Invalid(self._at, "':'")
        self._at += 1

    def _counted(self) -> None:
        if self._counts:
            self._counts[-1] += 1
            self.document.count(self._open[-1], self._counts[-1])

    def _is_after_value(self) -> bool:
        """Read what follows a value or an opening bracket; True if that closed a container."""
        if not self._open:
            return False
        node = self._open[-1]
        closing = "}" if self.document.kinds[node] == Kind.OBJECT else "]"
        first = self._next()
        if first == closing:
            self._at += 1
            self.document.close(self._open.pop(), self._counts.pop(), self._at)
            self._counted()
            return True
        if self.document.end_of(node) > node + 1:  # not directly after the opening bracket
            if first != ",":
                raise _Invalid(self._at, f"',' or '{closing}'")
            self._at += 1
            if self._next() == closing:
                raise _Invalid(self._at, "a value" if closing == "]" else "a name in quotes")
        return False

    def _close_all(self) -> None:
        while self._open:
            self.document.close(self._open.pop(), self._counts.pop(), self._at)
            self._counted()
