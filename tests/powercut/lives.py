"""How the steps of a workload fall into lives: the store is recovered, used, and closed."""

from collections.abc import Iterator
from random import Random


def lives(steps: int, dice: Random) -> Iterator[int]:
    """How many of the steps each life has; the dice are thrown before each."""
    while steps > 0:
        life = min(steps, dice.randint(15, 60))
        yield life
        steps -= life
