"""Errors of the formats without the frames of this package.

Spark prints the traceback of its Python process in front of an error. If the error names its object and its remedy,
the frames tell users nothing. Other exceptions keep their traceback. Does not import pyspark.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Final, ParamSpec, TypeVar

_OURS: Final = "pulsarbox."
_P = ParamSpec("_P")
_T = TypeVar("_T")


def brief(call: Callable[_P, _T]) -> Callable[_P, _T]:
    """Return a function that raises errors of this package without their frames and causes."""

    @functools.wraps(call)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return call(*args, **kwargs)
        except Exception as error:
            if not is_ours(error):
                raise
            raise error.with_traceback(None) from None

    return called


def brief_rows(call: Callable[_P, Iterator[_T]]) -> Callable[_P, Iterator[_T]]:
    """Return the same for a function that yields."""

    @functools.wraps(call)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> Iterator[_T]:
        try:
            yield from call(*args, **kwargs)
        except Exception as error:
            if not is_ours(error):
                raise
            raise error.with_traceback(None) from None

    return called


def is_ours(error: Exception) -> bool:
    """Return whether this package defines the class of an error."""
    return type(error).__module__.startswith(_OURS)
