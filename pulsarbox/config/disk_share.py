"""Sizes that may be relative to a disk: ``10%``, ``20G``, ``0``, ``-1`` for no limit."""

import re
from functools import lru_cache
from typing import Final, NamedTuple

FORMS: Final = "10%, 500M, 20G, 1.5T, a number of bytes, 0, or -1 for no limit"
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_FORM: Final = re.compile(r"(\d{1,18}(?:\.\d{1,6})?)(%|[KMGT]?)", re.IGNORECASE)


class DiskShare(NamedTuple):
    """An absolute or relative size. Both fields are None if there is no limit."""

    size: int | None
    """Bytes."""
    percent: float | None

    def of(self, capacity: int) -> int | None:
        """Return the size in bytes on a disk with ``capacity`` bytes; None for no limit, or for a relative size while
        the capacity is unknown (0)."""
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
    """Parse a size. Raises ValueError with a readable message."""
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
