"""Key_Shared: entries of one key go to one consumer at a time, in order; which one, the selector says.

A key's hash falls into a slot, and slots belong to consumers. What cannot be sent now waits behind its own slot, and
the entries of other slots go by, up to the look-ahead limit: so a slow consumer holds back its keys only. Two rules
keep the order of a key. An entry waits while an earlier one of its slot does. And a slot that moved to another
consumer (somebody came or went) is *draining* as long as the one before holds unacknowledged entries of it: its new
consumer gets nothing of it until they are acknowledged, given back, or their holder is gone.

``allowOutOfOrderDelivery`` lifts the second rule. Source: Pulsar's "Key_Shared" subscription type, PIP-34, PIP-379.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from operator import itemgetter

from pulsarbox.broker.consumer import Consumer, Held
from pulsarbox.broker.core import Core
from pulsarbox.broker.dispatch.multiple import MultipleConsumersDispatcher
from pulsarbox.broker.dispatch.replay import At
from pulsarbox.broker.dispatch.selectors.selector import StickyKeySelector
from pulsarbox.broker.dispatch.source import EntrySource
from pulsarbox.broker.dispatch.standstill import Reason
from pulsarbox.broker.dispatch.sticky_hash import sticky_hash
from pulsarbox.clock import Now
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.record import Entry

ANY = 1 << 31
"""More messages than one read brings."""


class Holder:
    """Who holds unacknowledged entries of a slot, and how many."""

    __slots__ = ("consumer", "entries")

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.entries = 1


class Parcel:
    """What one consumer gets of a read."""

    __slots__ = ("entries", "room", "slots")

    def __init__(self, room: int) -> None:
        self.entries: list[Entry] = []
        self.slots: list[int] = []
        self.room = room

    def add(self, entry: Entry, slot: int) -> None:
        """One more entry."""
        self.entries.append(entry)
        self.slots.append(slot)
        self.room -= entry[3]


class KeySharedDispatcher(MultipleConsumersDispatcher):
    """Dispatcher of a Key_Shared subscription."""

    def __init__(
        self,
        cursor: ManagedCursor,
        source: EntrySource,
        core: Core,
        selector: StickyKeySelector[Consumer],
        *,
        draining: bool,
    ) -> None:
        super().__init__(cursor, source, core)
        settings = core.settings
        self.selector = selector
        self._draining = draining
        self._max_read = settings.dispatcherMaxReadBatchSize
        self._per_consumer = settings.keySharedLookAheadMsgInReplayThresholdPerConsumer
        self._per_subscription = settings.keySharedLookAheadMsgInReplayThresholdPerSubscription
        self._owners: dict[int, Consumer | None] = {}
        """What the selector said, until consumers change."""
        self._holders: dict[int, Holder] = {}
        self._ready: dict[Consumer, None] = {}
        """Consumers that can be sent to, as far as is known."""
        self._waiting: dict[At, int] = {}
        """Positions that wait to be sent, and their slots."""
        self._queues: dict[int, deque[At]] = {}
        """The same by slot, in order."""
        self._heaps: dict[Consumer, list[tuple[At, int]]] = {}
        """For each consumer the slots of its own that wait and do not drain, by their first position. What does not
        hold any more is recognised when it is taken."""
        self._stirred: dict[Consumer, None] = {}
        """Consumers that may be able to take something of their heap."""
        self._unowned: set[int] = set()
        """Slots that wait and belong to nobody."""
        self._unheld = False
        """Something was acknowledged while it waited."""

    # Consumers

    def _came(self, consumer: Consumer) -> None:
        losers = self.selector.add(consumer)
        if self._draining:
            consumer.released = self._released
        self._owners.clear()
        for loser in losers:
            self._place_all(slot for _, slot in self._heaps.pop(loser, ()))
        if self._unowned:
            unowned, self._unowned = self._unowned, set()
            self._place_all(unowned)

    def _went(self, consumer: Consumer, held: Mapping[At, Held]) -> None:
        consumer.released = None
        self.selector.remove(consumer)
        self._owners.clear()
        self._ready.pop(consumer, None)
        self._stirred.pop(consumer, None)
        heap = self._heaps.pop(consumer, ())
        slots = {each.slot for each in held.values()}
        for slot in slots:
            self._holders.pop(slot, None)
        self._wait_again(held)
        # Those that drained for the sake of who has gone may have come back to the consumer that was waited for.
        drained = {slot for slot in self._queues if slot in self._holders}
        self._place_all(slots | drained | {slot for _, slot in heap})

    def _may_be_ready(self, consumer: Consumer) -> None:
        if consumer.ready:
            self._ready[consumer] = None
            if consumer in self._heaps:
                self._stirred[consumer] = None

    def _forget(self) -> None:
        self._holders.clear()
        self._waiting.clear()
        self._queues.clear()
        self._heaps.clear()
        self._stirred.clear()
        self._unowned.clear()

    # Slots

    def _owner(self, slot: int) -> Consumer | None:
        """Whose the slot is."""
        try:
            return self._owners[slot]
        except KeyError:
            owner = self._owners[slot] = self.selector.select(slot)
            return owner

    def _drains(self, slot: int, owner: Consumer) -> bool:
        """Whether somebody else holds unacknowledged entries of the slot."""
        holder = self._holders.get(slot)
        return holder is not None and holder.consumer is not owner

    def _released(self, consumer: Consumer, held: Held) -> None:
        """A consumer holds one entry less."""
        holder = self._holders.get(held.slot)
        if holder is not None and holder.consumer is consumer:
            holder.entries -= 1
            if not holder.entries:
                del self._holders[held.slot]
                if held.slot in self._queues:
                    self._place(held.slot)

    def acknowledged(self, consumer: Consumer, now: Now) -> None:
        """See Dispatcher.acknowledged."""
        if self._unacked.released(consumer):
            self._freed(consumer)
            self.dispatch(now)
        elif self._stirred or self._unheld:
            self.dispatch(now)
        self._unacked.others_go_on(now)

    def acknowledged_unheld(self, at: At) -> None:
        """See Dispatcher.acknowledged_unheld: it makes room for looking ahead."""
        slot = self._waiting.pop(at, None)
        if slot is not None:
            self._unheld = True
            self._replay.take(at)
            queue = self._queues[slot]
            was_first = queue[0] == at
            queue.remove(at)
            if not queue:
                del self._queues[slot]
            elif was_first:
                self._place(slot)

    def _place(self, slot: int) -> None:
        """A slot waits: where its consumer finds it, unless it drains."""
        owner = self._owner(slot)
        if owner is None:
            self._unowned.add(slot)
        elif not self._drains(slot, owner):
            heappush(self._heaps.setdefault(owner, []), (self._queues[slot][0], slot))
            if owner in self._ready:
                self._stirred[owner] = None

    def _place_all(self, slots: Iterable[int]) -> None:
        for slot in slots:
            if slot in self._queues:
                self._place(slot)

    # What waits

    def _wait(self, at: At, slot: int) -> None:
        """An entry cannot be sent now, or is to be sent again."""
        if at in self._waiting:
            return
        self._waiting[at] = slot
        queue = self._queues.get(slot)
        if queue is None:
            self._queues[slot] = deque((at,))
            self._place(slot)
        elif at > queue[-1]:
            queue.append(at)
        else:
            first = queue[0]
            self._queues[slot] = deque(sorted((*queue, at)))
            if at < first:
                self._place(slot)

    def _wait_again(self, given_back: Mapping[At, Held]) -> None:
        """In order, so that what is added is nearly always the newest of its slot."""
        for at, held in sorted(given_back.items(), key=itemgetter(0)):
            self._wait(at, held.slot)

    def _drop_first(self, slot: int) -> None:
        """The oldest entry of a slot waits no longer."""
        queue = self._queues[slot]
        del self._waiting[queue.popleft()]
        if queue:
            self._place(slot)
        else:
            del self._queues[slot]

    # Sending

    def _reread(self, now: Now) -> None:
        """See MultipleConsumersDispatcher."""
        self._stirred.update((consumer, None) for consumer in self._heaps if consumer in self._ready)
        self.dispatch(now)

    def _send_all(self, now: Now) -> str:
        unacked = self._unacked
        self._unheld = False
        while not unacked.at_limit():
            if self._stirred:
                consumer, _ = self._stirred.popitem()
                while consumer.ready and self._send_waiting(consumer):
                    if unacked.at_limit():
                        self._stirred[consumer] = None  # others may release the limit
                        break
                continue
            if not self._anybody():
                return Reason.NO_PERMITS
            ahead = min(self._per_consumer * len(self._consumers), self._per_subscription) - len(self._waiting)
            if ahead <= 0:
                return Reason.KEY_BLOCKED
            entries = self._source.take(min(self._max_read, ahead), ANY, now)
            if not entries:
                return Reason.KEY_BLOCKED if self._waiting else Reason.END_OF_LOG
            self._share(entries)
        return Reason.UNACKED_LIMIT

    def _anybody(self) -> bool:
        """Whether somebody can be sent to."""
        while self._ready:
            consumer = next(iter(self._ready))
            if consumer.ready:
                return True
            del self._ready[consumer]  # it comes back with its permits, acknowledgements, or its connection
        return False

    def _share(self, entries: list[Entry]) -> None:
        """Give each of the entries to the consumer of its key, or let it wait."""
        parcels: dict[Consumer, Parcel] = {}
        queues, slot_of = self._queues, self.selector.slot
        for entry in entries:
            slot = slot_of(sticky_hash(entry))
            owner = self._owner(slot)
            if owner is not None and slot not in queues and not self._drains(slot, owner):
                parcel = parcels.get(owner)
                if parcel is None and owner.ready:
                    parcel = parcels[owner] = Parcel(self._unacked.room(owner))
                if parcel is not None and parcel.room > 0:
                    parcel.add(entry, slot)
                    continue
            self._replay.keep(entry)
            self._wait((entry[0], entry[1]), slot)
        for owner, parcel in parcels.items():
            if self._unacked.at_limit():
                for entry, slot in zip(parcel.entries, parcel.slots, strict=True):
                    self._replay.keep(entry)
                    self._wait((entry[0], entry[1]), slot)
            else:
                self._send(owner, parcel)

    def _send_waiting(self, consumer: Consumer) -> bool:
        """Send what waits for a consumer, as far as it is at hand; asks for the others. Whether any was sent."""
        heap = self._heaps.get(consumer)
        parcel = Parcel(self._unacked.room(consumer))
        size = 0
        while heap and len(parcel.entries) < self._max_read and parcel.room > 0 and size < self._max_bytes:
            at, slot = heap[0]
            queue = self._queues.get(slot)
            if queue is None or queue[0] != at or self._owner(slot) is not consumer or self._drains(slot, consumer):
                heappop(heap)  # it is sent, or stands elsewhere now
                continue
            if not self._replay.is_gone(at):
                entry = self._replay.take(at)
                if entry is None:
                    if not parcel.entries:
                        self._replay.read(at, self._waiting)
                    break
                parcel.add(entry, slot)
                size += len(entry[11])
            heappop(heap)
            self._drop_first(slot)
        if not heap:
            self._heaps.pop(consumer, None)
        if parcel.entries:
            self._send(consumer, parcel)
        return bool(parcel.entries)

    def _send(self, consumer: Consumer, parcel: Parcel) -> None:
        self._deliver(consumer, parcel.entries, parcel.slots)
        if self._draining:
            holders = self._holders
            for slot in parcel.slots:
                holder = holders.get(slot)
                if holder is None:
                    holders[slot] = Holder(consumer)
                else:
                    holder.entries += 1
        if not consumer.ready:
            self._ready.pop(consumer, None)

    def why(self) -> str:
        """See Dispatcher.why."""
        reason = super().why()
        if reason == Reason.KEY_BLOCKED:
            if self._replay.reading:
                return Reason.READING
            if self.draining_slots():
                return Reason.DRAINING
        return reason

    def draining_slots(self) -> dict[int, Consumer]:
        """Slots of which entries wait until somebody who has them no longer has acknowledged, and who that is."""
        found = {}
        for slot in self._queues:
            owner, holder = self._owner(slot), self._holders.get(slot)
            if owner is not None and holder is not None and holder.consumer is not owner:
                found[slot] = holder.consumer
        return found
