"""Long computations as generators that the caller advances in time slices.

A generator of ``Steps`` yields the number of steps taken since its last yield. A step takes about one microsecond.
"""

from collections.abc import Generator
from types import GeneratorType
from typing import Any, Final, TypeVar

T = TypeVar("T")
Steps = Generator[int, None, T]
"""A computation that returns a ``T``."""

CHUNK: Final = 100
"""Steps between two points at which a computation can be suspended."""


class TooManyStepsError(Exception):
    """A computation exceeded its step limit."""


def completed(steps: Steps[T]) -> T:
    """Run a computation to completion and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def recursive(first: Generator[Any, Any, T], most: int, depth: int) -> Steps[T]:
    """Run a recursive computation on an explicit stack.

    Each call is a generator. It yields another call's generator to receive its result, a number of additional steps
    that it is about to take, or any other value, which it receives back. Raises TooManyStepsError beyond ``most``
    steps, and RecursionError beyond ``depth`` nested calls.
    """
    stack: list[Generator[Any, Any, Any]] = [first]
    value: Any = None
    count, told = 0, 0
    while stack:
        count += 1
        if count - told >= CHUNK:
            if count > most:
                raise TooManyStepsError
            yield count - told
            told = count
        try:
            value = stack[-1].send(value)
        except StopIteration as end:
            stack.pop()
            value = end.value
        else:
            if isinstance(value, GeneratorType):
                if len(stack) >= depth:
                    raise RecursionError
                stack.append(value)
                value = None
            elif isinstance(value, int):
                count += value
                value = None
    result: T = value
    return result


def bounded(steps: Steps[T], most: int) -> Steps[T]:
    """Run a computation, raising TooManyStepsError after more than ``most`` steps."""
    taken = 0
    while True:
        try:
            count = next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        taken += count
        if taken > most:
            raise TooManyStepsError
        yield count
