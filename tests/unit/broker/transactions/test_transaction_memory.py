"""Memory and restart work left behind by ended transactions.

Ended transactions use no memory unless a subscription still has them ahead of its position. A restart does bounded work
regardless of their number. ``PAST_TRANSACTIONS=100000`` creates 100000 of them and takes several minutes.
"""

import gc
import os
from collections import Counter
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import pytest

from pulsarbox.broker.persistence.tail_cache import TailCache
from pulsarbox.broker.timers import SWEPT_FROM, Timers
from pulsarbox.broker.transactions import transaction_table
from pulsarbox.clock import Now
from pulsarbox.storage.catalog import PENDING, TXNS
from tests.tools.campaigns import short
from tests.unit.broker.playbook import Box, Client
from tests.unit.broker.transactions.test_transaction import plain, publisher
from tests.unit.broker.transactions_playbook import Txn, backlog, reader, topic_of

COUNT = int(os.environ.get("PAST_TRANSACTIONS", "1000"))
KEPT = 50
"""Number of ended transactions that are retained; the default is a thousand."""
NO_DATA = (type, ModuleType, FunctionType, BuiltinFunctionType, CodeType, TailCache)


@pytest.fixture(autouse=True)
def _few_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction_table, "KEPT", KEPT)


def abort_many(client: Client, first: int, count: int) -> None:
    for number in range(first, first + count):
        txn = Txn(client)
        txn.send(number)
        txn.abort()


def checkpoint(box: Box) -> None:
    """Run a checkpoint, so that changes queued for it are not counted."""
    box.broker.commits.ask_checkpoint()
    box.turn()


def objects(box: Box, client: Client) -> int:
    """Count the objects in the core, without its disk, its clients and the bounded tail cache."""
    checkpoint(box)
    tail = topic_of(box).ledger.tail
    seen, found = {id(each) for each in (box, box.disk, box.engine, client, tail)}, Counter[str]()
    todo: list[Any] = [box.broker]
    while todo:
        each = todo.pop()
        if id(each) not in seen and not isinstance(each, NO_DATA):
            seen.add(id(each))
            found[type(each).__name__] += 1
            todo += gc.get_referents(each)
    return found.total()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("subscribed", short(["nobody", "caught up", "behind"], 1))
def test_aborted_ones_leave_nothing_in_memory(subscribed: str) -> None:
    box = Box()
    client = publisher(box)
    if subscribed != "nobody":
        consumer = reader(box)
        if subscribed == "behind":
            first = plain(client, 0)
            assert consumer.received() == [first]
    half = COUNT // 2
    abort_many(client, 1, half)
    before = objects(box, client)
    abort_many(client, 1 + half, half)
    grown = objects(box, client) - before
    assert grown < 5 * SWEPT_FROM, f"{grown} objects more, of {before}, for {half} transactions"
    coordinator, topic = box.broker.transactions, topic_of(box)
    assert (len(coordinator.open), len(coordinator.ended)) == (0, KEPT)
    assert not topic.stored.open
    for subscription in topic.subscriptions.values():
        assert len(subscription.cursor.ranges) == (subscribed == "behind"), "one range, whatever is in it"
        assert backlog(box)[0] == (subscribed == "behind")


@pytest.mark.parametrize("outcome", ["committed", "aborted"])
def test_a_restart_reads_no_more_of_them_than_are_kept(outcome: str) -> None:
    box = Box()
    client = publisher(box)
    reader(box)
    seen: list[Any] = []
    for number in range(KEPT + 100):
        txn = Txn(client)
        at = txn.send(number)
        if outcome == "committed":
            txn.commit()
            seen.append(at)
        else:
            txn.abort()
    checkpoint(box)
    again = box.restart()
    core = again.broker
    assert len(list(core.catalog.items(TXNS))) == KEPT == len(core.transactions.ended)
    assert not list(core.catalog.items(PENDING)) and not list(core.catalog.items("open/"))
    assert reader(again, permits=KEPT + 100).received() == seen


def _note(done: list[int], number: int, now: Now) -> None:
    done.append(number)


def test_cancelled_deadlines_are_forgotten_before_their_time() -> None:
    timers, done = Timers(), list[int]()
    kept = [timers.at_wall(10 + number, partial(_note, done, number)) for number in (3, 1, 2)]
    for _ in range(20 * SWEPT_FROM):
        timers.at_wall(10_000, done.clear).cancel()  # type: ignore[arg-type]
        timers.at(10.0, done.clear).cancel()  # type: ignore[arg-type]
    held = [each for each in gc.get_referents(timers.__dict__) if isinstance(each, list)]
    assert len(kept) <= sum(map(len, held)) <= 2 * SWEPT_FROM + len(kept)
    assert timers.next().wall == 11
    timers.run(Now(0.0, 20))
    assert done == [1, 2, 3]
