"""Enforcement of a topic's backlog quotas by size and age: producers are held or rejected, or the backlog is evicted.

Quotas are checked when entries are confirmed, when a mark-delete moves and when the oldest message reaches its age
limit. The size is that of all entries after the slowest durable mark-delete, as in Pulsar.
"""

from itertools import islice
from typing import Final, Protocol

from pulsarbox.broker.backlog.backlog_removals import BacklogRemovals
from pulsarbox.broker.backlog.message_expiry import MessageExpiry
from pulsarbox.broker.backlog.refused_producers import RefusedProducer, RefusedProducers
from pulsarbox.broker.connection.pending_opening import closed_early
from pulsarbox.broker.limits.hold_times import HoldTimes
from pulsarbox.broker.limits.limiter import time_of
from pulsarbox.broker.policies.kinds.backlog_quota import (
    BACKLOG_AGE,
    BACKLOG_SIZE,
    UNLIMITED,
    Follows,
    Quota,
    too_old_at,
)
from pulsarbox.broker.policies.policies import TopicPolicies
from pulsarbox.broker.security.authorization import Authorization
from pulsarbox.broker.security.revocation import check_producer
from pulsarbox.broker.services import HasEvents, HasSettings
from pulsarbox.broker.subscription.position_search import find_first
from pulsarbox.broker.subscription.skip_and_clear import SkipAndClear
from pulsarbox.broker.topic.admission_policies import Admission
from pulsarbox.broker.topic.ledger_reader import LedgerReader
from pulsarbox.broker.topic.maintenance.deadline_index import TopicDeadline
from pulsarbox.broker.topic.producer import AttachedProducer
from pulsarbox.broker.topic.producer_access import ProducerClaim, StoredProducers
from pulsarbox.clock import Now
from pulsarbox.errors import (
    NotFound,
    PreconditionFailed,
    ProducerHeld,
    ProducerQuotaExceeded,
    PulsarBoxError,
    ServiceNotReady,
)
from pulsarbox.quantities import SECONDS
from pulsarbox.storage.record import Position
from pulsarbox.storage.recovery import StoredTopic

NEVER: Final = 1 << 62
LOOK_MS: Final = 1000
"""Minimum interval between checks of delayed messages that have become due."""

NAMED_MAX: Final = 3
"""Producers that an event names."""


class QuotaServices(HasSettings, HasEvents, Protocol):
    """The services of the broker that quotas use."""

    @property
    def authorization(self) -> Authorization:
        """Checks producers that were made to wait."""

    @property
    def removals(self) -> BacklogRemovals:
        """Expiry and eviction in progress."""


class QuotaTopic(Protocol):
    """The topic whose producers the quotas admit or block, and whose subscriptions they evict from."""

    producers: StoredProducers
    admission: Admission

    def clearings(self) -> list[SkipAndClear]:
        """Return the clearings of its subscriptions."""


