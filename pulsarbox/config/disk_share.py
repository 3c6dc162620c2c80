"""Sizes that may be a share of a disk: ``10%``, ``20G``, ``0``, ``-1`` for no limit."""

import re
from functools import lru_cache
from typing import Final, NamedTuple

FORMS: Final = "10%, 500M, 20G, 1.5T, a number of bytes, 0, or -1 for no limit"
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_FORM: Final = re.compile(r"(\d{1,18}(?:\.\d{1,6})?)(%|[KMGT]?)", re.IGNORECASE)


class DiskShare(NamedTuple):
    """A size, absolute or relative. Both are None where there is no limit."""

    size: int | None
    """Bytes."""
    percent: float | None

    def of(self, capacity: int) -> int | None:
        """Bytes, where the disk has ``capacity``; None for no limit, and for a share while the capacity is unknown
        (0)."""
        if self.percent is None:
            return self.size
        if self.percent and not capacity:
            return None
        return int(capacity * self.percent / 100)

    @property
    def is_nothing(self) -> bool:
        """Whether the size is zero."""
        return self.size == 0 or self.percent == 0


@lru_cache(16)
def disk_share(text: str) -> DiskShare:
    """Parse a size. Raises ValueError, in words."""
    if text.strip() == "-1":
        return DiskShare(None, None)
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise ValueError(f'expected {FORMS}, not "{text}"')
    number, unit = found.groups()
    if unit != "%":
        return DiskShare(int(float(number) * _UNITS[unit.upper()]), None)
    if float(number) > 100:
        raise ValueError(f'expected at most 100%, not "{text}"')
    return DiskShare(None, float(number))
