"""Lists of callbacks between parts of the broker that need each other.

The part that reports a change receives the list when it is built; the parts that react to the change add themselves
when they are built.
"""

from collections.abc import Callable
from typing import Generic, ParamSpec

P = ParamSpec("P")


class Callbacks(Generic[P]):
    """The callbacks for one kind of change, called in the order in which they were added."""

    __slots__ = ("_callbacks",)

    def __init__(self) -> None:
        self._callbacks: list[Callable[P, object]] = []

    def add(self, callback: Callable[P, object]) -> None:
        """Add a callback for all later changes."""
        self._callbacks.append(callback)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call all callbacks; an error of one is raised and skips the later ones."""
        for callback in self._callbacks:
            callback(*args, **kwargs)
