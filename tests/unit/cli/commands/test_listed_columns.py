"""Columns of lists: those that matter stay at 80 characters."""

import re
from typing import Any

import click
import pytest

from pulsarbox.cli.commands import client, limits_text, policies, quota_list, stats_text, topic
from pulsarbox.cli.commands.dead_letters import job
from pulsarbox.cli.common.backlog_units import BacklogColumns
from pulsarbox.cli.common.dead_letter_groups import groups_output
from pulsarbox.cli.common.output import OutputOptions, TableOutput
from pulsarbox.cli.common.text_table import fitted
from pulsarbox.cli.data import backup, ensemble
from pulsarbox.cli.declaration import diff
from pulsarbox.cli.main import main
from pulsarbox.cli.pipeline import listing

LONG = "a-name/with-several/parts-of-a-long-text"


def row(columns: Any) -> dict[str, Any]:
    numbers = {"rate", "unacked", "waiting", "total", "done", "skipped", "failed", "returned", "id", "count"}
    numbers |= {"rate_in", "rate_out", "rate_acked", "backlog", "backlog_entries", "partitions", "consumers"}
    short = {"kind": "consumer", "limit": "backlog size", "held": "12 s", "state": "running", "level": "namespace"}
    short |= {"setBy": "namespace", "applied": "yes", "change": "create", "policy": "subscription-dispatch-rate"}
    short |= {"cause": "publish-rate", "fingerprint": "a1b2c3d4e5f6", "sample": "12:345:0:1", "type": "Key_Shared"}
    return {name: 123_456 if name in numbers else short.get(name, LONG) for name in columns}


COLUMNS = {
    "client list": (client._COLUMNS, client._CUT, client._LEAST, {"topic", "subscription", "rate", "unacked", "cause"}),
    "quota show": (limits_text.COLUMNS, limits_text.CUT, limits_text.LEAST, {"allowed", "used", "held", "why"}),
    "topic list --stats": (
        ("name", "partitions", "rate_in", "rate_out", "storage", "producers", "subscriptions", "backlog"),
        topic._CUT,
        topic._LEAST,
        {"name", "backlog"},
    ),
    "sub list": (
        ("name", *stats_text.columns_with(BacklogColumns(["backlog", "backlog_entries"], {}))),
        {"name": 12},
        stats_text.LEAST,
        {"backlog", "why"},
    ),
    "diff": (diff._COLUMNS, diff._CUT, ("place",), {"present", "declared"}),
    "topic policy": (
        policies._COLUMNS, {"setting": policies._SETTING_MIN}, ("setting",), {"setting", "level", "applied"}
    ),
    "job list": (job.COLUMNS, job._CUT, job._LEAST, {"returned", "error"}),
}  # fmt: skip


@pytest.mark.parametrize("name", COLUMNS)
def test_what_matters_stays(name: str) -> None:
    columns, cut, least, kept = COLUMNS[name]
    lines, hidden = fitted(columns, [row(columns)], {}, cut, 80, least)
    assert max(map(len, lines)) <= 80
    assert kept & set(hidden) == set()


def narrow(name: str, width: int, **empty: str) -> set[str]:
    columns, cut, least, _ = COLUMNS[name]
    hidden = fitted(columns, [row(columns) | NARROW | empty], {}, cut, width, least).hidden
    return set(columns) - set(hidden)


NARROW = {"id": "7-c3", "topic": "orders", "subscription": "billing", "of": "orders", "why": "", "waiting": 0}
NARROW |= {"limit": "publish", "allowed": "20 messages a second", "used": "20 messages"}


def test_the_kind_of_a_client_and_the_cause_stay_at_60_columns() -> None:
    assert {"id", "kind", "topic", "cause"} <= narrow("client list", 60)


def test_a_limit_its_use_and_its_throttling_stay_at_60_columns() -> None:
    assert {"limit", "allowed", "used", "held"} <= narrow("quota show", 60)


def test_the_fingerprint_of_a_group_is_hidden_last() -> None:
    group = {"origin": LONG, "sampleTopic": LONG, "reason": "a reason of many words " * 3, "shape": LONG, "count": 12}
    found = groups_output(
        [row(["fingerprint", "sample"]) | {"first": 1, "last": 2, "subscription": "s"} | group],
        OutputOptions("table", None, None),
    )
    for width in range(24, 81):
        assert "fingerprint" not in hidden_of(found, width)


def hidden_of(found: TableOutput, width: int) -> list[str]:
    return fitted(found.columns, found.rows, found.titles, found.cut, width, found.least).hidden


DOCUMENTED = {
    "client list": client._FIELDS,
    "job list": job._FIELDS,
    "sub list": stats_text.FIELDS,
    "quota show": limits_text.FIELDS,
    "quota list": quota_list.FIELDS,
    "dlq list": ("name", "topic", "messages", "size", "subscriptions", "backlogs", "lost", "last"),
    "topic list": (*topic._FIELDS, *topic._STATS_FIELDS),
    "topic partitions": topic._PARTITION_FIELDS,
    "storage members": ensemble._FIELDS,
    "storage under-replicated": ensemble._FRAGMENTS,
    "backup list": backup._FIELDS,
    "pipeline list": listing._FIELDS,
}


@pytest.mark.parametrize("words", DOCUMENTED)
def test_filters_know_what_the_help_documents(words: str) -> None:
    group: click.Command = main
    for word in words.split():
        assert isinstance(group, click.Group)
        found = group.get_command(click.Context(group), word)
        assert found is not None
        group = found
    text = " ".join((group.help or "").partition("Fields: ")[2].partition("\n\n")[0].split())
    text = re.sub(r" \([^)]*\)", "", text).partition(". ")[0].rstrip(".").replace("; with --stats also", ",")
    named = re.split(r", | and ", text)
    assert len(named) > 4
    assert set(named) <= set(DOCUMENTED[words])
