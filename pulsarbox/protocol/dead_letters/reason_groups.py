"""Groups of dead letters by reason: those that differ only in the shape of the payload, together."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

_FOLDS: Final[Mapping[str, Callable[[Iterable[int]], int]]] = {
    "count": sum,
    "first": min,
    "returned": sum,
    "replays": max,
}
"""Fields that depend on all shapes of a reason. Only groups of a triage with Spark have the last two."""


class ReasonGroup(NamedTuple):
    """Groups of the Admin API, or of a triage, with the same reason, origin and subscription."""

    shapes: list[Mapping[str, Any]]
    """The groups, each with another shape of the payload; the largest first."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Reason, origin and subscription."""
        return _key(self.shapes[0])

    @property
    def row(self) -> dict[str, Any]:
        """The fields of a group for all shapes; ``fingerprint`` and ``shape`` are empty if there are several."""
        newest = max(self.shapes, key=lambda each: each["last"])
        several = {"fingerprint": "", "shape": ""} if len(self.shapes) > 1 else {}
        numbers = {name: fold(each[name] for each in self.shapes) for name, fold in _FOLDS.items() if name in newest}
        return {**newest, **several, **numbers}

    @property
    def filter(self) -> str:
        """The message filter that selects all messages with this reason, whatever their shape."""
        if len(self.shapes) == 1:
            return shape_filter(self.shapes[0])
        names = zip(("reason", "origin", "subscription"), self.key, strict=True)
        return " and ".join(_equals(name, value) for name, value in names)


def by_reason(groups: Iterable[Mapping[str, Any]]) -> list[ReasonGroup]:
    """Merge the groups of the Admin API that differ only in the shape. The largest come first."""
    found: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for each in groups:
        found.setdefault(_key(each), []).append(each)
    merged = [ReasonGroup(sorted(shapes, key=lambda each: -each["count"])) for shapes in found.values()]
    return sorted(merged, key=lambda each: -each.row["count"])


def shape_filter(group: Mapping[str, Any]) -> str:
    """Return the message filter that selects the messages of one group of the Admin API."""
    return f'fingerprint == "{group["fingerprint"]}"'


def _key(group: Mapping[str, Any]) -> tuple[str, str, str]:
    return group["reason"] or "", group["origin"] or "", group["subscription"] or ""


def _equals(name: str, value: str) -> str:
    """Return a comparison in ASCII; the groups do not distinguish missing from empty values."""
    if not value:
        return f'({name} == null or {name} == "")'
    return f"{name} == {json.dumps(value) if value.isascii() else ascii(value)}"
