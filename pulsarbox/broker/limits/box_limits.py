"""The limiters beyond single topics: those of the box and of its resource groups."""

from collections.abc import Callable
from typing import Any

from pulsarbox.broker.limits.dispatch_throttle import DispatchRateRules
from pulsarbox.broker.limits.limiter import Limiter, LimitScope
from pulsarbox.broker.limits.token_bucket import Limit
from pulsarbox.broker.policies.kinds import dispatch_rate, publish_rate
from pulsarbox.broker.policies.kinds.dispatch_rate import DispatchRate
from pulsarbox.broker.policies.kinds.publish_rate import PublishRate
from pulsarbox.broker.policies.kinds.resource_group import group_key, group_rates
from pulsarbox.broker.timers import Timers
from pulsarbox.clock import BEGINNING, Now
from pulsarbox.config import Settings
from pulsarbox.storage.catalog import Catalog, Row


def limit_of(rate: DispatchRate | PublishRate) -> Limit | None:
    """Return the limit of a rate; None if it sets none."""
    period_s = rate.period_s if isinstance(rate, DispatchRate) else 1
    return Limit(rate.messages, rate.bytes, period_s * 1000) if rate.limits else None


class ResourceGroupLimits:
    """The limiters of one resource group."""

    __slots__ = ("dispatch", "publish")

    def __init__(self, name: str, limiter: Callable[[LimitScope, str], Limiter]) -> None:
        """``limiter`` creates a limiter."""
        self.dispatch = limiter(LimitScope.GROUP, name)
        self.publish = limiter(LimitScope.GROUP, name)


class BoxLimits:
    """The limiters of the box and of its resource groups."""

    def __init__(
        self, settings: Settings, catalog: Catalog, timers: Timers, put: Callable[[str, Row | None], None]
    ) -> None:
        """``put`` writes a row, durable with the open batch."""
        self._timers = timers
        self.holding: set[Limiter] = set()
        """All limiters of the box that something is waiting for."""
        self._catalog = catalog
        self._put = put
        self.rules = DispatchRateRules(settings)
        self.max_held_bytes = settings.maxThrottledPublishMbytesPerConnection << 20
        self.dispatch = self.limiter(LimitScope.BROKER, "")
        self.publish = self.limiter(LimitScope.BROKER, "")
        self._groups: dict[str, ResourceGroupLimits] = {}
        """Groups used by loaded topics."""
        self.apply_settings(settings, BEGINNING)

    def limiter(self, scope: LimitScope, name: str) -> Limiter:
        """Return a new limiter of this box, without a limit yet."""
        return Limiter(scope, name, self._timers, self.holding)

    def apply_settings(self, settings: Settings, now: Now) -> None:
        """Apply changed settings; the caller notifies the topics afterwards."""
        self.rules.apply_settings(settings)
        self.max_held_bytes = settings.maxThrottledPublishMbytesPerConnection << 20
        self.dispatch.set(limit_of(dispatch_rate.of_box(settings)), "broker", now)
        self.publish.set(limit_of(publish_rate.of_box(settings)), "broker", now)

    # Resource groups

    def group(self, name: str, now: Now) -> ResourceGroupLimits | None:
        """Return the limiters of a group; None if the group does not exist."""
        row = self._catalog.get(group_key(name))
        if row is None:
            return None
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = ResourceGroupLimits(name, self.limiter)
            self._set(group, row, now)
        return group

    @property
    def groups(self) -> dict[str, ResourceGroupLimits]:
        """Resource groups used by loaded topics."""
        return self._groups

    def put_group(self, name: str, row: dict[str, Any] | None, now: Now) -> None:
        """Write a group, or delete it with None, with the open batch; the caller notifies the topics afterwards."""
        self._put(group_key(name), row)
        group = self._groups.get(name)
        if group is not None:
            self._set(group, row or {}, now)
            if row is None:
                del self._groups[name]

    def _set(self, group: ResourceGroupLimits, row: dict[str, Any], now: Now) -> None:
        rates = group_rates(row)
        group.publish.set(limit_of(rates.publish), "resource group", now)
        group.dispatch.set(limit_of(rates.dispatch), "resource group", now)
