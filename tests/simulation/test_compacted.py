"""Some seeds with a repeatedly compacted topic, and planted bugs that the rules must detect."""

from __future__ import annotations

import functools
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import pytest

from pulsarbox.broker.compaction import compaction_run as of_run
from pulsarbox.broker.compaction.compacted_reader import CompactedReading
from pulsarbox.broker.compaction.compaction_run import CompactionRun
from pulsarbox.broker.compaction.latest_by_key import LatestByKey
from pulsarbox.broker.compaction.topic_compaction import TopicCompaction
from pulsarbox.broker.topic.maintenance.ledger_lifecycle import TopicLedgers
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.names import COMPACTION_SUBSCRIPTION
from pulsarbox.storage.acknowledged_ranges import ChunkKey, RangeSet
from pulsarbox.storage.catalog import compacting_key
from pulsarbox.storage.compacted_ledger import Original, pack_compacted
from pulsarbox.storage.cursor import ManagedCursor
from tests.simulation.compacted import CompactedRun
from tests.simulation.model.history import Violation
from tests.tools.campaigns import short

SEEDS = range(16)
STEPS = 250
Patch = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reduce the step size so that compactions of a few dozen entries need several steps."""
    monkeypatch.setattr(of_run, "STEP_ENTRIES", 5)
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@functools.cache
def played(seed: int) -> Counter[str]:
    """Return the event counts of a history, zeros included, which runs once per process."""
    run = CompactedRun(seed)
    run.run(STEPS)
    return Counter(run.done)


@pytest.mark.parametrize("seed", short(SEEDS, 4))
def test_a_seed_keeps_all_rules(seed: int) -> None:
    assert played(seed)


def test_the_seeds_do_what_the_rules_are_about() -> None:
    done: Counter[str] = Counter()
    for seed in SEEDS:
        done.update(played(seed))
        if all(done[name] for name in done):
            return
    pytest.fail(f"never happened: {[name for name, count in done.items() if not count]}")


BUGS: dict[str, tuple[Patch, set[str], Sequence[int]]] = {}


def bug(*rules: str, seeds: Sequence[int] = range(60)) -> Callable[[Patch], Patch]:
    """Register a bug with the rules of which one must detect it, in at least one of the seeds."""

    def register(patch: Patch) -> Patch:
        BUGS[patch.__name__] = patch, set(rules), seeds
        return patch

    return register


@bug("compacted", "latest")
def the_first_of_a_key_stays(patch: pytest.MonkeyPatch) -> None:
    original = LatestByKey._message

    def message(self: LatestByKey, key: bytes, number: int, alive: bool) -> bool:
        return key in self._latest or original(self, key, number, alive)

    patch.setattr(LatestByKey, "_message", message)


@bug("compacted", "deleted")
def tombstones_are_passed_over(patch: pytest.MonkeyPatch) -> None:
    original = LatestByKey._message

    def message(self: LatestByKey, key: bytes, number: int, alive: bool) -> bool:
        return alive and original(self, key, number, alive)

    patch.setattr(LatestByKey, "_message", message)


@bug("latest", "compacted")
def keys_of_later_passes_are_lost(patch: pytest.MonkeyPatch) -> None:
    original = LatestByKey.end_pass

    def end_pass(self: LatestByKey) -> bool:
        original(self)
        return False

    patch.setattr(LatestByKey, "end_pass", end_pass)


@bug("latest", "compacted", "nothing-lost")
def what_a_failed_commit_had_is_missing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CompactionRun, "_lost", lambda self, error, now: self._rest(now))


@bug("leftovers")
def a_restart_leaves_what_was_being_made(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("pulsarbox.broker.composition.drop_leftovers", lambda catalog, commits, now: None)


@bug("leftovers")
def a_cancelled_one_leaves_its_ledger(patch: pytest.MonkeyPatch) -> None:
    original = CompactionRun._fail

    def fail(self: CompactionRun, error: Exception, now: Any) -> None:
        ledger_id, self.ledger_id = self.ledger_id, 0
        original(self, error, now)
        self.ledger_id = ledger_id
        if ledger_id:
            self._commits.put_row(compacting_key(self._ledger.topic_id, ledger_id), None)

    patch.setattr(CompactionRun, "_fail", fail)
    patch.setattr("pulsarbox.storage.recovery.is_kept", lambda catalog, kind, rest: True)


@bug("latest", "nothing-lost", "liveness")
def what_is_not_compacted_is_trimmed(patch: pytest.MonkeyPatch) -> None:
    def cursors(self: TopicLedgers) -> Any:
        return [each for each in self._stored.cursors.values() if each.name != COMPACTION_SUBSCRIPTION]

    patch.setattr(TopicLedgers, "_cursors", property(cursors))


@bug("deleted", "compacted", "order")
def a_reader_changes_its_view_in_the_middle(patch: pytest.MonkeyPatch) -> None:
    original = TopicCompaction._ended

    def ended(self: TopicCompaction, view: Any, error: Any, now: Any) -> None:
        original(self, view, error, now)
        if view is not None:
            for subscription in cast(PersistentTopic, self._topic).subscriptions.values():
                compacted = subscription.source.compacted
                if compacted is not None and compacted.inside:
                    at = subscription.source.position
                    compacted.leave()
                    compacted._enter(at)

    patch.setattr(TopicCompaction, "_ended", ended)


@bug("backlog")
def mark_delete_stays_where_the_view_has_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CompactedReading, "_advance_to", lambda self, position, messages, size: None)


@bug("acked-stays", "order")
def the_view_knows_no_acknowledgements(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CompactedReading, "_is_acked", lambda self, position: False)


@bug("acked-stays", "order", seeds=(11,))
def what_is_acknowledged_in_the_view_is_in_memory_only(patch: pytest.MonkeyPatch) -> None:
    def acknowledge(self: ManagedCursor, ledger_id: int, entry_id: int) -> None:
        self.in_view.add_entry(ledger_id, entry_id, 0, 0, 0, 0)

    patch.setattr(ManagedCursor, "acknowledge_in_view", acknowledge)
    patch.setattr("pulsarbox.storage.cursor.IN_VIEW", 0)  # excluded from checkpoints as well


@bug("latest", "compacted", "nothing-lost", seeds=(184,))
def what_went_from_the_middle_counts_as_acknowledged(patch: pytest.MonkeyPatch) -> None:
    def claims(self: CompactedReading, position: tuple[int, int]) -> bool:
        return self.behind is not None and position <= self.behind.up_to

    patch.setattr(CompactedReading, "claims", claims)


@bug("acked-stays", "order", seeds=(11,))
def checkpoints_lack_what_is_acknowledged_in_the_view(patch: pytest.MonkeyPatch) -> None:
    original = ManagedCursor._pack_chunk

    def pack(self: ManagedCursor, key: ChunkKey) -> bytes:
        in_view, self.in_view = self.in_view, RangeSet(lambda key: None)
        packed = original(self, key)
        self.in_view = in_view
        return packed

    patch.setattr(ManagedCursor, "_pack_chunk", pack)


@bug("backlog")
def totals_are_those_of_what_is_left(patch: pytest.MonkeyPatch) -> None:

    def pack(each: Original, ledger_id: int, number: int) -> Any:
        less = each.entry._replace(total_messages=max(each.entry.total_messages - 3, 0))
        return pack_compacted(each._replace(entry=less), ledger_id, number)

    patch.setattr(of_run, "pack_compacted", pack)


@bug("latest", "nothing-lost", "compacted")
def the_trimmed_part_of_the_view_is_not_read(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CompactedReading, "start_at", lambda self, position, mark: None)


@bug("latest", "compacted", "deleted", "backlog")
def the_log_goes_on_too_late(patch: pytest.MonkeyPatch) -> None:
    original = CompactedReading._end

    def end(self: CompactedReading) -> Any:
        found = original(self)
        return found._replace(entry_id=found.entry_id + 1)

    patch.setattr(CompactedReading, "_end", end)


@pytest.mark.parametrize("name", short(BUGS, 3))
def test_a_bug_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, rules, seeds = BUGS[name]
    patch(monkeypatch)
    noticed = next(filter(None, map(_noticed, seeds)), "nobody noticed")
    assert noticed in rules


def _noticed(seed: int) -> str:
    """Return the rule that a seed violates, or an empty string."""
    try:
        CompactedRun(seed).run(STEPS)
    except Violation as violation:
        return violation.rule
    return ""
