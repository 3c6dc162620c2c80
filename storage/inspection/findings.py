"""Findings of an integrity check."""

from typing import Any, Final, NamedTuple

DAMAGE: Final = "damage"
WARNING: Final = "warning"


class Finding(NamedTuple):
    """One problem: where, what it means, and advice."""

    severity: str
    where: str
    what: str
    advice: str
    ledger: int = -1
    entry: int = -1
    topic: str = ""

    def line(self) -> list[Any]:
        """Return the finding as a line of a child process."""
        return ["finding", *self]

    def document(self) -> dict[str, Any]:
        """Return the finding as JSON; ledger, entry and topic only if known."""
        document = self._asdict()
        for key in ("ledger", "entry"):
            if document[key] < 0:
                del document[key]
        if not self.topic:
            del document["topic"]
        return document


def damage(where: str, what: str, advice: str, ledger: int = -1, entry: int = -1) -> Finding:
    """Return a finding about lost or unreliable data."""
    return Finding(DAMAGE, where, what, advice, ledger, entry)


def warning(where: str, what: str, advice: str) -> Finding:
    """Return a finding without data loss."""
    return Finding(WARNING, where, what, advice)
