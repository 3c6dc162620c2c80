"""Quoting of names and paths that contain characters special to Spark. Pure."""

import re
from pathlib import Path
from typing import Final

_PATTERN: Final = re.compile(r"([\[\]{}*?\\])")


def quoted(name: str) -> str:
    """Quote a column name for an expression, where a bare dot would access a struct field."""
    return "`" + name.replace("`", "``") + "`"


def unglobbed(path: str | Path) -> str:
    """Escape the glob characters of a path to read."""
    return _PATTERN.sub(r"\\\1", str(path))
