"""The end of a transaction on one topic."""

from typing import TYPE_CHECKING

from pulsarbox.broker.transactions.transaction import COMMITTED, OpenTransaction
from pulsarbox.clock import Now
from pulsarbox.storage.catalog import open_key
from pulsarbox.storage.transactions import aborted_rows

if TYPE_CHECKING:
    from pulsarbox.broker.persistence.group_commit import GroupCommit
    from pulsarbox.broker.topic.topic import PersistentTopic


def is_on_its_way(topic: "PersistentTopic", txn: OpenTransaction) -> bool:
    """Return whether an entry of the transaction is not durable yet."""
    runs = topic.stored.open.runs(txn.id)
    return bool(runs) and (runs[-1].ledger_id, runs[-1].last) > topic.ledger.last_confirmed


def end(topic: "PersistentTopic", txn: OpenTransaction, commits: "GroupCommit", now: Now) -> None:
    """End the transaction with the open batch, invisibly to consumers until that is durable."""
    stored = topic.stored
    runs = stored.open.runs(txn.id)
    if runs:
        stored.open.ending(txn.id)
        if txn.ending != COMMITTED:
            stored.has_aborted = True
            for key, row in aborted_rows(stored.topic_id, runs).items():
                commits.put_row(key, row)
            for subscription in topic.subscriptions.values():
                for run in runs:
                    subscription.cursor.skip(run)
                commits.cursor_changed(subscription.cursor, now)
        commits.put_row(open_key(stored.topic_id, *txn.id), None)
    if txn.ending == COMMITTED:
        for subscription in list(topic.subscriptions.values()):
            if subscription.pending is not None:
                subscription.pending.commit(txn, now)


def has_ended(topic: "PersistentTopic", txn: OpenTransaction, now: Now) -> None:
    """Make the durable outcome visible to consumers."""
    stored = topic.stored
    if not stored.in_use:
        return  # deleted meanwhile
    runs = stored.open.end(txn.id)
    for subscription in list(topic.subscriptions.values()):
        if txn.ending != COMMITTED and subscription.pending is not None:
            subscription.pending.abort(txn, now)
    if runs:
        topic.ended_transactions[txn.ending == COMMITTED] += 1
        topic.transactions_ended(now)
