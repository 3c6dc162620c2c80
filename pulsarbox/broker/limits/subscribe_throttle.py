"""The subscribe rate of a topic: how often one consumer may subscribe per period.

Source: SubscribeRateLimiter of Pulsar 4.2. A consumer is identified by host, name and ID.
"""

from pulsarbox.broker.limits.token_bucket import Limit, TokenBucket
from pulsarbox.broker.policies.kinds.subscribe_rate import UNLIMITED, SubscribeRate
from pulsarbox.errors import NotAllowed

Who = tuple[str, str, int]


class SubscribeLimiter:
    """Counts the subscriptions of each consumer. Times are non-decreasing milliseconds."""

    __slots__ = ("_looked", "_steps", "rate", "refused")

    def __init__(self) -> None:
        self.rate: SubscribeRate = UNLIMITED
        self._steps: dict[Who, TokenBucket] = {}
        self._looked = 0
        self.refused = 0
        """Number of rejected attempts."""

    def __len__(self) -> int:
        """Return the number of tracked consumers."""
        return len(self._steps)

    def set(self, rate: SubscribeRate, at: int) -> None:
        """Change the rate without resetting the counts."""
        if rate.times <= 0:
            self._steps.clear()
        elif rate != self.rate:
            for step in self._steps.values():
                step.change(_limit(rate), at)
        self.rate = rate

    def check(self, who: Who, at: int) -> None:
        """Count an attempt. Raises NotAllowed if it exceeds the rate."""
        if self.rate.times <= 0:
            return
        self._forget_idle(at)
        step = self._steps.get(who)
        if step is None:
            step = self._steps[who] = TokenBucket(_limit(self.rate), at)
        step.refill(at)
        if step.used_up:
            self.refused += 1
            raise NotAllowed("Subscribe limited by subscribe rate limit per consumer.")
        step.consume(1, 0)

    def _forget_idle(self, at: int) -> None:
        """Once per period, forget consumers with a full allowance."""
        if at - self._looked >= self.rate.period_s * 1000:
            self._looked = at
            for who, step in list(self._steps.items()):
                step.refill(at)
                if step.left_messages >= self.rate.times:
                    del self._steps[who]

    @property
    def used(self) -> int:
        """The most that any consumer has used of its allowance."""
        return max((self.rate.times - each.left_messages for each in self._steps.values()), default=0)


def _limit(rate: SubscribeRate) -> Limit:
    return Limit(rate.times, 0, rate.period_s * 1000)
