"""A correct selector plugin."""

from typing import Any


class ByTurns:
    """Selector that assigns slots to the connected consumers in turn."""

    name, api = "by-turns", 1

    def __init__(self) -> None:
        self.here: list[Any] = []

    def divide(self) -> "ByTurns":
        """See KeyDivision."""
        return type(self)()

    def add(self, consumer: Any) -> None:
        """See Selector."""
        self.here.append(consumer)

    def remove(self, consumer: Any) -> None:
        """See Selector."""
        self.here.remove(consumer)

    def select(self, slot: int) -> Any:
        """See Selector."""
        return self.here[slot % len(self.here)]
