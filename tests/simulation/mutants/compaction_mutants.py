"""Planted bugs in compaction, for ``test_mutants``. Those for the compaction histories are in ``test_compacted``."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarbox.broker.compaction.compaction_run import CompactionRun
from pulsarbox.broker.compaction.latest_by_key import LatestByKey
from pulsarbox.broker.topic.maintenance.ledger_lifecycle import TopicLedgers
from pulsarbox.names import COMPACTION_SUBSCRIPTION
from tests.simulation.mutants.registry import mutant


@mutant("compacted", seeds=(5,))
def the_first_message_of_a_key_stays(patch: pytest.MonkeyPatch) -> None:
    original = LatestByKey._message

    def message(self: LatestByKey, key: bytes, number: int, alive: bool) -> bool:
        return key in self._latest or original(self, key, number, alive)

    patch.setattr(LatestByKey, "_message", message)


@mutant("given-back", "compacted", seeds=(14,))
def what_is_written_of_a_cancelled_view_stays(patch: pytest.MonkeyPatch) -> None:
    original = CompactionRun._fail

    def fail(self: CompactionRun, error: Exception, now: Any) -> None:
        ledger_id, self.ledger_id = self.ledger_id, 0
        original(self, error, now)
        self.ledger_id = ledger_id

    patch.setattr(CompactionRun, "_fail", fail)
    patch.setattr("pulsarbox.broker.composition.drop_leftovers", lambda catalog, commits, now: None)


@mutant("compacted", "trimmed", seeds=(77,))
def what_is_not_in_a_view_yet_is_trimmed(patch: pytest.MonkeyPatch) -> None:
    def cursors(self: TopicLedgers) -> Any:
        return [each for each in self._stored.cursors.values() if each.name != COMPACTION_SUBSCRIPTION]

    patch.setattr(TopicLedgers, "_cursors", property(cursors))
