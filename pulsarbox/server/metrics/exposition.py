"""The text format of Prometheus, version 0.0.4: all lines of a metric together, behind its HELP and TYPE."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

LINES_AT_ONCE: Final = 2000
"""Lines that one turn of the loop makes."""


class Metric(NamedTuple):
    """A row of the table: one metric, and how its value is taken from a row of values."""

    name: str
    help: str
    value: Callable[[Any], float]
    kind: str = "gauge"
    labels: str = ""
    """Labels that all its lines have beyond those of their rows."""
    family: str = ""
    """The metric that it is a part of, as buckets are of a histogram; empty where it stands alone."""


Rows = Sequence[tuple[str, Any]]
"""Labels, as ``labels`` gives them, with what the values are taken from."""


def label(value: str) -> str:
    """A label's value, escaped."""
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def labels(**values: str) -> str:
    """Labels as they stand between the braces."""
    return ",".join(f'{name}="{label(value)}"' for name, value in values.items())


def text_of(metrics: Iterable[tuple[Metric, Rows]]) -> Iterator[bytes]:
    """Metrics with their rows as text, in pieces. Those of one family stand behind one another, under one heading."""
    before = ""
    for metric, rows in metrics:
        name, value = metric.name, metric.value
        family = metric.family or name
        if rows and family != before:
            yield f"# HELP {family} {metric.help}\n# TYPE {family} {metric.kind}\n".encode()
            before = family
        more = f",{metric.labels}" if metric.labels else ""
        left = iter(rows)
        while some := [f"{name}{{{of}{more}}} {value(row)}\n" for of, row in islice(left, LINES_AT_ONCE)]:
            yield "".join(some).encode()


def rounded(value: float) -> float:
    """A number short enough to be worth its bytes: of a fraction three digits."""
    return round(value, 3) if value and isinstance(value, float) else value
