"""The rules of Key_Shared: the consumer and order of the entries of a key."""

from __future__ import annotations

from typing import Any

from pulsarbox.broker.dispatch.key_shared import KeySharedDispatcher
from pulsarbox.storage.record import Position
from tests.simulation.model.pledges import is_claimed
from tests.simulation.model.views import KEY_SHARED, ConnView, ConsumerView, EntryView
from tests.simulation.rules.checker import Checker


class KeyRule(Checker):
    """Base of rules that inspect every delivery of a Key_Shared subscription."""

    def delivered(self, conn: ConnView, consumer: ConsumerView | None, position: Position, body: Any) -> None:
        """See Checker."""
        if consumer is None or consumer.sub.type != KEY_SHARED or consumer.sub.seeks:
            return
        entry = consumer.sub.topic.entries.get(position)
        dispatcher = consumer.subscription.dispatcher
        assert isinstance(dispatcher, KeySharedDispatcher)
        if entry is not None:
            self.look(consumer, entry, dispatcher)

    def look(self, consumer: ConsumerView, entry: EntryView, dispatcher: KeySharedDispatcher) -> None:
        """Check an entry on its way to a consumer; the view does not yet include it."""
        raise NotImplementedError


class KeyOwner(KeyRule):
    """An entry is dispatched to the consumer that the selector assigns to its slot."""

    rule = "key-owner"

    def look(self, consumer: ConsumerView, entry: EntryView, dispatcher: KeySharedDispatcher) -> None:
        """See KeyRule."""
        selector = dispatcher.selector
        slot = selector.slot(entry.key_hash)
        owner = selector.select(slot)
        self.check(owner is consumer.core, "not who has the slot:", consumer.sub.name, entry.position, slot)


class KeyHolder(KeyRule):
    """The unacknowledged entries of a slot are at one consumer, unless the policy allows out-of-order delivery."""

    rule = "key-holder"

    def look(self, consumer: ConsumerView, entry: EntryView, dispatcher: KeySharedDispatcher) -> None:
        """See KeyRule."""
        sub = consumer.sub
        if sub.policy.out_of_order:
            return
        slot_of, entries = dispatcher.selector.slot, sub.topic.entries
        slot = slot_of(entry.key_hash)
        for position, owner in sub.owner.items():
            if owner is not consumer and slot_of(entries[position].key_hash) == slot:
                self.check(
                    position in sub.unsure, "others hold entries of the slot:", sub.name, entry.position, position
                )


class KeyOrder(KeyRule):
    """The entries of a key are first delivered in order, and none overtakes an earlier entry that waits.

    Delayed entries have an order of their own.
    """

    rule = "key-order"

    def look(self, consumer: ConsumerView, entry: EntryView, dispatcher: KeySharedDispatcher) -> None:
        """See KeyRule."""
        sub, position = consumer.sub, entry.position
        if entry.deliver_at or self.model.pledges.unsettled:
            return
        if not sub.policy.out_of_order and position not in sub.seen and position not in sub.reborn:
            newest = sub.newest.get(entry.key_hash, position)
            self.check(newest <= position, "a key goes backwards:", sub.name, newest, position)
        entries = sub.topic.entries
        moving = consumer.subscription.dead_letters._moving
        for earlier in sub.left:
            if earlier in moving or earlier in sub.reborn or is_claimed(sub, earlier):
                continue  # unacknowledged, but not to be sent, or only after an abort
            same = entries[earlier].key_hash == entry.key_hash and not entries[earlier].deliver_at
            if earlier < position and same and earlier not in sub.owner:
                self.check(earlier in sub.unsure, "sent past one that waits:", sub.name, earlier, position)
