"""Members of YAML mappings as strings, numbers and lists, with the problems found on the way."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from pulsarbox.config.setting import did_you_mean
from pulsarbox.declaration.declaration import Declared
from pulsarbox.declaration.places import SHOWN_MAX as PROBLEMS_SHOWN_MAX
from pulsarbox.declaration.places import DeclarationProblem, Place
from pulsarbox.declaration.yaml_document import YamlList, YamlMap, YamlMember, YamlNode, YamlScalar
from pulsarbox.errors import PulsarBoxError

T = TypeVar("T")

SHOWN_MAX: Final = 80
"""Characters of a value that a problem repeats."""


class MemberReader:
    """Reads members, and collects a problem for each that is invalid instead of raising it."""

    def __init__(self) -> None:
        self.problems: list[DeclarationProblem] = []

    def problem(self, place: Place, text: str) -> None:
        """Add a problem."""
        self.problems.append(DeclarationProblem(place, text))

    def hint(self, name: str, known: Iterable[str]) -> str:
        """Return the known name closest to an unknown one, or what is expected; nothing beyond the problems shown.

        The comparison takes 0.3 ms, and a file with a wrong indentation may have thousands of unknown names.
        """
        names = tuple(known)
        if len(self.problems) >= PROBLEMS_SHOWN_MAX:
            return ""
        return did_you_mean(name, names) or f"; expected one of {', '.join(names)}"

    def members(self, node: YamlNode, what: str, known: Iterable[str] = ()) -> Mapping[str, YamlMember]:
        """Return the members of a mapping, none of null; with ``known``, only members of these names."""
        if isinstance(node, YamlScalar) and node.value is None:
            return {}
        if not isinstance(node, YamlMap):
            self.problem(node.place, f"{what}: expected a mapping, not {kind_of(node)}")
            return {}
        names = tuple(known)
        if not names:
            return node.members
        for name, member in node.members.items():
            if name not in names:
                self.problem(member.place, f"{what}: unknown key '{name[:SHOWN_MAX]}'{self.hint(name, names)}")
        return {name: member for name, member in node.members.items() if name in names}

    def text(self, member: YamlMember, what: str) -> Declared[str] | None:
        """Return a member that is a string; a number or boolean counts as written."""
        node = member.node
        if isinstance(node, YamlScalar) and node.value is not None:
            return Declared(node.text, member.place)
        self.problem(member.place, f"{what}: expected a string, not {kind_of(node)}")
        return None

    def texts(self, member: YamlMember, what: str) -> Declared[list[str]] | None:
        """Return a member that is a list of strings."""
        node = member.node
        if not isinstance(node, YamlList):
            self.problem(member.place, f"{what}: expected a list such as [a, b], not {kind_of(node)}")
            return None
        found = [self.text(YamlMember(each.place, each), f"each of {what}") for each in node.items]
        return Declared([each.value for each in found if each is not None], member.place)

    def text_map(self, node: YamlNode, what: str) -> dict[str, Declared[str]]:
        """Return a mapping of strings, such as properties."""
        found = {name: self.text(each, f"{what} '{name}'") for name, each in self.members(node, what).items()}
        return {name: each for name, each in found.items() if each is not None}

    def whole(self, member: YamlMember, what: str, least: int, most: int) -> int | None:
        """Return a member that is a whole number within bounds."""
        node = member.node
        value = node.value if isinstance(node, YamlScalar) else None
        if type(value) is int and least <= value <= most:
            return value
        shown = node.text[:SHOWN_MAX] if isinstance(node, YamlScalar) else kind_of(node)
        self.problem(member.place, f"{what}: expected a whole number from {least} to {most:,}, not {shown or 'null'}")
        return None

    def attempt(self, place: Place, what: str, work: Callable[[], T]) -> T | None:
        """Return the result of ``work``; its ValueError or broker error becomes a problem."""
        try:
            return work()
        except (PulsarBoxError, ValueError) as error:
            self.problem(place, f"{what}: {error}" if what else str(error))
            return None


def is_null(node: YamlNode) -> bool:
    """Return whether a node is null, which removes what it names."""
    return isinstance(node, YamlScalar) and node.value is None


def kind_of(node: YamlNode) -> str:
    """Describe the type of a node for an error message."""
    if isinstance(node, YamlScalar):
        kinds = {str: "a string", bool: "a boolean", type(None): "null"}
        return kinds.get(type(node.value), "a number")
    return "a list" if isinstance(node, YamlList) else "a mapping"
