"""The rules of message flow, and of the reported reasons for an idle subscription."""

from __future__ import annotations

from pulsarbox.broker.dispatch.blocked_reason import Reason
from pulsarbox.broker.dispatch.key_shared import KeySharedDispatcher
from pulsarbox.broker.dispatch.multiple_consumers import MultipleConsumersDispatcher
from pulsarbox.broker.dispatch.shared import SharedDispatcher
from pulsarbox.storage.record import Position
from tests.simulation.model.model import Model
from tests.simulation.model.pledges import claimed_bits, is_claimed
from tests.simulation.model.standing import PAUSE, Standing, consumers_of
from tests.simulation.model.views import SubView
from tests.simulation.rules.checker import Checker


class AtRest(Checker):
    """Base of rules that inspect subscriptions periodically, while no read is in progress."""

    every = 8

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._turns = 0

    def at_rest(self) -> bool:
        """Return whether an inspection is due and the broker is idle."""
        self._turns += 1
        disk, world = self.model.box.disk, self.model.world
        if self._turns % self.every or disk.reads_under_way or world.monotonic - disk.last_read_failure < PAUSE:
            return False
        monotonic, wall = self.model.box.broker.next_timer()
        # The wall clock may have been moved, and the shell has not noticed yet.
        due = (wall is not None and wall <= world.now.wall) or (monotonic is not None and monotonic <= world.monotonic)
        return not due

    def turn(self) -> None:
        """See Checker."""
        if not self.at_rest():
            return
        for view in self.model.subs():
            standing = Standing.of(self.model, view)
            if standing is not None:
                self.look(standing)

    def look(self, standing: Standing) -> None:
        """Check one subscription."""
        raise NotImplementedError


class Liveness(AtRest):
    """A backlog is dispatched if a consumer can receive it; at the end everything is consumed."""

    rule = "liveness"

    def look(self, standing: Standing) -> None:
        """See AtRest."""
        stuck = standing.stuck()
        if stuck:
            view = standing.view
            names = sorted(consumer.name for consumer in standing.ready)
            self.check(False, "nothing flows:", view.topic.name, view.name, view.type, names, stuck[:3])

    def finished(self) -> None:
        """See Checker."""
        for view in self.model.subs():
            if any(c.sub is view for conn in self.model.conns.values() for c in conn.consumers.values()):
                unowned = self._unowned(view)
                left = [position for position in view.left if position not in unowned]
                self.check(not left, "never consumed:", view.topic.name, view.name, left[:5])

    def _unowned(self, view: SubView) -> set[Position]:
        """Return the entries in hash ranges without a consumer and, if these are many, the entries after them."""
        standing = Standing.of(self.model, view)
        if standing is None or not isinstance(standing.dispatcher, KeySharedDispatcher) or not view.policy.sticky:
            return set()
        selector, entries = standing.dispatcher.selector, view.topic.entries
        if not standing.looks_ahead(standing.dispatcher):
            return set(view.left)
        return {p for p in view.left if selector.select(selector.slot(entries[p].key_hash)) is None}


class Why(AtRest):
    """The reported reason for dispatching nothing is true."""

    rule = "why"
    every = 6

    def look(self, standing: Standing) -> None:
        """See AtRest."""
        reason = standing.core.blocked_reason().reason
        core = standing.core
        if (reason == Reason.NO_CONSUMER) != (not consumers_of(core)):
            self._false(standing, reason)
        if reason in _TRUE and not _TRUE[reason](standing):
            self._false(standing, reason)
        if reason not in _TRUE and reason != Reason.NO_CONSUMER:
            self._false(standing, reason)

    def _false(self, standing: Standing, reason: str) -> None:
        view = standing.view
        of_consumers = [(c.name, c.permits, c.unacked, c.blocked, c.outbox.full) for c in standing.takers]
        self.check(
            False, reason, "is not why:", view.topic.name, view.name, view.type, of_consumers, standing.waiting[:3]
        )


def _end_of_log(standing: Standing) -> bool:
    return not standing.waiting and not standing.held_back()


def _delayed(standing: Standing) -> bool:
    return not standing.waiting and bool(standing.early)


def _no_permits(standing: Standing) -> bool:
    return all(consumer.permits <= 0 for consumer in standing.takers)


