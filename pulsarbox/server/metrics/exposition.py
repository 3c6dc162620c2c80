"""The Prometheus text format, version 0.0.4: all lines of a metric together, after its HELP and TYPE."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

LINES_AT_ONCE: Final = 2000
"""Lines built per turn of the loop."""


class Metric(NamedTuple):
    """A row of the table: one metric, and how to get its value from a row of values."""

    name: str
    help: str
    value: Callable[[Any], float]
    kind: str = "gauge"
    labels: str = ""
    """Additional labels of all its lines, beyond those of the rows."""
    family: str = ""
    """The metric that it is a part of, such as a histogram for its buckets; empty for a separate metric."""


Rows = Sequence[tuple[str, Any]]
"""Labels, formatted by ``labels``, with the source of the values."""


def label(value: str) -> str:
    """Escape a label's value."""
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def labels(**values: str) -> str:
    """Format labels, without the braces."""
    return ",".join(f'{name}="{label(value)}"' for name, value in values.items())


def text_of(metrics: Iterable[tuple[Metric, Rows]]) -> Iterator[bytes]:
    """Yield metrics with their rows as text, in pieces. Metrics of one family share one heading."""
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
    """Round a fraction to three digits, to save space."""
    return round(value, 3) if value and isinstance(value, float) else value
