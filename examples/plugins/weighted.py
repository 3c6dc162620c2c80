"""Weighted consumer selection for Shared subscriptions, by the consumer property ``weight`` (default 1).

The consumer with the fewest unacknowledged messages relative to its weight is next, so a consumer with weight 4 holds
four times as many as one with weight 1. Use: ``sharedConsumerSelection = weighted``, as a setting or as a property of
the subscription, and ``client.subscribe(..., properties={"weight": "4"})``.
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
        """Return the least loaded consumer; of equals the first, whose turn was longest ago."""
        return min(ready, key=_load)


def _load(consumer: Candidate) -> float:
    told = consumer.metadata.get("weight", "1")
    weight = int(told) if told.isascii() and told.isdigit() else 1
    return consumer.unacked / max(1, weight)
