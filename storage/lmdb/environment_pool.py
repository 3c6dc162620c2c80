"""A bounded pool of open environments by number, shared by threads."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from pulsarbox.errors import PersistenceError


class EnvironmentGone(PersistenceError):
    """The environment was removed: its live content has been moved."""


class _Closable(Protocol):
    def close(self) -> None: ...


_T = TypeVar("_T", bound=_Closable)


class Pool(Generic[_T]):
    """Open environments by number: opened on first use; above the limit, the least recently used one is closed."""

    def __init__(self, limit: int, opener: Callable[[int], _T]) -> None:
        self._limit = limit
        self._opener = opener
        self._open: OrderedDict[int, _T] = OrderedDict()
        self._users: dict[int, int] = {}
        self._opening: set[int] = set()
        self._kept: set[int] = set()
        self._gone: set[int] = set()
        self._changed = threading.Condition()
        self._closed = False

    @contextmanager
    def using(self, number: int) -> Iterator[_T]:
        """Return the environment, which stays open inside the block.

        Raises EnvironmentGone if it was retired, and any exception of opening it.
        """
        with self._changed:
            if number in self._gone:  # it may still be open, but a new user would delay its removal
                raise EnvironmentGone(f"environment {number} no longer exists")
            one = self._open.get(number)
            if one is None:
                one = self._open_now(number)
            self._open.move_to_end(number)
            self._users[number] = self._users.get(number, 0) + 1
        try:
            yield one
        finally:
            with self._changed:
                self._users[number] -= 1
                if not self._users[number]:
                    del self._users[number]
                    self._changed.notify_all()

    def numbers(self) -> list[int]:
        """Return the numbers of the open environments."""
        with self._changed:
            return list(self._open)

    def pin(self, number: int) -> None:
        """Exempt an environment from eviction: opening it again is expensive."""
        with self._changed:
            self._kept.add(number)

    def release(self, number: int) -> None:
        """Allow eviction of an environment."""
        with self._changed:
            self._kept.discard(number)

    def drop(self, number: int) -> None:
        """Close an environment once it is unused; the next use opens it again."""
        with self._changed:
            self._drop(number)

    def replace(self, number: int, act: Callable[[], None]) -> None:
        """Close an environment once it is unused, and replace its files before the next use."""
        with self._changed:
            self._drop(number)
            act()

    def retire(self, number: int) -> None:
        """Close an environment for good once it is unused: its files may be removed."""
        with self._changed:
            self._gone.add(number)
            self._kept.discard(number)
            self._drop(number)

    def close(self) -> None:
        """Close all environments."""
        with self._changed:
            self._closed = True
            while self._open:
                self._open.popitem()[1].close()

    def _drop(self, number: int) -> None:
        self._changed.wait_for(lambda: number not in self._users and number not in self._opening)
        one = self._open.pop(number, None)
        if one is not None:
            one.close()

    def _open_now(self, number: int) -> _T:
        """Open an environment without blocking users of others: opening is as slow as the disk."""
        self._changed.wait_for(lambda: number not in self._opening)
        if self._closed:
            raise PersistenceError("the store is closed")
        if number in self._gone:
            raise EnvironmentGone(f"environment {number} no longer exists")
        one = self._open.get(number)
        if one is not None:
            return one
        self._make_room()
        self._opening.add(number)
        self._changed.release()
        try:
            one = self._opener(number)
        finally:
            self._changed.acquire()
            self._opening.discard(number)
            self._changed.notify_all()
        self._open[number] = one
        return one

    def _make_room(self) -> None:
        unused = [number for number in self._open if number not in self._users and number not in self._kept]
        for number in unused[: max(0, len(self._open) - self._limit + 1)]:
            self._open.pop(number).close()
