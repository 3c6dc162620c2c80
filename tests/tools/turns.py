"""Tests of Spark that take turns by days: each takes a minute, and all tests together are to take ten.

``SPARK_TURN=all make test`` runs them all; ``SPARK_TURN=demo`` has one of them run, and those whose turn it is with it.
"""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import pytest

TURNS: Final = (
    ("points", "scaffolded"),
    ("rollup", "demo"),
    ("dlq-triage", "killed"),
    ("backfill", "export and offload"),
    ("ended",),
)
"""A day's each."""


def turn(day: int, environ: Mapping[str, str]) -> frozenset[str]:
    """What runs on a day, counted from whenever. Raises ValueError for a turn that does not exist."""
    wanted = environ.get("SPARK_TURN")
    if not wanted:
        return frozenset(TURNS[day % len(TURNS)])
    found = [each for each in TURNS if wanted in (*each, "all")]
    if not found:
        raise ValueError(
            f"SPARK_TURN={wanted}: it is all, or one of {', '.join(name for each in TURNS for name in each)}"
        )
    return frozenset(name for each in found for name in each)


TURN: Final = turn(datetime.now(UTC).toordinal(), os.environ)


def is_its_turn(name: str) -> bool:
    """Whether a test runs today."""
    return name in TURN


def in_turn(name: str) -> pytest.MarkDecorator:
    """Skips a test on the days of others."""
    reason = f"it is the turn of {' and '.join(sorted(TURN))}: SPARK_TURN=all runs all"
    return pytest.mark.skipif(not is_its_turn(name), reason=reason)
