"""What a check finds."""

from typing import Any, Final, NamedTuple

DAMAGE: Final = "damage"
WARNING: Final = "warning"


class Finding(NamedTuple):
    """One thing that is not as it should be: where, what it means, what to do."""

    severity: str
    where: str
    what: str
    advice: str
    ledger: int = -1
    entry: int = -1
    topic: str = ""

    def line(self) -> list[Any]:
        """As a child says it."""
        return ["finding", *self]

    def document(self) -> dict[str, Any]:
        """For JSON: ledger, entry and topic only where they are known."""
        document = self._asdict()
        for key in ("ledger", "entry"):
            if document[key] < 0:
                del document[key]
        if not self.topic:
            del document["topic"]
        return document


def damage(where: str, what: str, advice: str, ledger: int = -1, entry: int = -1) -> Finding:
    """Something is lost, or cannot be relied on."""
    return Finding(DAMAGE, where, what, advice, ledger, entry)


def warning(where: str, what: str, advice: str) -> Finding:
    """Nothing is lost, but somebody should know."""
    return Finding(WARNING, where, what, advice)
