"""Differences between two commands of the Admin API: exit codes, or fields of the output."""

from collections.abc import Iterator
from typing import Any, Final

ABSENT: Final = "no such field"


def fields(a: dict[str, Any], b: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Return (field, first value, second value) of each difference. Different exit codes are the only difference
    reported.
    """
    if a["exit"] != b["exit"]:
        yield "", f"exit {a['exit']}: {_said(a)}", f"exit {b['exit']}: {_said(b)}"
        return
    if a["err"] != b["err"]:
        yield ": stderr", a["err"], b["err"]
    yield from _different("", a["out"], b["out"])


def _said(told: dict[str, Any]) -> str:
    return str(told["err"] or told["out"])


def _different(path: str, a: Any, b: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(a, dict) and isinstance(b, dict):
        for key in [*a, *(key for key in b if key not in a)]:
            yield from _different(f"{path}.{key}", a.get(key, ABSENT), b.get(key, ABSENT))
    elif a != b:
        yield f": {path.removeprefix('.') or 'stdout'}", a, b
