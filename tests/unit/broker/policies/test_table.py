"""The table of policies and the constants of the broker name the same things."""

import importlib
import pkgutil

import pytest

from pulsarbox.broker import policies as room
from pulsarbox.broker.policies.policy import Policy
from pulsarbox.config.settings import settings_by_name
from pulsarbox.protocol.policies.table import BACKLOG_QUOTA, NAMES, RESOURCE_GROUP_NAME, ROWS, row_of
from tests.tools.generate_policies import DOCUMENT, generate

MODULES = [importlib.import_module(f"{room.__name__}.{each.name}") for each in pkgutil.iter_modules(room.__path__)]
CONSTANTS = sorted(
    {value for module in MODULES for value in vars(module).values() if isinstance(value, Policy)},
    key=lambda each: each.name,
)
OF_THE_BOX = {"one-subscription-dispatch-rate", "unsubscribed-retention"}
"""Without a row of their own: they are read from the keys of other policies."""
IN_TABLE = [each for each in CONSTANTS if each.name not in OF_THE_BOX]
ELSEWHERE = {
    "allowed-topic-property-keys-for-metrics",
    "deduplication-snapshot-interval",
    "dispatcher-pause-on-ack-state-persistent",
}
"""Policies that the broker only keeps."""
OF_ROLES = {"subscription-auth-mode"}
"""What the authorizer looks up by itself."""


@pytest.mark.parametrize("policy", IN_TABLE, ids=lambda each: each.name)
def test_a_policy_of_the_broker_stands_where_its_row_says(policy: Policy[object]) -> None:
    row = row_of(policy.name)
    assert policy.namespace_key == (row.namespace.key if row.namespace else "")
    assert policy.by_cluster == (row.namespace is not None and row.namespace.by_cluster)
    assert policy.topic_key == (row.topic.key if row.topic else "")


def test_each_policy_that_the_broker_goes_by_has_its_constant() -> None:
    assert {each.name for each in IN_TABLE} == set(NAMES) - ELSEWHERE - OF_ROLES


def test_the_settings_that_rows_name_exist() -> None:
    assert {name for row in map(row_of, NAMES) for name in row.settings} <= set(settings_by_name())


def test_names_keys_and_paths_are_unique() -> None:
    rows = (*ROWS, BACKLOG_QUOTA, RESOURCE_GROUP_NAME)
    assert len(NAMES) == len(rows)
    for places in ([row.namespace for row in rows if row.namespace], [row.topic for row in rows if row.topic]):
        assert len({place.key for place in places}) == len(places)
        assert len({place.path for place in places}) == len(places)


def test_what_the_broker_only_keeps_says_so() -> None:
    assert {row.name for row in ROWS if row.stored_only} >= ELSEWHERE


def test_the_document_has_the_table() -> None:
    text = DOCUMENT.read_text("utf-8")
    assert generate(text) == text, "run `make generate`"
