"""The result of a check of `pulsarbox doctor`."""

from typing import Final, NamedTuple

OK: Final = "ok"
WARN: Final = "warn"
FAIL: Final = "fail"


class Check(NamedTuple):
    """Result of one check."""

    name: str
    state: str
    text: str
    advice: str = ""
