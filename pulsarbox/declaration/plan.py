"""The difference between a declaration and a broker, as steps in the order in which they succeed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from pulsarbox.declaration.admin_calls import AdminCall
from pulsarbox.declaration.declaration import TokenDeclaration
from pulsarbox.declaration.places import DeclarationProblem, Place

DONE_FORMS: Final[Mapping[str, str]] = {
    "create": "created",
    "set": "set",
    "unset": "unset",
    "grant": "granted",
    "revoke": "revoked",
    "grow": "grew",
    "complete": "completed",
    "register": "registered",
    "delete": "deleted",
    "write": "wrote",
}
"""Verbs of steps, with the form for a step that is done."""


class Step(NamedTuple):
    """One change of a broker, or a token to write."""

    verb: str
    what: str
    """Kind of the object, or setting and kind: ``topic``, ``retention of namespace``."""
    name: str
    place: Place | None = None
    """Where it is declared; None for the removal of what is not."""
    calls: tuple[AdminCall, ...] = ()
    present: Any = None
    declared: Any = None
    settled: tuple[int, ...] = ()
    """Error statuses that mean that another client has made the change meanwhile."""
    token: TokenDeclaration | None = None

    def __str__(self) -> str:
        return f"{self.verb} {self.what} {self.name}"

    @property
    def done(self) -> str:
        """The step as a report of its success."""
        return f"{DONE_FORMS[self.verb]} {self.what} {self.name}"


@dataclass(slots=True)
class StepPlan:
    """Steps, and the reasons why they cannot be taken."""

    steps: list[Step] = field(default_factory=list)
    problems: list[DeclarationProblem] = field(default_factory=list)

    def refuse(self, place: Place, text: str) -> None:
        """Add a problem."""
        self.problems.append(DeclarationProblem(place, text))