class QuotaEnforcement:
    """The backlog quotas of one topic in memory."""

    __slots__ = (
        "_asking", "_deadline", "_evicting", "_expiry", "_held", "_ledger", "_policies", "_queued", "_reader",
        "_services", "_stored", "_topic", "_was_old", "age", "blocked", "evictions", "excludes", "full_at", "holds",
        "not_due", "refused", "size",
    )  # fmt: skip

    def __init__(
        self,
        services: QuotaServices,
        topic: QuotaTopic,
        stored: StoredTopic,
        policies: TopicPolicies,
        reader: LedgerReader,
        expiry: MessageExpiry,
        deadline: TopicDeadline,
    ) -> None:
        self._services = services
        self._topic = topic
        self._stored = stored
        self._ledger = stored.ledger
        self._policies = policies
        self._reader = reader
        self._expiry = expiry
        self._deadline = deadline
        self.size = self.age = Quota(UNLIMITED, Follows.HOLD)
        self.full_at = NEVER
        """The running total of bytes from which the quotas must be checked; below it, the size quota is not reached."""
        self.blocked: Quota | None = None
        """The quota that blocks producers, if any."""
        self.holds: HoldTimes | None = None
        """How long producers were blocked; None if they never were."""
        self.evictions = 0
        """Evictions by the size quota since the topic was loaded."""
        self.refused: RefusedProducers | None = None
        """Producers that the quotas have refused; None if they never refused one."""
        self._evicting = False
        self._was_old = False
        self._held: dict[AttachedProducer, ProducerClaim] = {}
        """Producers that wait until the backlog is smaller, in order of arrival."""
        self._queued: dict[AttachedProducer, RefusedProducer] = {}
        """Descriptions of the same producers."""
        self._asking: dict[AttachedProducer, tuple[ProducerClaim, bool]] = {}
        """Producers that wait until the age of the backlog is known."""
        self.excludes = False
        """Whether delayed messages do not count until they are due."""
        self.not_due = 0
        """Bytes excluded as not due, as of the last check plus those published since."""
        self._apply_policies()
        self.full_at = self._full_at()
        expiry.aged.add(self.aged)

    def _apply_policies(self) -> None:
        policies = self._policies
        self.size, self.age = policies.get(BACKLOG_SIZE), policies.get(BACKLOG_AGE)
        if not self._services.settings.backlogQuotaCheckEnabled:
            self.size, self.age = self.size._replace(limit=UNLIMITED), self.age._replace(limit=UNLIMITED)
        self.excludes = self.size.limit >= 0 and self.size.exclude_delayed
        if not self.excludes:
            self.not_due = 0

    def _slowest(self) -> int | None:
        """Return the running total of bytes at the slowest durable mark-delete; None without a durable subscription."""
        return min((cursor.mark_bytes for cursor in self._stored.cursors.values()), default=None)

    def _full_at(self) -> int:
        slowest = self._slowest()
        if slowest is None or self.size.limit < 0:
            return NEVER
        return self._ledger.total_bytes - self._held_behind(slowest) + self.size.limit + self.not_due

    def _held_behind(self, slowest: int) -> int:
        """Return the confirmed and unconfirmed bytes after a running total."""
        ledger = self._ledger
        return ledger.bytes_behind(slowest) + ledger.total_bytes - ledger.confirmed_bytes

    @property
    def used(self) -> int:
        """Bytes after the slowest durable mark-delete, confirmed or not, except those excluded as not due."""
        slowest = self._slowest()
        return self._held_behind(slowest) - self.not_due if slowest is not None else 0

    @property
    def waiting(self) -> int:
        """Number of producers that wait for the quotas."""
        return len(self._held) + len(self._asking)

    # Events

    def check_quotas(self, now: Now) -> None:
        """Check the quotas after a change of policies, subscriptions or acknowledgements."""
        self._apply_policies()
        self._judge(now)

    def confirmed(self, now: Now) -> None:
        """Check the quotas after entries were confirmed and the topic's total has reached ``full_at``."""
        self._judge(now)

    def dropped(self, now: Now) -> None:
        """Check the quotas after ledgers were dropped; the backlog may shrink without a move of mark-delete."""
        if self.blocked is not None:
            self.moved(now)

    def delayed_published(self, size: int, due: int) -> None:
        """Exclude a published entry from the backlog until ``due`` (ms since 1970)."""
        self.not_due += size
        if self.blocked is None:
            self.full_at += size
            if self._ledger.total_bytes >= self.full_at - self.not_due:  # may be full when it is due
                self._deadline.want(due)

    @property
    def evicting(self) -> bool:
        """Whether an eviction is in progress."""
        return self._evicting

    def moved(self, now: Now) -> None:
        """Check the quotas after a durable mark-delete moved while producers are blocked."""
        if self.blocked is self.age or self.age.limit > 0:
            self._expiry.expire_due(now)  # finds the age of the oldest message, then calls ``aged``
        self._judge(now)

    def acknowledged(self, now: Now, *, moved: bool) -> None:
        """Check the quotas after an acknowledgement while producers are blocked; ``moved``: mark-delete moved."""
        if moved or (self.blocked is self.age and self._expiry.has_passed):
            self.moved(now)

    def aged(self, now: Now) -> None:
        """Check the quotas now that the age of the oldest message is known, and admit producers that waited for it."""
        self._judge(now)
        asking, self._asking = self._asking, {}
        for claim, again in asking.values():
            try:
                self.admit(claim, now, again=again)
            except PulsarBoxError as error:
                claim.refused(error, now)

    def refuses(self, now: Now) -> bool:
        """Return whether an entry must not be stored; its producer has been closed then, and its client reconnects."""
        self._judge(now)
        return self.blocked is not None

    # Producers

    def check(self, now: Now, *, again: bool) -> None:
        """Raise ProducerHeld or ProducerQuotaExceeded if a producer is not admitted.

        With ``again`` and a quota that holds producers it is: ``admit`` makes it wait.
        """
        if self._ledger.total_bytes >= self.full_at:
            self._judge(now)
        if self.blocked is None or self.blocked is not self.age or self._age_is_known():
            self._check_blocked(again=again)  # else the age is unknown and ``admit`` waits for it

    def _check_blocked(self, *, again: bool) -> None:
        quota = self.blocked
        if quota is None or (again and quota.follows is Follows.HOLD):
            return
        reason = (
            f"Cannot create producer on topic with backlog quota exceeded: {self._policies.name} {self._reason(quota)}"
        )
        raise (ProducerHeld if quota.follows is Follows.HOLD else ProducerQuotaExceeded)(reason)

    def _reason(self, quota: Quota) -> str:
        if quota is self.age:
            return f"has messages older than its backlog quota of {SECONDS.text(quota.limit // 1000)}"
        return f"has used {size_words(self.used)} of its backlog quota of {size_words(quota.limit).replace('.0 ', ' ')}"

    def admit(self, claim: ProducerClaim, now: Now, *, again: bool) -> None:
        """Admit a producer, or make it wait. Raises as ``check`` and ``Producers.add``."""
        if self.age.limit > 0 and self.age.follows is not Follows.EVICTION and not self._age_is_known():
            self._asking[claim.producer] = (claim, again)
            self._expiry.expire_due(now)
            return
        self.check(now, again=again)
        if self.blocked is None:
            self._admit(claim, now)
        else:
            who = claim.producer
            self._held[who] = claim
            self._queued[who] = RefusedProducer(
                who.name, who.cnx.address, who.producer_id, str(self._policies.name), now.wall, now.wall, is_queued=True
            )
            claim.queued(now)

    def _admit(self, claim: ProducerClaim, now: Now) -> None:
        """Admit a producer after checking its authorization and the policies again. Raises as ``Producers.add``."""
        check_producer(self._services.authorization, claim.producer)
        self._topic.admission.check_producer(encrypted=claim.producer.encrypted)
        self._topic.producers.add(claim, now)
        if self.refused is not None:
            self.refused.forget(claim.producer.cnx.address, claim.producer.producer_id)

    def note_refused(self, name: str, address: str, producer_id: int, now: Now) -> RefusedProducer:
        """Remember a producer that ``check`` or ``admit`` has refused, and report it once."""
        self.refused = self.refused or RefusedProducers()
        found, is_new = self.refused.note(str(self._policies.name), name, address, producer_id, now)
        if is_new and self.blocked is not None:
            self._report(self.blocked, now, found.words)
        return found

    def waiting_producers(self, now: Now) -> list[RefusedProducer]:
        """Return the producers that wait for the quotas: on the broker, or refused and about to try again."""
        return list(self._queued.values()) + (self.refused.waiting(now) if self.refused is not None else [])

    def queued(self, producer: AttachedProducer) -> RefusedProducer | None:
        """Return the entry of a producer that waits on the broker; None if it does not."""
        return self._queued.get(producer)

    def _leave_queue(self, producer: AttachedProducer) -> None:
        queued = self._queued.pop(producer, None)
        if queued is not None:
            queued.is_over = True

    def _age_is_known(self) -> bool:
        return self._expiry.is_known and not self._expiry.under_way

    def forget(self, producer: AttachedProducer, now: Now) -> None:
        """Refuse the claim of a producer that is closed while it waits."""
        self._leave_queue(producer)
        claim = self._held.pop(producer, None) or self._asking.pop(producer, (None, False))[0]
        if claim is not None:
            claim.refused(closed_early("producer"), now)

    def close(self, now: Now) -> None:
        """Reject the waiting producers of a closing topic with an error that lets clients retry."""
        claims = [*self._held.values(), *(claim for claim, _ in self._asking.values())]
        for producer in self._held:
            self._leave_queue(producer)
        self._held.clear()
        self._asking.clear()
        for claim in claims:
            claim.refused(ServiceNotReady("Topic is temporarily unavailable"), now)

    # Decisions

    def _judge(self, now: Now) -> None:
        """Check both quotas, and block producers or evict accordingly."""
        if self.excludes:
            self._exclude(now)
        self.full_at = self._full_at()
        full = self._ledger.total_bytes >= self.full_at
        old = self._is_old(now)  # even if the size decides: updates ``_was_old``
        blocked = None
        if full and self.size.follows is Follows.EVICTION:
            self._evict(now)
        elif full:
            blocked = self.size
        if blocked is None and old and self.age.follows is not Follows.EVICTION:
            blocked = self.age
        self._block(blocked, now)

    def _exclude(self, now: Now) -> None:
        """Update ``not_due``. If the backlog would be too large including it, check again when some of it is due."""
        slowest = min(self._stored.cursors.values(), key=lambda cursor: cursor.mark_delete, default=None)
        if slowest is None:
            self.not_due = 0
            return
        late = self._stored.delays.not_due(slowest.mark_delete, now.wall)
        self.not_due = late.size
        if late.next_at and self._held_behind(slowest.mark_bytes) >= self.size.limit:
            self._deadline.want(max(late.next_at, now.wall + LOOK_MS))

    def _is_old(self, now: Now) -> bool:
        expiry = self._expiry
        if not expiry.under_way:  # else unchanged until ``aged`` is called
            old_at = too_old_at(self.age, expiry.quota_begins)
            self._was_old = bool(old_at) and now.wall >= old_at
        return self._was_old

    def _block(self, quota: Quota | None, now: Now) -> None:
        self._note_hold(quota is not None, now)
        if quota != self.blocked:
            self._report(quota, now)
        self.blocked = quota
        if quota is not None:
            self.full_at = 0  # check every message that still arrives
            for producer in self._topic.producers:
                producer.disconnect(now)
            if quota.follows is Follows.HOLD:
                return
        held, self._held = self._held, {}
        for claim in held.values():
            self._leave_queue(claim.producer)
            try:
                self._check_blocked(again=True)
                self._admit(claim, now)
            except PulsarBoxError as error:
                claim.refused(error, now)

    def _note_hold(self, holds: bool, now: Now) -> None:
        if holds:
            self.holds = self.holds or HoldTimes()
            self.holds.begin(time_of(now))
        elif self.holds is not None:
            self.holds.end(time_of(now))

    def _report(self, quota: Quota | None, now: Now, producer: str = "") -> None:
        """Report a change of the quota that blocks producers, or a ``producer`` that it blocks."""
        events, name = self._services.events, str(self._policies.name)
        if quota is None:
            events.report("quota-released", name, "producers are accepted again", now, used=self.used)
        else:
            holds = quota.follows is Follows.HOLD
            if producer:
                text = f"{self._reason(quota)}: {producer} {'waits' if holds else 'is rejected'}"
            else:
                text = f"{self._reason(quota)}: producers {'wait' if holds else 'are rejected'}{self._present()}"
            policy = "age" if quota is self.age else "size"
            events.report("quota-hit", name, text, now, policy=policy, limit=quota.limit, used=self.used)

    def _present(self) -> str:
        """Return the connected producers for an event, some of them by name."""
        words = [f"'{each.name}' at {each.cnx.address}" for each in islice(self._topic.producers, NAMED_MAX)]
        if not words:
            return ""
        more = len(self._topic.producers) - len(words)
        return f": {', '.join(words)}{f' and {more:,} more' if more else ''}"

    def _evict(self, now: Now) -> None:
        """Evict the oldest messages for all subscriptions, down to the target of the quota."""
        ledger = self._ledger
        until = ledger.total_bytes_before(self.not_due + self.size.target)
        slowest = min(self._stored.cursors.values(), key=lambda cursor: cursor.mark_delete)
        if (
            self._evicting or slowest.mark_bytes >= until or ledger.next(*slowest.mark_delete) > ledger.read_end
        ):  # nothing readable to evict: the rest is unconfirmed or after an open transaction, so ``confirmed`` retries
            return
        self._evicting = True
        self._services.removals.began()
        self.evictions += 1
        text = f"{self._reason(self.size)}: the oldest messages are evicted"
        self._services.events.report(
            "evicted", str(self._policies.name), text, now, used=self.used, limit=self.size.limit
        )

        find_first(
            self._reader,
            slowest.mark_delete,
            lambda entry: entry.total_bytes >= until,
            self._evict_through,
            self._evicted,
            now,
            unread=lambda position: True,  # evicts too little, and the next check continues
        )

    def _evicted(self, error: Exception | None = None) -> None:
        """End an eviction. After an error, the next confirmed entries retry it."""
        self._evicting = False
        self._services.removals.ended()

    def _evict_through(self, position: Position, now: Now) -> None:
        """Evict everything up to and including ``position``."""
        ledger = self._ledger
        behind = ledger.next(*position) if position <= ledger.last_confirmed else position
        self._reader.locate(behind, self._evict_to, lambda error, when: self._evicted(error), now)

    def _evict_to(self, mark: Position, messages: int, size: int, now: Now) -> None:
        clearings = [each for each in self._topic.clearings() if each.cursor.durable]
        behind = [each for each in clearings if each.cursor.mark_delete < mark]
        left, stopped = len(behind) + 1, False

        def done(when: Now) -> None:
            nonlocal left
            left -= 1
            if not left:
                self._evicted()
                if self._stored.in_use and not stopped:
                    self._judge(when)

        for clearing in behind:
            try:
                clearing.evict_to(mark, messages, size, done, now)
            except (PreconditionFailed, NotFound):  # being reset or deleted: retried with the next entries
                stopped = True
                done(now)
        done(now)


def size_words(size: int) -> str:
    """Return a size in its largest fitting unit, with one decimal."""
    for suffix, unit in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= unit:
            return f"{size / unit:,.1f} {suffix}"
    return f"{size} B"