def _slow_connection(standing: Standing) -> bool:
    asking = [consumer for consumer in standing.takers if consumer.permits > 0 and not consumer.blocked]
    return bool(asking) and all(consumer.outbox.full for consumer in asking)


def _unacked_limit(standing: Standing) -> bool:
    asking = [consumer for consumer in standing.takers if consumer.permits > 0]
    return standing.limited or (bool(asking) and all(consumer.blocked for consumer in asking))


def _key_blocked(standing: Standing) -> bool:
    dispatcher = standing.dispatcher
    if not isinstance(dispatcher, KeySharedDispatcher):
        return False
    slots = standing.slots(dispatcher, standing.perhaps())
    owners = [dispatcher.selector.select(slot) for slot in slots]
    return any(owner is None or owner not in standing.ready for owner in owners)


def _draining(standing: Standing) -> bool:
    dispatcher = standing.dispatcher
    if not isinstance(dispatcher, KeySharedDispatcher):
        return False
    holders = standing.holders(dispatcher)
    slots = standing.slots(dispatcher, standing.perhaps())
    return any(standing.drains(dispatcher, holders, slot) for slot in slots)


def _taking_over(standing: Standing) -> bool:
    return standing.core.awaits_failover


def _chunks(standing: Standing) -> bool:
    dispatcher = standing.dispatcher
    return isinstance(dispatcher, SharedDispatcher) and bool(standing.pinned(dispatcher) & set(standing.waiting))


def _throttled(standing: Standing) -> bool:
    return standing.throttled


def _dead_letters(standing: Standing) -> bool:
    return standing.core.dead_letters.full


def _open_transaction(standing: Standing) -> bool:
    view = standing.view
    waits = any(position >= standing.limited_at or is_claimed(view, position) for position in view.left)
    return _end_of_log(standing) and waits


_TRUE = {
    Reason.END_OF_LOG: _end_of_log,
    Reason.NO_PERMITS: _no_permits,
    Reason.SLOW_CONNECTION: _slow_connection,
    Reason.UNACKED_LIMIT: _unacked_limit,
    Reason.KEY_BLOCKED: _key_blocked,
    Reason.DRAINING: _draining,
    Reason.CHUNKS: _chunks,
    Reason.TAKING_OVER: _taking_over,
    Reason.THROTTLED: _throttled,
    Reason.DEAD_LETTERS: _dead_letters,
    Reason.DELAYED: _delayed,
    Reason.OPEN_TRANSACTION: _open_transaction,
}
"""Predicates of the reported reasons. No other reason is reported while nothing is read, moved or delayed."""


class Tally(AtRest):
    """The counts of unacknowledged messages and permits match the pending entries and flow requests of consumers."""

    rule = "tally"
    every = 3

    def turn(self) -> None:
        """See Checker."""
        super().turn()
        if self._turns % self.every:
            return
        total = 0
        for view in self.model.subs():
            core = self.model.subscription(view)
            if core is None:
                continue
            for consumer in consumers_of(core):
                held = sum(each.messages for each in consumer.held.values())
                self.check(consumer.unacked == held, "a consumer holds", held, "not", consumer.unacked, view.name)
            if isinstance(core.dispatcher, MultipleConsumersDispatcher):
                unacked = sum(consumer.unacked for consumer in core.dispatcher._consumers)
                found = core.dispatcher._unacked.messages
                self.check(found == unacked, "a subscription's", unacked, "are", found, view.name)
                total += found
        broker = self.model.box.broker.unacked.messages
        self.check(broker == total, "the broker's", total, "are", broker)

    def look(self, standing: Standing) -> None:
        """See AtRest: the broker's pending entries are those that were sent and not acknowledged."""
        view = standing.view
        if not view.side_by_side:
            return
        held = {at: each.messages for consumer in standing.consumers for at, each in consumer.held.items()}
        right = {each: (view.left.get(each, 0) & ~claimed_bits(view, each)).bit_count() for each in view.owner}
        wrong = held.items() - right.items(), "should be", right.items() - held.items()
        self.check(held == right, "held", view.topic.name, view.name, *wrong)
        for position, owner in view.owner.items():
            self.check(standing.holder[position] is owner.core, "held by another:", view.name, position)
        for conn in self.model.conns.values():
            for consumer in conn.consumers.values():
                if consumer.sub is view:
                    found = consumer.core.permits
                    self.check(found == consumer.permits, "permits:", found, "should be", consumer.permits)
