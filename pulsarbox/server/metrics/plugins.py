"""Metrics of plugins in use: their cost and their errors."""

from collections.abc import Iterator
from typing import Final

from pulsarbox.broker.plugins import Plugins
from pulsarbox.plugins.guard import Cost
from pulsarbox.server.metrics.exposition import Metric, Rows, labels

_QUANTILES: Final = (("0.5", "p50_ns"), ("0.99", "p99_ns"))

PLUGINS: Final = (
    Metric("pulsarbox_plugin_calls_total", "Calls of a plugin", lambda cost: cost.calls, "counter"),
    Metric("pulsarbox_plugin_errors_total", "Calls that failed", lambda cost: cost.errors, "counter"),
    Metric("pulsarbox_plugin_tripped", "1: it is not asked any more", lambda cost: int(cost.tripped)),
)
DURATION: Final = Metric("pulsarbox_plugin_seconds", "Time of a call, of one in 256", lambda nanos: nanos / 1e9)


def costs(plugins: Plugins, cluster: str) -> Iterator[tuple[Metric, Rows]]:
    """Yield the metrics of each plugin in use."""
    found: list[tuple[str, Cost]] = [
        (f"{cluster},{labels(kind=kind, plugin=name)}", guard.cost()) for (kind, name), guard in plugins.guards.items()
    ]
    if found:
        for metric in PLUGINS:
            yield metric, found
        yield (
            DURATION,
            [(f'{of},quantile="{name}"', getattr(cost, field)) for of, cost in found for name, field in _QUANTILES],
        )
