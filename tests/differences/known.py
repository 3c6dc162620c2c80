"""Differences that are known and wanted: docs/COMPATIBILITY.md has each of them with its reason."""

from typing import Final

KNOWN: Final[dict[str, str]] = {}
"""``theme.scenario`` or ``theme.scenario: step`` -> the reason."""
