"""Shares of the workers under the plugin ``weighted``, from the box's statistics."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from examples.demo.box import Box

NEAR: Final = 0.2
"""Tolerance of a share: a worker that gets no processor time for a moment receives less."""


class Share(NamedTuple):
    """Share of one worker."""

    name: str
    weight: int
    given: int
    """Messages sent to it, including redeliveries."""
    of: int
    """Messages sent to all workers."""
    weights: int

    @property
    def is_near(self) -> bool:
        """Whether the share is close to the weight."""
        return abs(self.given / max(1, self.of) - self.weight / self.weights) <= NEAR

    def __str__(self) -> str:
        share, wanted = self.given / max(1, self.of), self.weight / self.weights
        return f"{self.name}: weight {self.weight}, {self.given:,} of {self.of:,} readings, {share:.0%} ({wanted:.0%})"


def shares(box: Box, topics: Sequence[str], subscription: str) -> list[Share]:
    """Return the shares of all workers of a subscription; a worker's weight is a property of its consumer."""
    given: dict[str, int] = {}
    weights: dict[str, int] = {}
    for topic in topics:
        stats = box.ask("GET", f"/admin/v2/{topic.replace('://', '/')}/stats")
        for each in stats["subscriptions"][subscription]["consumers"]:
            name = each["consumerName"]
            given[name] = given.get(name, 0) + each["msgOutCounter"]
            weights[name] = int(each["metadata"]["weight"])
    all_given, all_weights = sum(given.values()), sum(weights.values())
    return [Share(name, weights[name], given[name], all_given, all_weights) for name in sorted(given)]
