"""The state of a subscription at rest: waiting messages, consumers with permits, and causes of blocking."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pulsarbox.broker.dispatch.key_shared import KeySharedDispatcher
from pulsarbox.broker.dispatch.multiple_consumers import MultipleConsumersDispatcher
from pulsarbox.broker.dispatch.shared import SharedDispatcher
from pulsarbox.broker.dispatch.single_active import SingleActiveDispatcher
from pulsarbox.broker.limits.limiter import time_of
from pulsarbox.broker.subscription.consumer import Consumer
from pulsarbox.broker.subscription.subscription import Subscription
from pulsarbox.storage.record import Position
from tests.simulation.model.pledges import is_claimed
from tests.simulation.model.views import SubView

if TYPE_CHECKING:
    from tests.simulation.model.model import Model

LATE_MS = 5
"""Maximum delay of a limiter's timer after the start of a period, in milliseconds."""
PAUSE = 1.5
"""Seconds after a failed read during which the box need not make progress."""


def consumers_of(core: Subscription) -> list[Consumer]:
    """Return the dispatcher's consumers. A consumer being added is not yet on the subscription."""
    dispatcher = core.dispatcher
    assert isinstance(dispatcher, SingleActiveDispatcher | MultipleConsumersDispatcher)
    return dispatcher._consumers


