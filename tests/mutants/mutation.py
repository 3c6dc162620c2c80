"""Mutants of a module's text: the mutation operators of mutmut, applied to the bodies of functions.

mutmut's runner is not used: it replaces each function by a trampoline to its mutants, and does not follow links. Code
with ``__slots__``, properties and measured stack depths does not survive a trampoline. Its operator for texts is
omitted, because most texts are messages that tests do not compare word by word.
"""

from collections.abc import Iterator, Sequence
from difflib import unified_diff
from operator import itemgetter
from random import Random
from typing import Final, NamedTuple

import libcst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators, operator_string

OPERATORS: Final = tuple((kind, operator) for kind, operator in mutation_operators if operator is not operator_string)
_FIXED: Final = (libcst.Annotation, libcst.Decorator, libcst.Import, libcst.ImportFrom)
"""Nodes that are not mutated."""


class Mutant(NamedTuple):
    """A change of one node of a text."""

    line: int
    """Line of the changed node, from 1."""
    text: str
    """The whole mutated text."""
    change: Sequence[str]
    """The changed lines of a unified diff: ``-`` and ``+``."""


class _Places(libcst.CSTVisitor):
    """Collects the nodes that operators change, with the mutated nodes, by the name of the operator."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, list[tuple[int, libcst.CSTNode, libcst.CSTNode]]] = {}
        self._depth = 0

    def on_visit(self, node: libcst.CSTNode) -> bool:
        """Collect the mutations of a node; its children are visited unless it is fixed."""
        if isinstance(node, _FIXED):
            return False
        if self._depth:
            line = self.get_metadata(PositionProvider, node).start.line
            for kind, operator in OPERATORS:
                if isinstance(node, kind):
                    for mutated in operator(node):
                        self.found.setdefault(operator.__name__, []).append((line, node, mutated))
        self._depth += isinstance(node, libcst.FunctionDef)
        return True

    def on_leave(self, original_node: libcst.CSTNode) -> None:
        """Record the end of a function."""
        self._depth -= isinstance(original_node, libcst.FunctionDef)


class Mutations:
    """The possible mutations of a module's text. Mutated texts are generated on demand, in 0.2 s each."""

    def __init__(self, text: str) -> None:
        self._text = text
        wrapper = MetadataWrapper(libcst.parse_module(text))
        places = _Places()
        wrapper.visit(places)
        self._module, self._found = wrapper.module, places.found

    def __len__(self) -> int:
        return sum(len(each) for each in self._found.values())

    def sample(self, random: Random) -> Mutant | None:
        """Return a random mutant, or None if the module has none. Operators are equally likely, then places.

        Arguments outnumber comparisons and flags by far, and almost any test detects a lost argument.
        """
        while len(self):
            operator = random.choice(sorted(self._found))
            places = self._found[operator]
            found = self._mutant(*places.pop(random.randrange(len(places))))
            if not places:
                del self._found[operator]
            if found is not None:
                return found
        return None

    def __iter__(self) -> Iterator[Mutant]:
        """Yield all mutants, in the order of lines."""
        places = [place for each in self._found.values() for place in each]
        for place in sorted(places, key=itemgetter(0)):
            found = self._mutant(*place)
            if found is not None:
                yield found

    def _mutant(self, line: int, node: libcst.CSTNode, mutated: libcst.CSTNode) -> Mutant | None:
        changed = self._module.deep_replace(node, mutated)
        assert isinstance(changed, libcst.Module)
        if changed.code == self._text or not _compiles(changed.code):
            return None
        return Mutant(line, changed.code, tuple(_changed_lines(self._text, changed.code)))


def _compiles(text: str) -> bool:
    try:
        compile(text, "mutant", "exec")
    except SyntaxError:
        return False
    return True


def _changed_lines(before: str, after: str) -> Iterator[str]:
    for line in unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""):
        if line[:1] in "+-" and line[:3] not in ("+++", "---"):
            yield line
