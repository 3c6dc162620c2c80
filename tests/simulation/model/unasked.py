"""Actions of the box itself, as observed: message expiry, subscription deletion, and changes of the active consumer."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

from pulsarbox.broker.policies.kinds.backlog_quota import Quota
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.storage.record import Position
from tests.simulation.model.views import ConnView, EntryView, SubView, TopicView

if TYPE_CHECKING:
    from tests.simulation.model.model import Model


def active_changed(model: Model, conn: ConnView, body: Any) -> None:
    """Apply an ACTIVE_CONSUMER_CHANGE."""
    conn.notices[body.consumer_id] = body.is_active
    consumer = conn.consumers.get(body.consumer_id)
    if consumer is not None:
        consumer.may_rewind = True


def look(model: Model, topic: TopicView) -> None:
    """Update the state of a topic's subscriptions."""
    core = topic.core
    for sub in list(topic.subs.values()):
        if isinstance(core, PersistentTopic) and sub.durable and sub.name not in core.subscriptions:
            _gone(model, sub)  # and with it its unacknowledged messages, maybe whole ledgers
        else:
            look_at(model, sub)


def look_at(model: Model, sub: SubView) -> None:
    """Apply the acknowledgements that the box has done by itself, and notify the checkers of them."""
    mark = sub.cursor.mark_delete
    if sub.seeks or (mark == sub.marked and not model.spares):
        return
    sub.marked = mark
    ledgers = sub.cursor.ledger.ledgers
    one_by_one = _one_by_one(sub) if model.spares else set()
    gone = [each for each in sub.left if (each <= mark or each in one_by_one) and each not in sub.unsure]
    # A reader need not have received the entries that are trimmed with their ledger.
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
    """Return the unacknowledged entries that the box has acknowledged individually. A ledger is trimmed with its last
    entry, and then its cursors no longer contain it.
    """
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
    """Apply the deletion of a subscription: a consumer has unsubscribed, or it has expired."""
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
    """Return the size of all entries of a topic up to a position, in bytes."""
    at = bisect_right(topic.order, mark)
    return topic.entries[topic.order[at - 1]].through if at else 0


def slowest(topic: TopicView) -> Position | None:
    """Return the mark-delete position of the slowest durable subscription; None without one, or during a seek."""
    subs = [sub for sub in topic.subs.values() if sub.durable]
    if any(sub.seeks for sub in subs):
        return None
    return min((sub.cursor.mark_delete for sub in subs), default=None)


def backlog(topic: TopicView, due: int | None = None) -> int:
    """Return the durable bytes behind the slowest durable subscription, or 0 without one. Entries due after ``due`` (ms
    since 1970) are excluded if it is given.
    """
    mark = slowest(topic)
    if mark is None or not topic.order:
        return 0
    found = topic.entries[topic.order[-1]].through - total_through(topic, mark)
    if due is not None:
        behind = topic.order[bisect_right(topic.order, mark) :]
        found -= sum(entry.size for each in behind if (entry := topic.entries[each]).late and entry.deliver_at > due)
    return found


def oldest(topic: TopicView) -> int:
    """Return the time from which the oldest backlog message ages (ms since 1970), or 0 without one."""
    mark = slowest(topic)
    at = bisect_right(topic.order, mark) if mark is not None else len(topic.order)
    return topic.entries[topic.order[at]].begins if at < len(topic.order) else 0


def ripens(entry: EntryView, quota: Quota) -> int:
    """Return the time from which an entry ages for a quota by age (ms since 1970)."""
    return max(entry.begins, entry.deliver_at) if quota.exclude_delayed else entry.begins


def oldest_for(topic: TopicView, quota: Quota, *, unsure: bool) -> int:
    """Return the time from which the oldest message ages for a quota by age (ms since 1970), or 0 without one.
    ``unsure`` includes messages whose acknowledgement is uncertain.
    """
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
