"""Division of a workload's steps into lives: the store is recovered, used, and closed."""

from collections.abc import Iterator
from random import Random


def lives(steps: int, dice: Random) -> Iterator[int]:
    """Yield the number of steps of each life, drawn just before it."""
    while steps > 0:
        life = min(steps, dice.randint(15, 60))
        yield life
        steps -= life
