"""Planted bugs in quotas that exclude delayed messages, for ``test_mutants``."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarbox.broker.backlog import evict_undelayed, message_expiry
from pulsarbox.broker.backlog.oldest_undelayed import NEVER_DUE, OldestUndelayed
from pulsarbox.broker.backlog.quota_enforcement import QuotaEnforcement
from tests.simulation.mutants.registry import mutant


@mutant("quotas", "reason", seeds=(416,))
def what_is_delayed_is_as_old_as_the_rest(patch: pytest.MonkeyPatch) -> None:
    original = message_expiry.limits_of

    def limits_of(*arguments: Any, **more: Any) -> message_expiry.ExpiryLimits:
        return original(*arguments, **more)._replace(spares=False)

    patch.setattr(message_expiry, "limits_of", limits_of)


@mutant("reason", seeds=(416,))
def an_eviction_by_age_spares_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(evict_undelayed, "is_due_after", lambda delays, position, due: False)


@mutant("quotas", seeds=(976,))
def what_has_fallen_due_does_not_get_old(patch: pytest.MonkeyPatch) -> None:
    original = OldestUndelayed.find

    def find(self: OldestUndelayed, found: Any, *arguments: Any) -> None:
        def without_delayed(begins: int, now: Any) -> None:
            found(self._begins if self._plain is not None else NEVER_DUE, now)

        original(self, without_delayed, *arguments)

    patch.setattr(OldestUndelayed, "find", find)


@mutant("quotas", seeds=(696,))
def what_is_delayed_fills_a_quota_that_leaves_it_out(patch: pytest.MonkeyPatch) -> None:
    def exclude(self: QuotaEnforcement, now: Any) -> None:
        self.not_due = 0

    patch.setattr(QuotaEnforcement, "_exclude", exclude)
