"""Reader of Pulsar's broker.conf and standalone.conf, so that existing files work unchanged."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pulsarbox.config.setting import ConfigError, GivenValue, did_you_mean
from pulsarbox.config.settings import settings_by_name

SUFFIXES: Final = (".conf", ".properties")

# Java's rules: the key ends at the first unescaped =, : or blank.
_KEY_AND_VALUE: Final = re.compile(r"(?P<key>(?:\\.|[^\\=:\s])*)\s*[=:]?\s*(?P<value>.*)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:u(?P<code>[0-9a-fA-F]{4})|(?P<char>.))", re.DOTALL)
_ESCAPED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read(path: Path, text: str) -> tuple[list[GivenValue], list[str]]:
    """Return the values of known settings, and a warning for each key that has no effect.

    A key without a value is ignored, as in Pulsar's templates, except for a port, which it disables. Raises
    ``ConfigError`` for an invalid value.
    """
    given, warnings, problems = read_all(path, text)
    if problems:
        raise problems[0]
    return given, warnings


def read_all(path: Path, text: str) -> tuple[list[GivenValue], list[str], list[ConfigError]]:
    """Return the same as ``read``, and the errors of invalid values instead of raising the first."""
    given: list[GivenValue] = []
    warnings: list[str] = []
    problems: list[ConfigError] = []
    for number, key, value in _properties(text):
        where = f"{path}:{number}"
        row = settings_by_name().get(key)
        if row is None:
            warnings.append(f"{where}: {key}: has no effect here{did_you_mean(key, settings_by_name(), cutoff=0.85)}")
        elif value or row.facts.empty is not None:
            try:
                given.append(GivenValue(key, row.parse(value), where))
            except ValueError as error:
                problems.append(ConfigError(where, key, str(error)))
        elif row.default != "":
            warnings.append(f"{where}: {key}: no value given; the default {row.default} applies")
    return given, warnings, problems


def pairs(text: str) -> Iterator[tuple[str, str]]:
    """Iterate over (key, value) of a properties file in order; keys may repeat."""
    return ((key, value) for _, key, value in _properties(text))


def _properties(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield (line, key, value) of a Java properties file."""
    for number, line in _logical_lines(text):
        match = _KEY_AND_VALUE.fullmatch(line)
        assert match is not None, "the expression matches every line"
        yield number, _unescaped(match["key"]), _unescaped(match["value"]).strip()


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines without comments; a line that ends in an odd number of backslashes continues on the next."""
    pending, first = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not pending:
            if not line or line[0] in "#!":
                continue
            first = number
        pending += line
        if (len(pending) - len(pending.rstrip("\\"))) % 2:
            pending = pending[:-1]
            continue
        yield first, pending
        pending = ""
    if pending:
        yield first, pending


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        if match["code"]:
            return chr(int(match["code"], 16))
        return _ESCAPED.get(match["char"], match["char"])

    return _ESCAPE.sub(character, text)
