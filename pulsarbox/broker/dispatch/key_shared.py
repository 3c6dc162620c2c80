"""Key_Shared: entries of one key go to one consumer at a time, in order; the selector assigns keys to consumers.

A key's hash maps to a slot, and consumers own slots. An entry that cannot be sent waits behind its slot while entries
of other slots pass it, up to the look-ahead limit: a slow consumer delays only its own keys. Two rules keep the order
of a key. An entry waits while an earlier one of its slot does. And a slot that moved because a consumer joined or left
is *draining* while its previous owner holds unacknowledged entries of it. The new owner gets none of its entries until
they are acknowledged or given back, or their holder disconnects.

``allowOutOfOrderDelivery`` lifts the second rule. Source: Pulsar's "Key_Shared" subscription type, PIP-34, PIP-379.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, islice
from operator import attrgetter
from typing import Final, NamedTuple

from pulsarbox.broker.dispatch.blocked_reason import Reason
from pulsarbox.broker.dispatch.compatibility import assign_slots
from pulsarbox.broker.dispatch.entry_source import EntrySource
from pulsarbox.broker.dispatch.multiple_consumers import DispatchServices, MultipleConsumersDispatcher
from pulsarbox.broker.dispatch.pinned_hash import PinnedHash
from pulsarbox.broker.dispatch.replay import KEPT_READS, At
from pulsarbox.broker.dispatch.selectors.selector import StickyKeySelector
from pulsarbox.broker.dispatch.sticky_hash import KEY, sticky_hash
from pulsarbox.broker.limits.dispatch_throttle import ALL, ANY, Grant, Throttle
from pulsarbox.broker.subscription.consumer import Consumer, HeldEntry
from pulsarbox.clock import Now
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.record import Entry


class WaitingEntry(NamedTuple):
    """An entry that cannot be sent now, or is to be redelivered."""

    at: At
    slot: int
    entry: Entry | None
    """The entry itself; None if it must be fetched again."""


new_waiting: Final = tuple.__new__
"""Faster than the NamedTuple's constructor: most entries wait while one of several consumers is slow."""

position_of = attrgetter("at")


class SlotHolder:
    """The consumer with unacknowledged entries of a slot, their number, and how often other entries waited for them."""

    __slots__ = ("blocked", "consumer", "entries")

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.entries = 1
        self.blocked = 0


class Draining(NamedTuple):
    """A slot that moved away from a consumer which still holds entries of it."""

    slot: int
    entries: int
    blocked: int
    """How often an entry of the slot could not go to its new consumer."""


class Parcel:
    """The entries of one read for one consumer."""

    __slots__ = ("entries", "room", "slots")

    def __init__(self, room: int) -> None:
        self.entries: list[Entry] = []
        self.slots: list[int] = []
        self.room = room

    def add(self, entry: Entry, slot: int) -> None:
        """Add an entry."""
        self.entries.append(entry)
        self.slots.append(slot)
        self.room -= entry.num_messages


