"""The list of planted bugs, each with the rules of which one has to notice it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

Patch = Callable[[pytest.MonkeyPatch], None]


class Mutant(NamedTuple):
    """A bug, and the rules of which one has to notice it."""

    patch: Patch
    rules: frozenset[str]
    seeds: tuple[int, ...] = ()
    """Tried first."""
    first: int = 0
    """The first of the seeds that may notice it."""


MUTANTS: dict[str, Mutant] = {}


def mutant(*rules: str, seeds: tuple[int, ...] = (), first: int = 0) -> Callable[[Patch], Patch]:
    """Register a bug."""

    def register(patch: Patch) -> Patch:
        assert patch.__name__ not in MUTANTS, f"two bugs are called {patch.__name__}"
        MUTANTS[patch.__name__] = Mutant(patch, frozenset(rules), seeds, first)
        return patch

    return register
