"""Where a subscription stands when the box is at rest: what waits, who could take something, what holds it back."""

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
from tests.simulation.pledges import is_claimed
from tests.simulation.views import SubView

if TYPE_CHECKING:
    from tests.simulation.model import Model

LATE_MS = 5
"""How long after a period has begun a limiter may ring, in milliseconds."""
PAUSE = 1.5
"""Seconds after a failed read before which nothing is expected of the box."""


def consumers_of(core: Subscription) -> list[Consumer]:
    """Those that the dispatcher knows. While one is being added, the subscription does not have it yet."""
    dispatcher = core.dispatcher
    assert isinstance(dispatcher, SingleActiveDispatcher | MultipleConsumersDispatcher)
    return dispatcher._consumers


class Standing:
    """One subscription."""

    def __init__(self, model: Model, view: SubView, core: Subscription) -> None:
        self.model = model
        self.view = view
        self.core = core
        self.dispatcher = core.dispatcher
        self.consumers = consumers_of(core)
        active = None if core.taking_over else core.active_consumer
        self.takers = self.consumers if view.side_by_side else [active] if active is not None else []
        """Consumers that get entries, when they can take them."""
        self.ready = {c for c in self.takers if c.permits > 0 and not c.blocked and not c.outbox.full and not c.closed}
        self.holder: dict[Position, Consumer] = {Position(*at): c for c in self.consumers for at in c.held}
        moving = core.dead_letters._moving
        limit = core.topic.ledger.read_limit
        waiting = [
            position
            for position in view.left
            if position < limit and position not in self.holder and position not in moving
        ]
        if view.cursor.claims is not None:
            waiting = [position for position in waiting if not is_claimed(view, position)]
        self.limited_at = limit
        """The first entry of an open transaction."""
        due = self._due(waiting)
        self.waiting = [position for position in waiting if position in due]
        """What is to be sent, in no order."""
        self.early = [position for position in waiting if position not in due]
        """What is to be sent at its time, which has not come; or within a tick of now."""

    @classmethod
    def of(cls, model: Model, view: SubView) -> Standing | None:
        """Where it stands; None where that cannot be said."""
        core = model.subscription(view)
        if core is None or view.seeks or view.unsure or core.fenced or model.pledges.unsettled:
            return None
        return cls(model, view, core)

    def _due(self, waiting: list[Position]) -> set[Position]:
        """Those that should have been sent a tick ago at the latest."""
        entries, world = self.view.topic.entries, self.model.world
        if not self.view.side_by_side:
            return set(waiting)
        wall = world.now.wall - self.model.box.settings.delayedDeliveryTickTimeMillis
        return {position for position in waiting if entries[position].deliver_at <= wall}

    def perhaps(self) -> set[Position]:
        """What is to be sent by now, as far as can be told from outside: the box may be a tick ahead."""
        tick = self.model.box.settings.delayedDeliveryTickTimeMillis
        entries, latest = self.view.topic.entries, self.model.latest_wall + tick
        return {position for position in (*self.waiting, *self.early) if entries[position].deliver_at <= latest}

    def held_back(self) -> bool:
        """Whether something is to be sent whose time has not come for sure."""
        return bool(set(self.early) - self.perhaps())

    @property
    def limited(self) -> bool:
        """Whether a limit of unacknowledged messages, of the subscription or of the broker, holds it back."""
        if not isinstance(self.dispatcher, MultipleConsumersDispatcher):
            return False
        unacked, broker = self.dispatcher._unacked, self.core.topic.core.unacked
        return unacked.blocked or (broker.blocked and unacked.messages > broker.share)

    @property
    def throttled(self) -> bool:
        """Whether a dispatch rate is used up: what waits for more of it is to go on when its next period begins."""
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
        """What waits although somebody could take it."""
        if not self.ready or self.limited or self.throttled:
            return []
        if isinstance(self.dispatcher, KeySharedDispatcher):
            return self._stuck_keys(self.dispatcher)
        if isinstance(self.dispatcher, SharedDispatcher):
            pinned = self.pinned(self.dispatcher)
            return [position for position in self.waiting if position not in pinned]
        return self.waiting

    def pinned(self, dispatcher: SharedDispatcher) -> set[Position]:
        """Chunks that wait for consumers who cannot take them."""
        there = {c: chunks for c, chunks in dispatcher._pinned.items() if c in self.consumers and c not in self.ready}
        return {Position(*at) for chunks in there.values() for at in chunks}

    def slots(self, dispatcher: KeySharedDispatcher, waiting: Iterable[Position] | None = None) -> dict[int, Position]:
        """The first position of every slot that waits, or has something of ``waiting``."""
        entries, slot_of = self.view.topic.entries, dispatcher.selector.slot
        first: dict[int, Position] = {}
        for position in self.waiting if waiting is None else waiting:
            slot = slot_of(entries[position].key_hash)
            first[slot] = min(position, first.get(slot, position))
        return first

    def holders(self, dispatcher: KeySharedDispatcher) -> dict[int, set[Consumer]]:
        """Who has unacknowledged entries of a slot."""
        entries, slot_of = self.view.topic.entries, dispatcher.selector.slot
        found: dict[int, set[Consumer]] = defaultdict(set)
        for position, consumer in self.holder.items():
            if position in entries:
                found[slot_of(entries[position].key_hash)].add(consumer)
        return found

    def drains(self, dispatcher: KeySharedDispatcher, holders: dict[int, set[Consumer]], slot: int) -> bool:
        """Whether the slot's consumer has to wait for somebody who had the slot before."""
        owner = dispatcher.selector.select(slot)
        return not self.view.policy.out_of_order and bool(holders.get(slot, set()) - {owner})

    def looks_ahead(self, dispatcher: KeySharedDispatcher) -> bool:
        """Whether fewer entries wait behind their slots than may."""
        settings = self.core.topic.core.settings
        each = settings.keySharedLookAheadMsgInReplayThresholdPerConsumer * len(self.consumers)
        most = min(each, settings.keySharedLookAheadMsgInReplayThresholdPerSubscription)
        return sum(1 for position in self.perhaps() if position < self.core.source.position) < most

    def _is_passed(self, position: Position) -> bool:
        """Whether the dispatcher has it, and looking ahead does not matter. What was delayed is like what is new."""
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
