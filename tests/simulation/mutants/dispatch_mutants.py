"""Planted bugs in dispatch, for ``test_mutants``: subscription types, limits, and their statistics."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

from pulsarbox.broker.connection.cnx import ServerCnx
from pulsarbox.broker.dispatch import key_shared, single_active
from pulsarbox.broker.dispatch.blocked_reason import Reason
from pulsarbox.broker.dispatch.chunks import ChunkOwners
from pulsarbox.broker.dispatch.key_shared import KeySharedDispatcher
from pulsarbox.broker.dispatch.multiple_consumers import MultipleConsumersDispatcher
from pulsarbox.broker.dispatch.shared import SharedDispatcher
from pulsarbox.broker.dispatch.single_active import SingleActiveDispatcher
from pulsarbox.broker.dispatch.unacked_limits import BrokerUnacked, Unacked
from pulsarbox.broker.limits.dispatch_throttle import Grant
from pulsarbox.broker.subscription.acknowledgement import AcknowledgementHandling
from pulsarbox.broker.subscription.consumer import Consumer
from pulsarbox.clock import Now
from pulsarbox.storage.record import Entry
from tests.simulation.mutants.registry import mutant

# Exclusive and Failover


@mutant("one-active")
def an_exclusive_subscription_takes_a_second_consumer(patch: pytest.MonkeyPatch) -> None:
    original = SingleActiveDispatcher.add

    def add(self: SingleActiveDispatcher, consumer: Consumer, now: Now) -> None:
        before, self._consumers = self._consumers, []
        try:
            original(self, consumer, now)
        finally:
            self._consumers = before + self._consumers

    patch.setattr(SingleActiveDispatcher, "add", add)


@mutant("one-active")
def failover_looks_at_names_only(patch: pytest.MonkeyPatch) -> None:
    def choose_active(ranked: list[Consumer], **_: Any) -> Consumer | None:
        return min(ranked, key=lambda each: each.name, default=None)

    patch.setattr(single_active, "choose_active", choose_active)


@mutant("one-active")
def failover_tells_only_newcomers(patch: pytest.MonkeyPatch) -> None:
    original = SingleActiveDispatcher._activate

    def take_over(self: SingleActiveDispatcher, now: Now) -> None:
        with pytest.MonkeyPatch.context() as for_now:
            for_now.setattr(single_active, "notify", lambda consumer, active: None)
            original(self, now)

    patch.setattr(SingleActiveDispatcher, "_activate", take_over)


@mutant("one-active")
def failover_does_not_wait_before_it_takes_over(patch: pytest.MonkeyPatch) -> None:
    original = SingleActiveDispatcher.flow

    def flow(self: SingleActiveDispatcher, consumer: Consumer, now: Now) -> None:
        timer, self._activate_at = self._activate_at, None
        original(self, consumer, now)
        self._activate_at = timer

    patch.setattr(SingleActiveDispatcher, "flow", flow)


# Shared


@mutant("turns")
def priorities_are_ignored(patch: pytest.MonkeyPatch) -> None:
    def may_be_ready(self: SharedDispatcher, consumer: Consumer) -> None:
        for level in range(3):
            self._levels.setdefault(level, OrderedDict())
        self._levels = dict(sorted(self._levels.items(), reverse=True))
        self._levels[consumer.priority_level][consumer] = None

    patch.setattr(SharedDispatcher, "_may_be_ready", may_be_ready)


@mutant("turns")
def who_has_had_a_turn_has_the_next_as_well(patch: pytest.MonkeyPatch) -> None:
    original = SharedDispatcher._deliver

    def deliver(self: SharedDispatcher, consumer: Consumer, entries: list[Entry], slots: Any) -> None:
        original(self, consumer, entries, slots)
        others = [each for each in self._levels[consumer.priority_level] if each is not consumer]
        self._levels[consumer.priority_level] = OrderedDict.fromkeys([consumer, *others])
        self._levels[consumer.priority_level].move_to_end = lambda key, last=True: None  # type: ignore[method-assign]

    patch.setattr(SharedDispatcher, "_deliver", deliver)


@mutant("turns")
def a_turn_has_no_end(patch: pytest.MonkeyPatch) -> None:
    original = SharedDispatcher._take

    def take(self: SharedDispatcher, consumer: Consumer, grant: Grant, now: Now) -> list[Entry] | None:
        self._bounds.turn_entries = 1000
        return original(self, consumer, grant, now)

    patch.setattr(SharedDispatcher, "_take", take)


@mutant("chunks")
def chunks_go_to_whose_turn_it_is(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ChunkOwners, "owner", lambda self, entry, turn: turn)


@mutant("liveness", "why")
def chunks_that_wait_are_sent_with_the_next_turn_only(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SharedDispatcher, "_send_pinned", lambda self, grant: False)


# Key_Shared


@mutant("key-holder", "key-order")
def draining_is_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(KeySharedDispatcher, "_drains", lambda self, slot, owner: False)


@mutant("key-order")
def an_entry_goes_past_a_waiting_one_of_its_key(patch: pytest.MonkeyPatch) -> None:
    original = KeySharedDispatcher._share

    def share(self: KeySharedDispatcher, entries: list[Entry]) -> None:
        counts, self._counts = self._counts, {}
        original(self, entries)
        for slot, count in self._counts.items():
            counts[slot] = counts.get(slot, 0) + count
        self._counts = counts

    patch.setattr(KeySharedDispatcher, "_share", share)


@mutant("liveness", "why")
def a_stirred_consumer_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    original = KeySharedDispatcher._may_be_ready

    def may_be_ready(self: KeySharedDispatcher, consumer: Consumer) -> None:
        original(self, consumer)
        self._stirred.pop(consumer, None)

    patch.setattr(KeySharedDispatcher, "_may_be_ready", may_be_ready)


@mutant("key-order")
def what_a_leaver_held_is_put_behind_what_waits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(key_shared, "position_of", lambda waiting: 0)


@mutant("key-owner")
def who_had_a_key_keeps_it(patch: pytest.MonkeyPatch) -> None:
    original = KeySharedDispatcher._consumer_added

    def came(self: KeySharedDispatcher, consumer: Consumer, now: Now) -> None:
        owners = dict(self._owners)
        original(self, consumer, now)
        self._owners.update(owners)

    patch.setattr(KeySharedDispatcher, "_consumer_added", came)


@mutant("liveness", "why")
def what_is_parked_stays_so_when_consumers_change(patch: pytest.MonkeyPatch) -> None:
    original = KeySharedDispatcher._place_again

    def place_again(self: KeySharedDispatcher, *consumers: Consumer) -> None:
        parked, self._parked = self._parked, {}
        original(self, *consumers)
        for slot, waiting in parked.items():
            self._parked.setdefault(slot, []).extend(waiting)

    patch.setattr(KeySharedDispatcher, "_place_again", place_again)


@mutant("liveness", "why")
def a_drained_key_is_not_noticed(patch: pytest.MonkeyPatch) -> None:
    original = KeySharedDispatcher._released

    def released(self: KeySharedDispatcher, consumer: Consumer, held: Any) -> None:
        parked = self._parked.pop(held.slot, None)
        original(self, consumer, held)
        if parked is not None:
            self._parked[held.slot] = parked

    patch.setattr(KeySharedDispatcher, "_released", released)


# Counts and limits


@mutant("tally", "unacked-limits", "liveness")
def acknowledged_messages_stay_on_the_tally(patch: pytest.MonkeyPatch) -> None:
    original = Unacked._count

    def count(self: Unacked, consumer: Consumer) -> None:
        if consumer.unacked > consumer.counted:
            original(self, consumer)

    patch.setattr(Unacked, "_count", count)


@mutant("tally")
def a_leaver_stays_on_the_tally_of_the_broker(patch: pytest.MonkeyPatch) -> None:
    original = MultipleConsumersDispatcher.remove

    def remove(self: MultipleConsumersDispatcher, consumer: Consumer, now: Now, *, lost: bool = False) -> None:
        self._unacked._broker.messages += consumer.unacked
        original(self, consumer, now, lost=lost)

    patch.setattr(MultipleConsumersDispatcher, "remove", remove)


@mutant("unacked-limits", "liveness")
def a_limit_is_never_released(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Unacked, "released", lambda self, consumer: bool(self._count(consumer)))


@mutant("unacked-limits")
def the_limit_of_a_subscription_is_ignored(patch: pytest.MonkeyPatch) -> None:
    original = Unacked.sent

    def sent(self: Unacked, consumer: Consumer) -> None:
        original(self, consumer)
        self.blocked = False

    patch.setattr(Unacked, "sent", sent)


@mutant("unacked-limits")
def a_limit_is_released_by_the_first_acknowledgement(patch: pytest.MonkeyPatch) -> None:
    original = Unacked.released

    def released(self: Unacked, consumer: Consumer) -> bool:
        freed, consumer.blocked = consumer.blocked, False
        return original(self, consumer) or freed

    patch.setattr(Unacked, "released", released)


@mutant("unacked-limits")
def the_limit_of_the_broker_is_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BrokerUnacked, "sent", lambda self: None)


@mutant("liveness", "why")
def a_subscription_down_to_its_share_still_waits_for_the_broker(patch: pytest.MonkeyPatch) -> None:
    original = Unacked.released

    def released(self: Unacked, consumer: Consumer) -> bool:
        self._broker_holds = False
        return original(self, consumer)

    patch.setattr(Unacked, "released", released)


@mutant("redelivery-counts")
def a_close_counts_as_a_redelivery(patch: pytest.MonkeyPatch) -> None:
    original = MultipleConsumersDispatcher.remove

    def remove(self: MultipleConsumersDispatcher, consumer: Consumer, now: Now, *, lost: bool = False) -> None:
        original(self, consumer, now, lost=True)

    patch.setattr(MultipleConsumersDispatcher, "remove", remove)


@mutant("redelivery-counts", "reloaded")
def a_lost_connection_does_not_count(patch: pytest.MonkeyPatch) -> None:
    original = ServerCnx.closed

    def closed(self: ServerCnx, now: Now) -> None:
        for consumer in list(self.consumers.values()):
            consumer.closed = True
            consumer.subscription.remove_consumer(consumer, now)
        original(self, now)

    patch.setattr(ServerCnx, "closed", closed)


@mutant("tally", "backlog", "liveness", seeds=(142,))
def what_others_hold_cannot_be_acknowledged_away(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AcknowledgementHandling, "_holder", lambda self, position: None)


# Reported state


@mutant("why")
def who_is_blocked_is_said_to_ask_for_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MultipleConsumersDispatcher, "blocked_reason", lambda self: self.standstill.reason)


@mutant("why")
def everything_that_waits_is_said_to_drain(patch: pytest.MonkeyPatch) -> None:
    original = KeySharedDispatcher.blocked_reason

    def why(self: KeySharedDispatcher) -> str:
        reason = original(self)
        return Reason.DRAINING if reason == Reason.KEY_BLOCKED else reason

    patch.setattr(KeySharedDispatcher, "blocked_reason", why)


@mutant("why")
def what_waits_again_is_said_to_be_the_end(patch: pytest.MonkeyPatch) -> None:
    original = KeySharedDispatcher._send_all

    def send_all(self: KeySharedDispatcher, now: Now) -> str:
        reason = original(self, now)
        return Reason.END_OF_LOG if reason == Reason.KEY_BLOCKED else reason

    patch.setattr(KeySharedDispatcher, "_send_all", send_all)
