"""Shared subscriptions: consumers get work by their size, which they name as a property ``weight`` (1 without one).

Who holds the fewest unacknowledged messages for its weight is next, so a machine with weight 4 has four times as much
on its desk as one with weight 1. Use: ``sharedConsumerSelection = weighted``, as a setting or as a property of the
subscription, and ``client.subscribe(..., properties={"weight": "4"})``.
"""

from collections.abc import Sequence
from typing import Any

from pulsarbox.plugins.contracts import Candidate


class Plugin:
    """See ConsumerChoice."""

    kind = "routing"
    name = "weighted"
    api = 1

    def choose(self, ready: Sequence[Any]) -> Any:
        """Of equals whose turn was longest ago: it stands first."""
        return min(ready, key=_load)


def _load(consumer: Candidate) -> float:
    told = consumer.metadata.get("weight", "1")
    weight = int(told) if told.isascii() and told.isdigit() else 1
    return consumer.unacked / max(1, weight)
