"""What the plugin ``weighted`` does: who is given how much, as the box counts it."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from examples.demo.box import Box

NEAR: Final = 0.15
"""A share may be so far from what the weight says: whoever is slow for a moment is given less."""


class Share(NamedTuple):
    """One worker."""

    name: str
    weight: int
    given: int
    """Messages that the box has sent to it, those that came again included."""
    of: int
    """To all of them together."""
    weights: int

    @property
    def is_near(self) -> bool:
        """Whether it is what the weight says."""
        return abs(self.given / max(1, self.of) - self.weight / self.weights) <= NEAR

    def __str__(self) -> str:
        share, wanted = self.given / max(1, self.of), self.weight / self.weights
        return f"{self.name}: weight {self.weight}, {self.given:,} of {self.of:,} readings, {share:.0%} ({wanted:.0%})"


def shares(box: Box, topics: Sequence[str], subscription: str) -> list[Share]:
    """Of all workers of a subscription to these topics; the weight is the property with which they subscribed."""
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