class KeySharedDispatcher(MultipleConsumersDispatcher):
    """Dispatcher of a Key_Shared subscription."""

    def __init__(
        self,
        cursor: ManagedCursor,
        source: EntrySource,
        services: DispatchServices,
        throttle: Throttle,
        selector: StickyKeySelector[Consumer],
        *,
        draining: bool,
        hash32: Callable[[bytes], int] | None = None,
    ) -> None:
        """``hash32``: the hash of keys if it is not Murmur3."""
        super().__init__(cursor, source, services, throttle)
        settings = services.settings
        self.selector = selector
        self._draining = draining
        self._hash = PinnedHash(hash32) if hash32 is not None else None
        self._per_consumer = settings.keySharedLookAheadMsgInReplayThresholdPerConsumer
        self._per_subscription = settings.keySharedLookAheadMsgInReplayThresholdPerSubscription
        self._owners: dict[int, Consumer | None] = {}
        """Cached answers of the selector, until the consumers change."""
        self._holders: dict[int, SlotHolder] = {}
        self._drained: dict[Consumer, int] = {}
        """Number of slots that moved away from each consumer and were then fully drained."""
        self._ready: dict[Consumer, None] = {}
        """Consumers believed ready to receive."""
        self._stirred: dict[Consumer, None] = {}
        """Ready consumers that may be able to receive waiting entries."""
        self._queues: dict[Consumer, deque[WaitingEntry]] = {}
        """Entries that wait for their consumer, in order."""
        self._parked: dict[int, list[WaitingEntry]] = {}
        """Entries whose slot is draining or has no owner."""
        self._counts: dict[int, int] = {}
        """Waiting entries of both kinds by slot."""
        self._waiting = 0
        """Number of all waiting entries."""
        self._kept_bytes = 0
        """Bytes of the waiting entries kept in memory."""
        self._unheld = False
        """Whether waiting entries may have been acknowledged."""

    # Consumers

    def _consumer_added(self, consumer: Consumer, now: Now) -> None:
        losers = assign_slots(self.selector, consumer, now)
        if self._draining:
            consumer.released = self._released
        self._place_again(*losers)

    def _consumer_removed(self, consumer: Consumer, held: Mapping[At, HeldEntry]) -> None:
        consumer.released = None
        self._drained.pop(consumer, None)
        losers = self.selector.remove(consumer) or ()
        self._ready.pop(consumer, None)
        for each in held.values():
            self._holders.pop(each.slot, None)
        self._place_again(consumer, *losers)
        self._wait_again(held)

    def _place_again(self, *consumers: Consumer) -> None:
        """Place waiting entries again after consumers have lost slots, including entries without an owner."""
        self._owners.clear()
        moved = [each for consumer in consumers for each in self._queues.pop(consumer, ())]
        for parked in self._parked.values():
            moved += parked
        self._parked.clear()
        for consumer in consumers:
            self._stirred.pop(consumer, None)
        self._place(moved)

    def _may_be_ready(self, consumer: Consumer) -> None:
        if consumer.ready:
            self._ready[consumer] = None
            if consumer in self._queues:
                self._stirred[consumer] = None

    @property
    def waiting_again(self) -> int:
        """See MultipleConsumersDispatcher.waiting_again."""
        return self._waiting

    def _forget(self) -> None:
        self._holders.clear()
        self._stirred.clear()
        self._queues.clear()
        self._parked.clear()
        self._counts.clear()
        self._waiting = self._kept_bytes = 0

    # Slots

    def _owner(self, slot: int) -> Consumer | None:
        """Return the slot's owner."""
        try:
            return self._owners[slot]
        except KeyError:
            owner = self._owners[slot] = self.selector.select(slot)
            return owner

    def _slot_of(self, entry: Entry) -> int:
        """See MultipleConsumersDispatcher._slot_of."""
        if self._hash is not None:
            return self.selector.slot(self._hash.of(entry))
        return self.selector.slot(entry.key_hash if entry.flags & KEY else sticky_hash(entry))

    def _unpin_idle(self, pinned: PinnedHash) -> None:
        """Unpin the keys without waiting or unacknowledged entries."""
        waiting = {each.at for each in chain(*self._queues.values(), *self._parked.values())}
        pinned.unpin_except(waiting, *(consumer.held for consumer in self._consumers))

    def _drains(self, slot: int, owner: Consumer) -> bool:
        """Return whether another consumer holds unacknowledged entries of the slot, and count the blocked entry."""
        holder = self._holders.get(slot)
        if holder is None or holder.consumer is owner:
            return False
        holder.blocked += 1
        return True

    def _released(self, consumer: Consumer, held: HeldEntry) -> None:
        """Update the slot's holder after a consumer released an entry."""
        holder = self._holders.get(held.slot)
        if holder is not None and holder.consumer is consumer:
            holder.entries -= 1
            if not holder.entries:
                del self._holders[held.slot]
                if self._owner(held.slot) is not consumer:
                    self._drained[consumer] = self._drained.get(consumer, 0) + 1
                if held.slot in self._parked:
                    self._place(self._parked.pop(held.slot))

    def acknowledged(self, consumer: Consumer, now: Now) -> None:
        """See Dispatcher.acknowledged."""
        if self._unacked.released(consumer):
            self._freed(consumer)
            self.dispatch(now)
        elif self._stirred or self._unheld:
            self.dispatch(now)
        self._unacked.resume_others(now)

    def acknowledged_unheld(self, at: At) -> None:
        """See Dispatcher.acknowledged_unheld. An acknowledged waiting entry frees look-ahead."""
        self._unheld = bool(self._waiting)

    # Waiting entries

    def _wait_again(self, given_back: Mapping[At, HeldEntry]) -> None:
        for held in given_back.values():
            self._waits(held.slot)
        self._place([WaitingEntry(at, held.slot, None) for at, held in given_back.items()])

    def _wait(self, entry: Entry, slot: int, owner: Consumer | None) -> None:
        """Queue an entry that was just read and cannot be sent now; it is newer than all waiting ones."""
        kept = None
        if self._kept_bytes < KEPT_READS * self._bounds.read_bytes:
            kept = entry
            self._kept_bytes += len(entry.body)
        waiting = new_waiting(WaitingEntry, ((entry.ledger_id, entry.entry_id), slot, kept))
        self._waits(slot)
        if owner is None or self._drains(slot, owner):
            self._parked.setdefault(slot, []).append(waiting)
            return
        queue = self._queues.get(owner)
        if queue is None:
            queue = self._queues[owner] = deque()
        queue.append(waiting)
        if owner in self._ready:
            self._stirred[owner] = None

    def _place(self, entries: Iterable[WaitingEntry]) -> None:
        """Queue entries behind their owner, or park them by slot."""
        by_owner: dict[Consumer, list[WaitingEntry]] = {}
        for each in entries:
            owner = self._owner(each.slot)
            if owner is None or self._drains(each.slot, owner):
                self._parked.setdefault(each.slot, []).append(each)
            else:
                by_owner.setdefault(owner, []).append(each)
        for owner, added in by_owner.items():
            self._queues[owner] = deque(sorted((*self._queues.get(owner, ()), *added), key=position_of))
            if owner in self._ready:
                self._stirred[owner] = None

    def _waits(self, slot: int) -> None:
        """Count a waiting entry."""
        self._waiting += 1
        self._counts[slot] = self._counts.get(slot, 0) + 1

    def _drop_acknowledged(self) -> bool:
        """Drop waiting entries that have been acknowledged; return whether there may have been any.

        Examines every waiting entry, so only call it when dispatching would stop otherwise.
        """
        if not self._unheld:
            return False
        self._unheld = False
        is_acked, is_claimed = self._cursor.is_acked, self._cursor.is_claimed
        left: list[WaitingEntry] = []
        for each in chain(*self._queues.values(), *self._parked.values()):
            if is_acked(*each.at) or is_claimed(*each.at):
                self._waits_no_longer(each)
            else:
                left.append(each)
        self._queues.clear()
        self._parked.clear()
        self._place(left)
        return True

    def _waits_no_longer(self, waiting: WaitingEntry) -> None:
        """Stop counting a waiting entry that is sent or obsolete."""
        slot = waiting.slot
        self._waiting -= 1
        if waiting.entry is not None:
            self._kept_bytes -= len(waiting.entry.body)
        count = self._counts[slot]
        if count == 1:
            del self._counts[slot]
        else:
            self._counts[slot] = count - 1

    # Sending

    def _reread(self, now: Now) -> None:
        """See MultipleConsumersDispatcher._reread."""
        self._stirred.update((consumer, None) for consumer in self._queues if consumer in self._ready)
        self.dispatch(now)

    def _send_all(self, now: Now) -> str:
        unacked, grant = self._unacked, ALL
        while not unacked.at_limit():
            if self._letters_wait:
                return Reason.DEAD_LETTERS
            if self._throttle.limiters:
                if not self._anybody():
                    return Reason.NO_PERMITS
                granted = self._granted(self._bounds.read_entries, now)
                if granted is None:
                    return self._held_back(now)
                grant = granted
            if self._stirred:
                self._send_stirred(grant)
                continue
            if not self._anybody():
                return Reason.NO_PERMITS
            ahead = self._read_ahead()
            if ahead <= 0:
                if self._drop_acknowledged():
                    continue
                return Reason.KEY_BLOCKED
            entries = self._take(ahead, grant, now)
            if not entries:
                if self._drop_acknowledged():
                    continue
                return Reason.KEY_BLOCKED if self._waiting else Reason.END_OF_LOG
            self._share(self._living(entries))
        return Reason.UNACKED_LIMIT

    def _take(self, ahead: int, grant: Grant, now: Now) -> list[Entry]:
        """Return the next entries, limited to those that may wait behind their keys."""
        if grant is ALL:
            return self._source.next_entries(min(self._bounds.read_entries, ahead), ANY, now)
        return self._source.next_entries(min(grant.entries, ahead), grant.messages, now, grant.bytes)

    def _send_stirred(self, grant: Grant) -> None:
        """Send waiting entries to one stirred consumer; only once if dispatch rates apply."""
        consumer, _ = self._stirred.popitem()
        while consumer.ready and self._send_waiting(consumer, grant):
            if self._unacked.at_limit() or grant is not ALL or self._letters_wait:
                self._stirred[consumer] = None  # other consumers, or the disk, may release what blocks it
                break

    def _read_ahead(self) -> int:
        """Return how many more entries may wait behind their keys."""
        return min(self._per_consumer * len(self._consumers), self._per_subscription) - self._waiting

    def _held_back(self, now: Now) -> str:
        """Return why dispatching stops: no entries, only blocked keys, or a used-up dispatch rate."""
        if not self._stirred and not self._unheld and (self._source.exhausted or self._read_ahead() <= 0):
            return Reason.KEY_BLOCKED if self._waiting else Reason.END_OF_LOG
        self._source.prepare()
        self._throttle.wait(now)
        return Reason.THROTTLED

    def _anybody(self) -> bool:
        """Return whether any consumer is ready."""
        while self._ready:
            consumer = next(iter(self._ready))
            if consumer.ready:
                return True
            del self._ready[consumer]  # added again by permits, acknowledgements or a writable connection
        return False

    def _share(self, entries: list[Entry]) -> None:
        """Send each entry to the owner of its slot, or queue it."""
        parcels: dict[Consumer, Parcel] = {}
        counts, holders, owners, slot_of = self._counts, self._holders, self._owners, self.selector.slot
        pinned = self._hash
        if pinned is not None and pinned.full:
            self._unpin_idle(pinned)
        for entry in entries:
            if pinned is None:  # as _slot_of
                slot = slot_of(entry.key_hash if entry.flags & KEY else sticky_hash(entry))
            else:
                slot = slot_of(pinned.of(entry))
            owner = owners[slot] if slot in owners else self._owner(slot)
            if owner is not None and slot not in counts:
                holder = holders.get(slot)
                if holder is None or holder.consumer is owner:
                    parcel = parcels.get(owner)
                    if parcel is None and owner.ready:
                        parcel = parcels[owner] = Parcel(self._unacked.room(owner))
                    if parcel is not None and parcel.room > 0:
                        parcel.add(entry, slot)
                        continue
            self._wait(entry, slot, owner)
        for owner, parcel in parcels.items():
            if self._unacked.at_limit():
                for slot in parcel.slots:
                    self._waits(slot)
                at_hand = zip(parcel.entries, parcel.slots, strict=True)
                self._place(WaitingEntry((entry.ledger_id, entry.entry_id), slot, None) for entry, slot in at_hand)
            else:
                self._send(owner, parcel)

    def _send_waiting(self, consumer: Consumer, grant: Grant) -> bool:
        """Send a consumer's waiting entries that are in memory, and read the others; return whether any were taken."""
        queue = self._queues.get(consumer)
        parcel = Parcel(self._unacked.room(consumer))
        entries, mark = parcel.entries, self._cursor.mark_delete
        size, moved = 0, False
        may_be_dead = self.dead_letters is not None and bool(self._cursor.redeliveries)
        most, enough = self._bounds.read_entries, self._bounds.read_bytes
        if grant is not ALL:
            most, enough = min(most, grant.entries), min(enough, grant.bytes)
            parcel.room = min(parcel.room, grant.messages)
        while queue and len(entries) < most and parcel.room > 0 and size < enough:
            if moved and self._letters_wait:
                break
            waiting = queue[0]
            at, slot, entry = waiting
            # Entries in memory were unacknowledged when queued. Testing each again would cost as much as sending it.
            if at > mark and not ((entry is None or self._unheld) and self._replay.is_gone(at)):
                entry = entry or self._replay.take(at)
                if entry is None:
                    if not entries:
                        self._replay.read(at, {each.at for each in islice(queue, self._bounds.read_entries)})
                    break
                if may_be_dead and not self._living([entry]):
                    moved = True
                else:
                    parcel.add(entry, slot)
                    size += len(entry.body)
            queue.popleft()
            self._waits_no_longer(waiting)
        if not queue:
            self._queues.pop(consumer, None)
        if entries:
            self._send(consumer, parcel)
        return moved or bool(entries)

    def _send(self, consumer: Consumer, parcel: Parcel) -> None:
        self._deliver(consumer, parcel.entries, parcel.slots)
        if self._draining:
            holders = self._holders
            for slot in parcel.slots:
                holder = holders.get(slot)
                if holder is None:
                    holders[slot] = SlotHolder(consumer)
                else:
                    holder.entries += 1
        if not consumer.ready:
            self._ready.pop(consumer, None)

    def blocked_reason(self) -> str:
        """See Dispatcher.blocked_reason."""
        reason = super().blocked_reason()
        if reason == Reason.KEY_BLOCKED:
            if self._replay.reading:
                return Reason.READING
            if self.draining_slots():
                return Reason.DRAINING
        return reason

    def draining(self) -> dict[Consumer, list[Draining]]:
        """Return the slots that moved away from consumers still holding entries of them, in order."""
        found: dict[Consumer, list[Draining]] = {}
        for slot, holder in sorted(self._holders.items()):
            if self._owner(slot) is not holder.consumer:
                found.setdefault(holder.consumer, []).append(Draining(slot, holder.entries, holder.blocked))
        return found

    def drained_by(self, consumer: Consumer) -> int:
        """Return how many moved slots the consumer has drained since it connected."""
        return self._drained.get(consumer, 0)

    def draining_slots(self) -> dict[int, Consumer]:
        """Return the parked slots that are draining, with the consumers that must acknowledge first."""
        holders = self._holders
        return {slot: holders[slot].consumer for slot in self._parked if slot in holders}

    # Inspection

    def owner_of(self, slot: int) -> Consumer | None:
        """Return the slot's current owner."""
        return self._owner(slot)

    def holder_of(self, slot: int) -> Consumer | None:
        """Return the consumer with unacknowledged entries of a slot; None if there is none or order is not kept."""
        holder = self._holders.get(slot)
        return None if holder is None else holder.consumer

    def waiting_by_slot(self) -> dict[int, int]:
        """Return the number of waiting entries by slot; read-only."""
        return self._counts

    def held_by_slot(self) -> dict[int, int]:
        """Return the number of unacknowledged entries by slot."""
        return {slot: holder.entries for slot, holder in self._holders.items()}

    def keys_at_hand(self, slots: set[int]) -> dict[int, Entry]:
        """Return a waiting entry in memory for each of the slots that has one."""
        found: dict[int, Entry] = {}
        for waiting in chain(*self._queues.values(), *self._parked.values()):
            if waiting.entry is not None and waiting.slot in slots:
                found.setdefault(waiting.slot, waiting.entry)
        return found
