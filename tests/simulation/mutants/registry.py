"""The registry of planted bugs, each with the rules that may detect it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

Patch = Callable[[pytest.MonkeyPatch], None]


class Mutant(NamedTuple):
    """A planted bug, and the rules of which at least one must detect it."""

    patch: Patch
    rules: frozenset[str]
    seeds: tuple[int, ...] = ()
    """Seeds to run first."""
    first: int = 0
    """The lowest seed that can detect the bug."""


MUTANTS: dict[str, Mutant] = {}


def mutant(*rules: str, seeds: tuple[int, ...] = (), first: int = 0) -> Callable[[Patch], Patch]:
    """Register a bug with the rules that may detect it."""

    def register(patch: Patch) -> Patch:
        assert patch.__name__ not in MUTANTS, f"two bugs are called {patch.__name__}"
        MUTANTS[patch.__name__] = Mutant(patch, frozenset(rules), seeds, first)
        return patch

    return register
