"""Places in a file, and the errors of a declaration that name them."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from pulsarbox.errors import PreconditionFailed

SHOWN_MAX: Final = 20
"""Problems that an error lists; of further ones it has the number."""


class Place(NamedTuple):
    """A line of a file."""

    file: str
    line: int
    """Counted from 1."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class DeclarationProblem(NamedTuple):
    """A reason why a declaration cannot be applied: what is wrong, and what to do."""

    place: Place
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


class InvalidDeclaration(PreconditionFailed):
    """A declaration is invalid, or contradicts what exists. Nothing has been changed. Lists its problems by line."""

    def __init__(self, problems: Sequence[DeclarationProblem]) -> None:
        self.problems = tuple(sorted(problems))
        more = len(self.problems) - SHOWN_MAX
        lines = [str(each) for each in self.problems[:SHOWN_MAX]]
        super().__init__("\n".join([*lines, *([f"and {more} more problems"] if more > 0 else [])]))
