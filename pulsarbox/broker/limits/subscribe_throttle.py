"""The subscribe rate of a topic: how often one consumer may subscribe in a period.

Source: SubscribeRateLimiter of Pulsar 4.2. A consumer is its host, its name and its id.
"""

from pulsarbox.broker.limits.token_bucket import Limit, Step
from pulsarbox.broker.policies.kinds.subscribe_rate import UNLIMITED, SubscribeRate
from pulsarbox.errors import NotAllowed

Who = tuple[str, str, int]


class SubscribeLimiter:
    """Counts for each consumer how often it has subscribed. Times are milliseconds that do not go back."""

    __slots__ = ("_looked", "_steps", "rate", "refused")

    def __init__(self) -> None:
        self.rate: SubscribeRate = UNLIMITED
        self._steps: dict[Who, Step] = {}
        self._looked = 0
        self.refused = 0
        """How often somebody was."""

    def __len__(self) -> int:
        """Of so many consumers something is known."""
        return len(self._steps)

    def set(self, rate: SubscribeRate, at: int) -> None:
        """The rate from now on. What was counted stays counted."""
        if rate.times <= 0:
            self._steps.clear()
        elif rate != self.rate:
            for step in self._steps.values():
                step.change(_limit(rate), at)
        self.rate = rate

    def check(self, who: Who, at: int) -> None:
        """Count one more. Raises NotAllowed where it is one too many."""
        if self.rate.times <= 0:
            return
        self._forget_idle(at)
        step = self._steps.get(who)
        if step is None:
            step = self._steps[who] = Step(_limit(self.rate), at)
        step.refill(at)
        if step.used_up:
            self.refused += 1
            raise NotAllowed("Subscribe limited by subscribe rate limit per consumer.")
        step.take(1, 0)

    def _forget_idle(self, at: int) -> None:
        """Once a period, those that have all their allowance."""
        if at - self._looked >= self.rate.period_s * 1000:
            self._looked = at
            for who, step in list(self._steps.items()):
                step.refill(at)
                if step.left_messages >= self.rate.times:
                    del self._steps[who]

    @property
    def used(self) -> int:
        """The most that one consumer has used of its allowance."""
        return max((self.rate.times - each.left_messages for each in self._steps.values()), default=0)


def _limit(rate: SubscribeRate) -> Limit:
    return Limit(rate.times, 0, rate.period_s * 1000)
