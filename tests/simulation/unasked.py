"""What the box does by itself, as far as it can be seen: it acknowledges messages, deletes subscriptions,
and says who is active."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

from pulsarbox.broker.policies.kinds.backlog_quota import Quota
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.storage.record import Position
from tests.simulation.views import ConnView, EntryView, SubView, TopicView

if TYPE_CHECKING:
    from tests.simulation.model import Model


def active_changed(model: Model, conn: ConnView, body: Any) -> None:
    """ACTIVE_CONSUMER_CHANGE."""
    conn.notices[body.consumer_id] = body.is_active
    consumer = conn.consumers.get(body.consumer_id)
    if consumer is not None:
        consumer.may_rewind = True


def look(model: Model, topic: TopicView) -> None:
    """See what became of a topic's subscriptions."""
    core = topic.core
    for sub in list(topic.subs.values()):
        if isinstance(core, PersistentTopic) and sub.durable and sub.name not in core.subscriptions:
            _gone(model, sub)  # and with it what it had not acknowledged, maybe whole ledgers of that
        else:
            look_at(model, sub)


def look_at(model: Model, sub: SubView) -> None:
    """Whether what a subscription has not acknowledged itself is behind its mark-delete."""
    mark = sub.cursor.mark_delete
    if sub.seeks or (mark == sub.marked and not model.spares):
        return
    sub.marked = mark
    ledgers = sub.cursor.ledger.ledgers
    one_by_one = _one_by_one(sub) if model.spares else set()
    gone = [each for each in sub.left if (each <= mark or each in one_by_one) and each not in sub.unsure]
    # Nobody needs that somebody who only reads has seen what goes with its ledger.
    ending = model.pledges.ending(sub)
    seen = [each for each in gone if (sub.durable or each.ledger_id in ledgers) and each not in ending]
    if seen:
        model.let_go += len(seen)
        for checker in model.checkers:
            checker.let_go(sub, seen)
    for position in gone:
        sub.set(sub.topic.entries[position], 0)
        sub.acked(position)


def _one_by_one(sub: SubView) -> set[Position]:
    """What is left and was acknowledged by itself. A ledger goes at once with the last of its entries, and then its
    cursors know nothing of them any more."""
    ledgers = sub.cursor.ledger.ledgers
    found = {each for each in sub.left if each.ledger_id not in ledgers}
    positions = sorted(sub.left)
    for acked in sub.cursor.ranges:
        at = bisect_left(positions, (acked.ledger_id, acked.first))
        while at < len(positions) and positions[at] <= (acked.ledger_id, acked.last):
            found.add(positions[at])
            at += 1
    return found


def _gone(model: Model, sub: SubView) -> None:
    """A subscription is no more: a consumer has unsubscribed, or nobody has used it for too long."""
    asked = any(
        request.kind == "UNSUBSCRIBE" and request.sub is sub
        for conn in model.conns.values()
        for request in conn.requests.values()
    )
    if asked:
        return
    model.world.note("subscription gone", sub.topic.name, sub.name)
    if not sub.leaving:
        model.expired_subscriptions += 1
        for checker in model.checkers:
            checker.expired_subscription(sub)
    del sub.topic.subs[sub.name]
    sub.topic.removed[sub.name] = sub


def total_through(topic: TopicView, mark: Position) -> int:
    """The bytes of all entries of a topic up to a position."""
    at = bisect_right(topic.order, mark)
    return topic.entries[topic.order[at - 1]].through if at else 0


def slowest(topic: TopicView) -> Position | None:
    """The mark-delete of the durable subscription that is furthest behind; None without one, or where it moves."""
    subs = [sub for sub in topic.subs.values() if sub.durable]
    if any(sub.seeks for sub in subs):
        return None
    return min((sub.cursor.mark_delete for sub in subs), default=None)


def backlog(topic: TopicView, due: int | None = None) -> int:
    """Durable bytes behind the slowest durable subscription; 0 where there is none. Those that fall due later than
    ``due`` (ms since 1970) do not count, where that is given."""
    mark = slowest(topic)
    if mark is None or not topic.order:
        return 0
    found = topic.entries[topic.order[-1]].through - total_through(topic, mark)
    if due is not None:
        behind = topic.order[bisect_right(topic.order, mark) :]
        found -= sum(entry.size for each in behind if (entry := topic.entries[each]).late and entry.deliver_at > due)
    return found


def oldest(topic: TopicView) -> int:
    """From when on the oldest message of the backlog gets old (ms since 1970); 0 without one."""
    mark = slowest(topic)
    at = bisect_right(topic.order, mark) if mark is not None else len(topic.order)
    return topic.entries[topic.order[at]].begins if at < len(topic.order) else 0


def ripens(entry: EntryView, quota: Quota) -> int:
    """From when on an entry gets old for a quota by age (ms since 1970)."""
    return max(entry.begins, entry.deliver_at) if quota.exclude_delayed else entry.begins


def oldest_for(topic: TopicView, quota: Quota, *, unsure: bool) -> int:
    """From when on the oldest message that counts for a quota by age gets old (ms since 1970); 0 without one. Whether
    those count of which it is not known whether they are acknowledged."""
    if not quota.exclude_delayed:
        return oldest(topic)
    if slowest(topic) is None:
        return 0
    left = {
        position
        for sub in topic.subs.values()
        if sub.durable
        for position, bits in sub.left.items()
        if bits and (unsure or position not in sub.unsure)
    }
    return min((ripens(topic.entries[each], quota) for each in left), default=0)
