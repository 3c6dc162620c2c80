"""Differences that are known and wanted: docs/COMPATIBILITY.md has each of them with its reason."""

from typing import Any, Final

from tests.differences.broker import NO_STATS

_COUNTS = "redelivery counts are kept with the cursor"

KNOWN: Final[dict[str, str]] = {
    "redelivery.disconnects: Shared: closed and back": _COUNTS,
    "redelivery.disconnects: Shared: connection ended and back": _COUNTS,
    "batches.indexes: Shared: one left, after a close": _COUNTS,
    "batches.indexes: Shared: again (2)": _COUNTS,
}
"""``theme.scenario`` or ``theme.scenario: step`` -> the reason. Steps that come twice have their number behind them."""

NOT_IMPLEMENTED: Final = 501
"""The status of the Admin API for what a version does not have."""


def reason_of(scenario: str, step: str, seen: tuple[Any, Any]) -> str:
    """Why a difference is wanted; empty if it is not known."""
    if any(isinstance(each, dict) and each.get(NO_STATS) == NOT_IMPLEMENTED for each in seen):
        return "stats of topics are not in this version"
    if NOT_IMPLEMENTED in seen:
        return "this part of the Admin API is not in this version"
    return KNOWN.get(f"{scenario}: {step}") or KNOWN.get(scenario, "")
