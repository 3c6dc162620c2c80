"""Internal statistics of a topic: its ledgers and cursors, in Pulsar's format."""

from itertools import islice
from typing import Any, Final

from pulsarbox.broker.host import Host
from pulsarbox.broker.subscription.offloaded_ledgers import is_offloaded, ranges_of
from pulsarbox.broker.subscription.subscription import Subscription
from pulsarbox.broker.topic.non_persistent import NonPersistentTopic
from pulsarbox.broker.topic.topic import PersistentTopic, Topic
from pulsarbox.server.http.statistics.ledger_metadata import under_replicated
from pulsarbox.server.http.statistics.topic_stats import timestamp
from pulsarbox.storage.catalog import Catalog, cursor_key, topic_key

RANGES_SHOWN: Final = 10_000
"""Maximum acknowledged ranges listed per cursor; ``totalNonContiguousDeletedMessagesRange`` counts all."""

_NO_LEDGER: Final = {"ledgerId": -1, "entries": -1, "size": -1, "offloaded": False, "underReplicated": False}


def internal_stats(topic: Topic, catalog: Catalog, host: Host) -> dict[str, Any]:
    """Return the ledgers and cursors of a topic. As in Pulsar, the open ledger is listed with 0 entries."""
    if isinstance(topic, NonPersistentTopic):
        return _not_stored(topic)
    assert isinstance(topic, PersistentTopic)
    ledger = topic.ledger
    row = catalog.get(topic_key(str(topic.name))) or {}
    last, current = ledger.last_confirmed, ledger.current
    lacking = under_replicated(host, ledger.ledgers)
    offloaded = ranges_of(topic.subscriptions.values())
    waiting = sum(_waits(each) for each in topic.subscriptions.values())
    return {
        "entriesAddedCounter": ledger.confirmed_entries,
        "numberOfEntries": ledger.confirmed_entries,
        "totalSize": ledger.size,
        "currentLedgerEntries": current.confirmed,
        "currentLedgerSize": current.size,
        "lastLedgerCreatedTimestamp": timestamp(current.created),
        "waitingCursorsCount": waiting,
        "pendingAddEntriesCount": sum(each.entries - each.confirmed for each in ledger.ledgers.values()),
        "lastConfirmedEntry": f"{last.ledger_id}:{last.entry_id}",
        "state": "Terminated" if topic.termination.ended else "LedgerOpened",
        "ledgers": [
            {
                "ledgerId": each.ledger_id,
                "entries": 0 if each is current else each.entries,
                "size": 0 if each is current else each.size,
                "offloaded": each is not current and is_offloaded(each.ledger_id, offloaded),
                "underReplicated": each.ledger_id in lacking,
            }
            for each in ledger.ledgers.values()
        ],
        "cursors": {each.name: cursor_stats(each, catalog) for each in topic.subscriptions.values()},
        "properties": row.get("properties", {}),
        "schemaLedgers": [],
        "compactedLedger": _compacted(topic),
    }


def _compacted(topic: PersistentTopic) -> dict[str, Any]:
    view = topic.compaction.view
    if view is None:
        return dict(_NO_LEDGER)
    return _NO_LEDGER | {"ledgerId": view.ledger_id, "entries": view.entries, "size": view.size}


def cursor_stats(subscription: Subscription, catalog: Catalog) -> dict[str, Any]:
    """Return the statistics of a cursor. It has no ledger: its acknowledgements are in the box's journal."""
    cursor = subscription.cursor
    ledger, mark, ranges = cursor.ledger, cursor.mark_delete, cursor.ranges
    row = catalog.get(cursor_key(ledger.topic_id, cursor.cursor_id)) if cursor.durable else None
    read = subscription.source.position
    next_unread = ledger.next(*mark) if not subscription.consumers else read
    return {
        "markDeletePosition": f"{mark.ledger_id}:{mark.entry_id}",
        "readPosition": f"{next_unread.ledger_id}:{next_unread.entry_id}",
        "waitingReadOp": _waits(subscription),
        "pendingReadOps": int(subscription.source.reading),
        "messagesConsumedCounter": ledger.confirmed_entries - cursor.backlog_entries,
        "cursorLedger": -1,
        "cursorLedgerLastEntry": -1,
        "individuallyDeletedMessages": _ranges_text(subscription),
        "lastLedgerSwitchTimestamp": timestamp((row or {}).get("created", 0)),
        "state": "Open",
        "active": bool(subscription.consumers),
        "numberOfEntriesSinceFirstNotAckedMessage": entries_since_first_unacked(subscription),
        "totalNonContiguousDeletedMessagesRange": len(ranges),
        "subscriptionHavePendingRead": _waits(subscription) or subscription.source.reading,
        "subscriptionHavePendingReplayRead": False,
        "properties": {"pulsar.replicated.subscription": 1} if subscription.replicated else {},
    }


def entries_since_first_unacked(subscription: Subscription) -> int:
    """Return the entries after mark-delete up to and including the read position, as in Pulsar: 1 if caught up."""
    if not subscription.consumers:
        return 1  # Pulsar rewinds the cursor when the last consumer disconnects
    mark, read = subscription.cursor.mark_delete, subscription.source.position
    return subscription.cursor.ledger.entries_between(mark, read) if mark < read else 0


def _ranges_text(subscription: Subscription) -> str:
    """Format as ``[(l:e..l:e],(l:e..l:e]]``: each from before its first entry (exclusive) to its last."""
    cursor = subscription.cursor
    runs = islice(cursor.ranges.runs_from(*cursor.ledger.next(*cursor.mark_delete)), RANGES_SHOWN)
    shown = (f"({ledger}:{first - 1}..{ledger}:{last}]" for (ledger, first), (_, last) in runs)
    return f"[{','.join(shown)}]"


def _waits(subscription: Subscription) -> bool:
    """Return whether consumers are connected and everything is dispatched."""
    return bool(subscription.consumers) and subscription.source.position > subscription.ledger.read_end


def _not_stored(topic: NonPersistentTopic) -> dict[str, Any]:
    messages = topic.gone_in[0] + sum(each.messages_in for each in topic.producers)
    return {
        "entriesAddedCounter": messages,
        "numberOfEntries": 0,
        "totalSize": 0,
        "currentLedgerEntries": 0,
        "currentLedgerSize": 0,
        "waitingCursorsCount": 0,
        "pendingAddEntriesCount": 0,
        "cursors": {
            each.name: {
                "waitingReadOp": False,
                "pendingReadOps": 0,
                "messagesConsumedCounter": 0,
                "cursorLedger": 0,
                "cursorLedgerLastEntry": 0,
                "active": False,
                "numberOfEntriesSinceFirstNotAckedMessage": 0,
                "totalNonContiguousDeletedMessagesRange": 0,
                "subscriptionHavePendingRead": False,
                "subscriptionHavePendingReplayRead": False,
            }
            for each in topic.all_subscriptions()
        },
    }
