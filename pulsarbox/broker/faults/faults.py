"""The rules of a box, in their order, and how often each has struck."""

import dataclasses
from typing import Any

from pulsarbox.broker.faults.rule import Occasion, Rule
from pulsarbox.errors import NotFound


class Counted:
    """A rule, and what became of it."""

    def __init__(self, number: int, rule: Rule) -> None:
        self.number = number
        """Its name; never given twice."""
        self.rule = rule
        self.matched = 0
        """Commands that it was about."""
        self.fired = 0
        """Of these, those that it has struck."""

    def document(self) -> dict[str, Any]:
        """As JSON: what was given, and the counts."""
        given = {
            field.name: value
            for field in dataclasses.fields(Rule)
            if (value := getattr(self.rule, field.name)) != field.default or field.name in ("action", "at")
        }
        if self.rule.action == "error":
            given["error"] = self.rule.error
        return {"id": self.number, **given, "matched": self.matched, "fired": self.fired}


class Faults:
    """What goes wrong on purpose."""

    def __init__(self) -> None:
        self.rules: dict[int, Counted] = {}
        """By their numbers, in the order in which they are asked."""
        self._count = 0

    def add(self, rule: Rule) -> Counted:
        """A rule, behind those that there are."""
        self._count += 1
        counted = self.rules[self._count] = Counted(self._count, rule)
        return counted

    def get(self, number: int) -> Counted:
        """A rule. Raises NotFound."""
        counted = self.rules.get(number)
        if counted is None:
            raise NotFound(f"There is no fault {number}")
        return counted

    def remove(self, number: int) -> Counted:
        """Take a rule away; what it had been. Raises NotFound."""
        counted = self.get(number)
        del self.rules[number]
        return counted

    def clear(self) -> None:
        """Take all away. What they have delayed still comes."""
        self.rules.clear()

    def decide(self, occasion: Occasion) -> Rule | None:
        """What happens to a command: the first rule that strikes. Those behind it do not count it."""
        for counted in self.rules.values():
            if counted.rule.fits(occasion):
                counted.matched += 1
                if counted.rule.strikes(counted.matched):
                    counted.fired += 1
                    return counted.rule
        return None
