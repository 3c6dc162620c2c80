"""Planted bugs in trimming ledgers behind a retained one, for ``test_mutants``."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarbox.broker.topic.maintenance import ledger_lifecycle
from pulsarbox.broker.topic.maintenance.ledger_lifecycle import TopicLedgers
from pulsarbox.storage import recovery
from pulsarbox.storage.cursor import ManagedCursor
from pulsarbox.storage.ledger import ManagedLedger
from tests.simulation.mutants.registry import mutant


@mutant("backlog", seeds=(34,))
def what_is_missing_counts_as_backlog(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ManagedLedger, "_dropped_behind", lambda self, total, unit: 0)


@mutant("backlog", "recovered", seeds=(34,))
def acknowledgements_of_ledgers_that_went_stay(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ManagedCursor, "forget_ledger", lambda self, ledger_id: False)


@mutant("trimmed", "disk", seeds=(34,))
def ledgers_go_from_the_front_alone(patch: pytest.MonkeyPatch) -> None:
    original = ledger_lifecycle.trimmable

    def trimmable(ledger: Any, *arguments: Any, **options: Any) -> Any:
        trim = original(ledger, *arguments, **options)
        front = [each for each, first in zip(trim.ledgers, ledger.ledgers, strict=False) if each == first]
        return trim._replace(ledgers=tuple(front))

    patch.setattr(ledger_lifecycle, "trimmable", trimmable)


@mutant("trimmed", seeds=(34,))
def a_ledger_whose_end_is_acknowledged_goes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        ManagedCursor, "is_done_with", lambda self, info: self.is_acked(info.ledger_id, max(info.entries - 1, 0))
    )


@mutant("recovered", "backlog", "reloaded", seeds=(34,))
def what_is_missing_is_not_in_the_row(patch: pytest.MonkeyPatch) -> None:
    original = recovery.ledger_row

    def row(*arguments: Any) -> Any:
        return {key: value for key, value in original(*arguments).items() if key != "hole"}

    patch.setattr(recovery, "ledger_row", row)
    patch.setattr(ledger_lifecycle, "ledger_row", row)


@mutant("trimmed", seeds=(34,))
def nobody_looks_when_a_ledger_is_done_with(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TopicLedgers, "may_release_ledger", lambda self, cursor, ledger_id: False)
