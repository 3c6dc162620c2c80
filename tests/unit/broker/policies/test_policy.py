"""The policy table and the constants of the broker have the same names."""

import importlib
import pkgutil

import pytest

from pulsarbox.broker.policies import kinds as room
from pulsarbox.broker.policies.policy import Policy
from pulsarbox.config import Settings
from pulsarbox.config.settings import settings_by_name
from pulsarbox.protocol.policies.stored_rows import CLUSTER_ROWS, STORED_ROWS
from pulsarbox.protocol.policies.table import BACKLOG_QUOTA, NAMES, OTHER_ROWS, ROWS, row_of
from tests.tools.generate_policies import DOCUMENT, generate

MODULES = [importlib.import_module(f"{room.__name__}.{each.name}") for each in pkgutil.iter_modules(room.__path__)]
CONSTANTS = sorted(
    {value for module in MODULES for value in vars(module).values() if isinstance(value, Policy)},
    key=lambda each: each.name,
)
IN_TABLE = [each for each in CONSTANTS if each.name != "unsubscribed-retention"]
"""Policies of Pulsar. The excluded policy is specific to the box, and a retention policy overrides it."""
ELSEWHERE = {
    "allowed-topic-property-keys-for-metrics",
    "deduplication-snapshot-interval",
    "dispatcher-pause-on-ack-state-persistent",
    *(row.name for row in (*STORED_ROWS, *CLUSTER_ROWS)),
}
"""Policies that the broker stores but does not use."""
WITHOUT_CONSTANT = {"subscription-auth-mode", "schema-auto-update-compatibility-strategy"}
"""The authorizer reads the first directly; the second is part of schema-compatibility-strategy."""


@pytest.mark.parametrize("policy", CONSTANTS, ids=lambda each: each.name)
def test_the_broker_reads_its_own_value_of_each_policy(policy: Policy[object]) -> None:
    assert policy.row is row_of(policy.name)
    assert policy.broker(Settings()) is not None


def test_each_policy_that_the_broker_goes_by_has_its_constant() -> None:
    names = {each.name.partition(":")[0] for each in IN_TABLE}
    assert names == set(NAMES) - ELSEWHERE - WITHOUT_CONSTANT


def test_the_settings_that_rows_name_exist() -> None:
    assert {name for row in map(row_of, NAMES) for name in row.settings} <= set(settings_by_name())


def test_names_keys_and_paths_are_unique() -> None:
    rows = (*ROWS, BACKLOG_QUOTA, *OTHER_ROWS)
    assert len(NAMES) == len(rows)
    for places in ([row.namespace for row in rows if row.namespace], [row.topic for row in rows if row.topic]):
        assert len({place.key for place in places}) == len(places)
        assert len({place.path for place in places}) == len(places)


def test_what_the_broker_only_keeps_says_so() -> None:
    assert {row.name for row in (*ROWS, *OTHER_ROWS) if row.stored_only} >= ELSEWHERE


def test_the_document_has_the_table() -> None:
    text = DOCUMENT.read_text("utf-8")
    assert generate(text) == text, "run `make generate`"
