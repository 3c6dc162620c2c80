"""Short forms of long tests: a campaign uses every parameter, `make test` the first few.

A test marked ``campaign`` is excluded from `make test`; `make campaigns` runs all of them.
"""

import os
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet


def short(values: Iterable[Any], keep: int) -> list[ParameterSet]:
    """Return parameters for ``parametrize``: all after the first ``keep`` are marked ``campaign``.

    A value may be a tuple of parameters or a ``pytest.param``.
    """
    return [_param(value) if at < keep else _param(value, pytest.mark.campaign) for at, value in enumerate(values)]


def chosen(values: Iterable[Any], kept: Callable[[Any], bool]) -> list[ParameterSet]:
    """Return parameters for ``parametrize``: those that ``kept`` rejects are marked ``campaign``."""
    return [_param(value) if kept(value) else _param(value, pytest.mark.campaign) for value in values]


def examples(count: int) -> int:
    """Return the number of examples for a property that needs more of them than others: ``count`` in a campaign,
    an eighth of that in `make test`."""
    return count if "HYPOTHESIS_EXAMPLES" in os.environ else max(count // 8, 8)


def _param(value: Any, *marks: pytest.MarkDecorator) -> ParameterSet:
    if isinstance(value, ParameterSet):
        return pytest.param(*value.values, id=value.id, marks=[*value.marks, *marks])
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=list(marks))
