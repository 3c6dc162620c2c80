"""Reader of pulsarbox.toml, which rejects unknown keys and keys in the wrong table."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pulsarbox.config.setting import ConfigError, GivenValue, did_you_mean, setting_hint
from pulsarbox.config.settings import settings_by_name
from pulsarbox.config.tables import TABLES

_HEADER: Final = re.compile(r"\s*\[\s*(?P<table>[^\[\]]+?)\s*\]\s*(?:#.*)?$")
_PARTS_MAX: Final = 2
"""A setting is a key in a table."""
_KEY: Final = re.compile(r"\s*(?P<key>[\w.\-\s\"']+?)\s*=")


def read(path: Path, text: str) -> list[GivenValue]:
    """Return the values in the file. Raises ``ConfigError`` with file and line for the first invalid key or value."""
    given, problems = read_all(path, text)
    if problems:
        raise problems[0]
    return given


def read_all(path: Path, text: str) -> tuple[list[GivenValue], list[ConfigError]]:
    """Return the values in the file, and its errors. Raises ``ConfigError`` if it is not TOML."""
    import tomllib  # deferred: not needed without a configuration file

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        raise ConfigError(f"{path}:{line[1]}" if line else str(path), "", f"not TOML: {error}") from None
    given: list[GivenValue] = []
    problems: list[ConfigError] = []
    places = _places(text)
    for table, key, value in _entries(document):
        try:
            given.append(_given(table, key, value, _where(path, places, table, key)))
        except ConfigError as error:
            problems.append(error)
    return given, problems


def _entries(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield (table, key, value) of everything in the file; the table is empty for a top-level key."""
    for name, content in document.items():
        if not isinstance(content, dict):
            yield "", name, content
        elif name not in TABLES:
            yield name, "", content
        else:
            for key, value in content.items():
                yield name, key, value


def _given(table: str, key: str, value: Any, where: str) -> GivenValue:
    if table and table not in TABLES:
        raise ConfigError(where, f"[{table}]", f"no such table{did_you_mean(table, TABLES)}")
    row = settings_by_name().get(key)
    if row is None:
        raise ConfigError(where, key, f"no such setting{setting_hint(key, settings_by_name())}")
    if row.table != table:
        here = f"[{table}]" if table else "the top of the file"
        raise ConfigError(where, key, f"belongs in the table [{row.table}], not in {here}")
    try:
        return GivenValue(key, row.read(value), where)
    except ValueError as error:
        raise ConfigError(where, key, str(error)) from None


def _where(path: Path, places: Mapping[tuple[str, ...], int], table: str, key: str) -> str:
    """Return ``file:line`` of a key as a best effort: tomllib does not report positions."""
    for wanted in (tuple(part for part in (table, key) if part), (table,)):
        if wanted in places:
            return f"{path}:{places[wanted]}"
    return str(path)


def _places(text: str) -> dict[tuple[str, ...], int]:
    """Return the first line of each table and key."""
    found: dict[tuple[str, ...], int] = {}
    for name, line in _lines(text):
        for length in range(min(len(name), _PARTS_MAX) + 1):
            found.setdefault(name[:length], line)
    return found


def _lines(text: str) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield every header and key with its line. Multi-line strings could confuse it; no setting has one."""
    current: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            current = _parts(header["table"])
            yield current, number
        elif key := _KEY.match(line):
            yield current + _parts(key["key"]), number


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))
