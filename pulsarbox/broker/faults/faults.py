"""The ordered fault rules of a box, with their hit counts."""

import dataclasses
from typing import Any

from pulsarbox.broker.faults.rule import Occasion, Rule
from pulsarbox.errors import NotFound


class Counted:
    """A rule with its counts."""

    def __init__(self, number: int, rule: Rule) -> None:
        self.number = number
        """Rule ID; never reused."""
        self.rule = rule
        self.matched = 0
        """Number of matching commands."""
        self.fired = 0
        """Number of matching commands that the fault was applied to."""

    def document(self) -> dict[str, Any]:
        """Return the rule and its counts as JSON."""
        given = {
            field.name: value
            for field in dataclasses.fields(Rule)
            if (value := getattr(self.rule, field.name)) != field.default or field.name in ("action", "at")
        }
        if self.rule.action == "error":
            given["error"] = self.rule.error
        return {"id": self.number, **given, "matched": self.matched, "fired": self.fired}


class Faults:
    """The fault rules of a box."""

    def __init__(self) -> None:
        self.rules: dict[int, Counted] = {}
        """Rules by number, in order of evaluation."""
        self._count = 0

    def add(self, rule: Rule) -> Counted:
        """Append a rule."""
        self._count += 1
        counted = self.rules[self._count] = Counted(self._count, rule)
        return counted

    def get(self, number: int) -> Counted:
        """Return a rule. Raises NotFound."""
        counted = self.rules.get(number)
        if counted is None:
            raise NotFound(f"Fault {number} not found")
        return counted

    def remove(self, number: int) -> Counted:
        """Remove a rule and return it. Raises NotFound."""
        counted = self.get(number)
        del self.rules[number]
        return counted

    def clear(self) -> None:
        """Remove all rules. Commands already delayed are still delivered."""
        self.rules.clear()

    def decide(self, occasion: Occasion) -> Rule | None:
        """Return the first rule that applies to a command, if any. Later rules do not count the command."""
        for counted in self.rules.values():
            if counted.rule.fits(occasion):
                counted.matched += 1
                if counted.rule.strikes(counted.matched):
                    counted.fired += 1
                    return counted.rule
        return None
