"""Topic patterns of pattern subscriptions, matched against names without domain and partition index.

Patterns use RE2, which matches in linear time whatever a client sends. For syntax that RE2 lacks (lookahead, back
references) Pulsar falls back on Java's regular expressions; here it is left to the client, which filters or polls.
Source: https://pulsar.apache.org/docs/4.2.x/reference-configuration-broker/ (topicsPatternRegexImplementation).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pulsarbox.names import DOMAINS, PARTITION_SUFFIX, parse_topic

if TYPE_CHECKING:
    from collections.abc import Iterable

ALL: Final = ".*"
STEPS_MAX: Final = 50_000_000
"""Limit of text characters times pattern instructions: half a second if RE2 has to follow all of them."""
_MEMORY_MAX: Final = 1 << 16
"""Bytes of a compiled pattern and its states: 2,000 instructions. RE2's default is 128 times as much, which takes a
minute for 100 KB of text."""
_SEPARATOR: Final = "://"


class PatternError(ValueError):
    """A pattern that this broker does not support; the message gives the reason."""


class TopicsPattern:
    """A compiled topic pattern."""

    __slots__ = ("_expression", "_last", "text")

    def __init__(self, text: str) -> None:
        """``text`` has no domain. Raises PatternError."""
        self.text = text
        self._expression = None if text == ALL else linear(text)
        self._last = "", False
        """The last topic and its result: partitions of a topic are matched one after another."""

    def matches(self, topic: str) -> bool:
        """Return whether a full topic name matches; a partition matches if its partitioned topic does."""
        if self._expression is None:
            return True
        if PARTITION_SUFFIX in topic:
            topic = str(parse_topic(topic).base)
        if topic != self._last[0]:
            # With bytes re2 does not compute character offsets: a third of the time.
            self._last = topic, self._expression.fullmatch(topic.partition(_SEPARATOR)[2].encode()) is not None
        return self._last[1]

    def of(self, topics: Iterable[str]) -> list[str]:
        """Return the matching topics."""
        return [topic for topic in topics if self.matches(topic)]


def without_domain(pattern: str) -> str:
    """Strip ``persistent://`` or ``non-persistent://`` from a pattern, also after a ``^``. Raises PatternError."""
    before, separator, behind = pattern.partition(_SEPARATOR)
    if not separator:
        return pattern
    for domain in sorted(DOMAINS, key=len, reverse=True):
        if before.endswith(domain):
            return before.removesuffix(domain) + behind
    raise PatternError(f"Does not support topic domain: {before}")


@lru_cache(maxsize=256)
def topics_pattern(pattern: str) -> TopicsPattern:
    """Compile a client's pattern, ignoring its domain. Raises PatternError."""
    return TopicsPattern(without_domain(pattern))


class LinearPattern:
    """A regular expression of bounded size, matched in time linear in the text and in its own size."""

    __slots__ = ("_fullmatch", "_search", "most")

    def __init__(self, text: str) -> None:
        """Compile ``text``. Raises PatternError."""
        import re2  # deferred: most boxes never use a pattern

        options = re2.Options()
        options.log_errors = False
        options.max_mem = _MEMORY_MAX
        options.never_capture = True  # groups are not used, and capturing them needs RE2's slowest engine
        try:
            compiled = re2.compile(text, options)
        except re2.error as error:
            reason = error.args[0] if error.args else ""
            raise PatternError(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from None
        self._search, self._fullmatch = compiled.search, compiled.fullmatch
        self.most = STEPS_MAX // compiled.programsize
        """Characters of a text that are searched, from its start. Five million for a pattern of ten letters."""

    def search(self, text: str) -> object:
        """Return a match in ``text``, or None."""
        return self._search(text if len(text) <= self.most else text[: self.most])

    def fullmatch(self, text: bytes) -> object:
        """Return the match of the whole text; None if it does not match or is too long."""
        return self._fullmatch(text) if len(text) <= self.most else None


def linear(text: str) -> LinearPattern:
    """Compile a regular expression that is matched in linear time. Raises PatternError."""
    return LinearPattern(text)
