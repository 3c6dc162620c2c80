"""The pattern of a pattern subscription, as a broker matches it: against names without domain and number of partition.

Patterns are RE2's, which match in linear time whatever a client sends. Pulsar falls back on Java's own expressions
where RE2 does not take one (looking ahead, back references); here that is left to the client, which filters or polls.
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
"""Characters of a text, times instructions of a pattern: half a second where RE2 has to follow all of them."""
_MEMORY_MAX: Final = 1 << 16
"""Bytes of a compiled pattern and its states; 2,000 instructions. As shipped, RE2 takes 128 times as much, and then a
minute for 100 KB of text."""
_SEPARATOR: Final = "://"


class PatternError(ValueError):
    """A pattern that this broker does not match; says why."""


class TopicsPattern:
    """A pattern that can be asked of names."""

    __slots__ = ("_expression", "_last", "text")

    def __init__(self, text: str) -> None:
        """``text`` without a domain. Raises PatternError."""
        self.text = text
        self._expression = None if text == ALL else linear(text)
        self._last = "", False
        """The name that was matched last: a topic's partitions come one after the other."""

    def matches(self, topic: str) -> bool:
        """Whether a topic, by its full name, is one of those that are meant; a partition is where its topic is."""
        if self._expression is None:
            return True
        if PARTITION_SUFFIX in topic:
            topic = str(parse_topic(topic).base)
        if topic != self._last[0]:
            # Of bytes re2 makes no places of letters, which nobody asks for: a third of the time.
            self._last = topic, self._expression.fullmatch(topic.partition(_SEPARATOR)[2].encode()) is not None
        return self._last[1]

    def of(self, topics: Iterable[str]) -> list[str]:
        """Those of the topics that match."""
        return [topic for topic in topics if self.matches(topic)]


def without_domain(pattern: str) -> str:
    """A pattern without its ``persistent://`` or ``non-persistent://``, behind a ``^`` too. Raises PatternError."""
    before, separator, behind = pattern.partition(_SEPARATOR)
    if not separator:
        return pattern
    for domain in sorted(DOMAINS, key=len, reverse=True):
        if before.endswith(domain):
            return before.removesuffix(domain) + behind
    raise PatternError(f"Does not support topic domain: {before}")


@lru_cache(maxsize=256)
def topics_pattern(pattern: str) -> TopicsPattern:
    """The pattern that a client means, whose domain does not matter. Raises PatternError."""
    return TopicsPattern(without_domain(pattern))


class LinearPattern:
    """A regular expression that is matched in time linear in the text, and in its own size, which is bounded."""

    __slots__ = ("_fullmatch", "_search", "most")

    def __init__(self, text: str) -> None:
        """Raises PatternError."""
        import re2  # with the first pattern: most boxes have none

        options = re2.Options()
        options.log_errors = False
        options.max_mem = _MEMORY_MAX
        options.never_capture = True  # nobody asks for groups, and finding them takes the slowest of its machines
        try:
            compiled = re2.compile(text, options)
        except re2.error as error:
            reason = error.args[0] if error.args else ""
            raise PatternError(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from None
        self._search, self._fullmatch = compiled.search, compiled.fullmatch
        self.most = STEPS_MAX // compiled.programsize
        """Characters of a text that are searched: the beginning. Five million for ten letters."""

    def search(self, text: str) -> object:
        """Where the pattern matches a part of a text; None where it does not."""
        return self._search(text if len(text) <= self.most else text[: self.most])

    def fullmatch(self, text: bytes) -> object:
        """The match of all of a text; None where it does not match, or is too long."""
        return self._fullmatch(text) if len(text) <= self.most else None


def linear(text: str) -> LinearPattern:
    """A regular expression that is matched in linear time. Raises PatternError."""
    return LinearPattern(text)
