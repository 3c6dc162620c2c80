"""The modules of the broker form no import cycles, including imports for type checkers.

A part that imports its owner only for annotations still depends on all of it. Python detects no cycle in this case, so
this test checks every import. Parts declare the required interface of their owner in a protocol.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import grimp
import pytest

BROKER: Final = "pulsarbox.broker"
ALLOWED: Final = [
    # Command handlers receive the connection, and access the broker through it.
    {"broker", "connection.cnx"},
]
"""Modules of the broker that may import each other."""

Imports = Mapping[str, set[str]]


def imports_of_the_broker() -> dict[str, set[str]]:
    """Return the modules of the broker, each with the broker modules that it imports anywhere."""
    graph = grimp.build_graph("pulsarbox", exclude_type_checking_imports=False, cache_dir=None)
    modules = {name for name in graph.modules if name.startswith(f"{BROKER}.")}
    return {name: modules & graph.find_modules_directly_imported_by(name) for name in modules}


def cycles(imports: Imports) -> Iterator[set[str]]:
    """Yield the maximal sets of two or more modules that are all reachable from each other."""
    order = list(_by_end(imports))
    backwards: dict[str, set[str]] = {name: set() for name in imports}
    for name, imported in imports.items():
        for each in imported:
            backwards[each].add(name)
    seen: set[str] = set()
    for name in reversed(order):
        found = set(_reached(backwards, name, seen))
        if len(found) > 1:
            yield found


def _by_end(imports: Imports) -> Iterator[str]:
    """Yield all modules in postorder of a depth-first search."""
    seen: set[str] = set()
    for name in imports:
        yield from _reached(imports, name, seen)


def _reached(imports: Imports, start: str, seen: set[str]) -> Iterator[str]:
    """Yield the unvisited modules reachable from a module, in postorder."""
    if start in seen:
        return
    seen.add(start)
    path = [(start, iter(imports[start]))]
    while path:
        name, left = path[-1]
        following = next((each for each in left if each not in seen), None)
        if following is None:
            path.pop()
            yield name
        else:
            seen.add(following)
            path.append((following, iter(imports[following])))


@pytest.mark.parametrize(
    ("imports", "found"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"b"}, "b": {"a", "c"}, "c": set()}, [{"a", "b"}]),
        ({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}}, [{"a", "b", "c"}, {"d", "e"}]),
        ({"a": {"c"}, "b": {"c"}, "c": {"d"}, "d": {"b"}}, [{"b", "c", "d"}]),
    ],
)
def test_cycles_are_found(imports: dict[str, set[str]], found: list[set[str]]) -> None:
    assert sorted(map(sorted, cycles(imports))) == sorted(map(sorted, found))


def test_imports_for_type_checkers_are_seen() -> None:
    assert f"{BROKER}.broker" in imports_of_the_broker()[f"{BROKER}.connection.cnx"]


def test_the_broker_has_no_other_cycles() -> None:
    names = ({name.removeprefix(f"{BROKER}.") for name in found} for found in cycles(imports_of_the_broker()))
    assert [sorted(found) for found in names if not any(found <= allowed for allowed in ALLOWED)] == []
