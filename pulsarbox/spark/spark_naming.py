"""Names and paths as Spark takes them, which takes some of their characters for more than that. Pure."""

import re
from pathlib import Path
from typing import Final

_PATTERN: Final = re.compile(r"([\[\]{}*?\\])")


def quoted(name: str) -> str:
    """A column's name in an expression: a dot in it is no step into a record."""
    return "`" + name.replace("`", "``") + "`"


def unglobbed(path: str | Path) -> str:
    """A path that is read: it is no pattern."""
    return _PATTERN.sub(r"\\\1", str(path))