class Standing:
    """The state of one subscription."""

    def __init__(self, model: Model, view: SubView, core: Subscription) -> None:
        self.model = model
        self.view = view
        self.core = core
        self.dispatcher = core.dispatcher
        self.consumers = consumers_of(core)
        active = None if core.awaits_failover else core.active_consumer
        self.takers = self.consumers if view.side_by_side else [active] if active is not None else []
        """Consumers that are eligible for dispatch."""
        self.ready = {c for c in self.takers if c.permits > 0 and not c.blocked and not c.outbox.full and not c.closed}
        self.holder: dict[Position, Consumer] = {Position(*at): c for c in self.consumers for at in c.held}
        moving = core.dead_letters._moving
        limit = core.ledger.read_limit
        waiting = [
            position
            for position in view.left
            if position < limit and position not in self.holder and position not in moving
        ]
        if view.cursor.claims is not None:
            waiting = [position for position in waiting if not is_claimed(view, position)]
        self.limited_at = limit
        """Read limit: the first entry of an open transaction."""
        due = self._due(waiting)
        self.waiting = [position for position in waiting if position in due]
        """Entries due for dispatch, in no order."""
        self.early = [position for position in waiting if position not in due]
        """Delayed entries that are not yet due, or became due within the last tick."""

    @classmethod
    def of(cls, model: Model, view: SubView) -> Standing | None:
        """Return the state of a subscription, or None if it is uncertain."""
        core = model.subscription(view)
        if core is None or view.seeks or view.unsure or core.fenced or model.pledges.unsettled:
            return None
        return cls(model, view, core)

    def _due(self, waiting: list[Position]) -> set[Position]:
        """Return the entries that should have been dispatched a tick ago at the latest."""
        entries, world = self.view.topic.entries, self.model.world
        if not self.view.side_by_side:
            return set(waiting)
        wall = world.now.wall - self.model.box.settings.delayedDeliveryTickTimeMillis
        return {position for position in waiting if entries[position].deliver_at <= wall}

    def perhaps(self) -> set[Position]:
        """Return the entries that may be due by now; the box may be a tick ahead."""
        tick = self.model.box.settings.delayedDeliveryTickTimeMillis
        entries, latest = self.view.topic.entries, self.model.latest_wall + tick
        return {position for position in (*self.waiting, *self.early) if entries[position].deliver_at <= latest}

    def held_back(self) -> bool:
        """Return whether any entry is certainly not yet due."""
        return bool(set(self.early) - self.perhaps())

    @property
    def limited(self) -> bool:
        """Whether the subscription's or the broker's limit of unacknowledged messages blocks dispatch."""
        if not isinstance(self.dispatcher, MultipleConsumersDispatcher):
            return False
        unacked, broker = self.dispatcher._unacked, self.core._services.unacked
        return unacked.blocked or (broker.blocked and unacked.messages > broker.share)

    @property
    def throttled(self) -> bool:
        """Whether a dispatch rate is exhausted; dispatch resumes with its next period."""
        throttle, at = self.core.throttle, time_of(self.model.world.now)
        for limiter in throttle.limiters:
            step = limiter.step
            if step is None or not limiter.is_waiting(throttle):
                continue
            if step.used_up:
                return step.free_at() >= at - LATE_MS
            return at - step.begun <= LATE_MS
        return False

    def stuck(self) -> list[Position]:
        """Return the entries that wait although a consumer could receive them."""
        if not self.ready or self.limited or self.throttled:
            return []
        if isinstance(self.dispatcher, KeySharedDispatcher):
            return self._stuck_keys(self.dispatcher)
        if isinstance(self.dispatcher, SharedDispatcher):
            pinned = self.pinned(self.dispatcher)
            return [position for position in self.waiting if position not in pinned]
        return self.waiting

    def pinned(self, dispatcher: SharedDispatcher) -> set[Position]:
        """Return chunks that wait for consumers without capacity."""
        there = {c: chunks for c, chunks in dispatcher._pinned.items() if c in self.consumers and c not in self.ready}
        return {Position(*at) for chunks in there.values() for at in chunks}

    def slots(self, dispatcher: KeySharedDispatcher, waiting: Iterable[Position] | None = None) -> dict[int, Position]:
        """Return the first waiting position of every slot, or its first position in ``waiting``."""
        entries, slot_of = self.view.topic.entries, dispatcher.selector.slot
        first: dict[int, Position] = {}
        for position in self.waiting if waiting is None else waiting:
            slot = slot_of(entries[position].key_hash)
            first[slot] = min(position, first.get(slot, position))
        return first

    def holders(self, dispatcher: KeySharedDispatcher) -> dict[int, set[Consumer]]:
        """Return the consumers with unacknowledged entries by slot."""
        entries, slot_of = self.view.topic.entries, dispatcher.selector.slot
        found: dict[int, set[Consumer]] = defaultdict(set)
        for position, consumer in self.holder.items():
            if position in entries:
                found[slot_of(entries[position].key_hash)].add(consumer)
        return found

    def drains(self, dispatcher: KeySharedDispatcher, holders: dict[int, set[Consumer]], slot: int) -> bool:
        """Return whether the slot's consumer has to wait for acknowledgements of an earlier consumer of the slot."""
        owner = dispatcher.selector.select(slot)
        return not self.view.policy.out_of_order and bool(holders.get(slot, set()) - {owner})

    def looks_ahead(self, dispatcher: KeySharedDispatcher) -> bool:
        """Return whether the look-ahead limit leaves room for more waiting entries."""
        settings = self.core._services.settings
        each = settings.keySharedLookAheadMsgInReplayThresholdPerConsumer * len(self.consumers)
        most = min(each, settings.keySharedLookAheadMsgInReplayThresholdPerSubscription)
        return sum(1 for position in self.perhaps() if position < self.core.source.position) < most

    def _is_passed(self, position: Position) -> bool:
        """Return whether the dispatcher has read an undelayed entry, so that the look-ahead limit does not apply."""
        return position < self.core.source.position and not self.view.topic.entries[position].deliver_at

    def _stuck_keys(self, dispatcher: KeySharedDispatcher) -> list[Position]:
        holders = self.holders(dispatcher)
        looks_ahead = self.looks_ahead(dispatcher)
        return [
            position
            for slot, position in self.slots(dispatcher).items()
            if dispatcher.selector.select(slot) in self.ready
            and not self.drains(dispatcher, holders, slot)
            and (looks_ahead or self._is_passed(position))
        ]
