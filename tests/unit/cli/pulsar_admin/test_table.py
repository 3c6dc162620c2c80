"""The command tables, compared with the grammar of the pulsar-admin 4.2 tool and with the endpoints.

``commands.tsv`` has a line for each command: group, hidden flag, aliases, and parameters. ``<>`` is an argument, and
``-s|--size:bytes*`` an option with its spellings and its kind. ``*`` marks a required option, and ``=`` precedes its
default.
"""

import csv
import json
import re
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from pulsarbox.cli.pulsar_admin import table
from pulsarbox.cli.pulsar_admin.table import Command
from pulsarbox.cli.pulsar_admin.values import BYTES, KINDS, SECONDS, seconds, size
from pulsarbox.server.http.admin_endpoints import Endpoint, endpoints

FACTS = Path(__file__).with_name("commands.tsv")
ALL_GROUPS = {**table.GROUPS, **table.OLD_GROUPS}


class Fact(NamedTuple):
    """A command of pulsar-admin."""

    group: str
    name: str
    hidden: bool
    aliases: set[str]
    arguments: int
    options: dict[frozenset[str], str]
    """Kind, ``*`` and default, keyed by spellings."""


@cache
def facts() -> tuple[Fact, ...]:
    with FACTS.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    return tuple(
        Fact(
            row["group"],
            row["command"],
            row["hidden"] == "hidden",
            set(row["aliases"].split(",")) - {""},
            row["parameters"].split().count("<>"),
            {
                frozenset(option.partition(":")[0].split("|")): option.partition(":")[2]
                for option in row["parameters"].split()
                if option != "<>"
            },
        )
        for row in rows
    )


@cache
def commands() -> dict[tuple[str, str], Command]:
    return {
        (group, name): table.command(group, row) for group in ALL_GROUPS for name, row in table.headings(group).items()
    }


def test_every_command_of_pulsar_admin_is_here_or_left_out_for_a_reason() -> None:
    theirs = {(fact.group, fact.name) for fact in facts()}
    left_out = {one for one in theirs if one[0] in table.LEFT_OUT or one in table.LEFT_OUT_COMMANDS}
    assert theirs - left_out == set(commands())
    assert len(commands()) > 480
    assert {group for group, _ in theirs if group in table.LEFT_OUT} == set(table.LEFT_OUT)
    assert set(table.LEFT_OUT_COMMANDS) < theirs


SAME = [fact for fact in facts() if (fact.group, fact.name) in commands()]
MORE_REQUIRED = {
    ("functions", "querystate", "key"),
    ("namespaces", "get-topic-positions", "bundle"),
    ("transactions", "scale-transactionCoordinators", "replicas"),
}
"""Options that pulsar-admin reports as missing only after it has started executing the command."""


@pytest.mark.parametrize("group", ALL_GROUPS)
def test_a_command_has_the_words_of_pulsar_admin(group: str) -> None:
    for fact in (fact for fact in SAME if fact.group == group):
        ours = commands()[fact.group, fact.name]
        where = f"{fact.group} {fact.name}"
        assert set(ours.aliases) == fact.aliases, where
        assert ours.hidden == fact.hidden or group in table.OLD_GROUPS, where
        arguments = [one for one in ours.parameters if not one.spellings]
        options = {frozenset(one.spellings): one for one in ours.parameters if one.spellings}
        assert len(arguments) == fact.arguments, where
        assert set(options) == set(fact.options), where
        for spellings, fact_of in fact.options.items():
            option = options[spellings]
            kind, _, default = fact_of.partition("=")
            if (group, fact.name, option.name) not in MORE_REQUIRED:
                assert option.required == kind.endswith("*"), (where, option.name)
            assert same_kind(option.kind, kind.rstrip("*")), (where, option.name)
            if default and option.default is not None:
                assert same_default(option.kind, option.default, default), (where, option.name)


def same_kind(ours: str, theirs: str) -> bool:
    base = ours.partition("(")[0]
    return theirs in {
        "flag": {"flag"},
        "seconds": {"seconds"},
        "some_seconds": {"seconds"},
        "quota_time": {"seconds"},
        "retention_time": {"seconds"},
        "millis": {"millis"},
        "some_millis": {"millis"},
        "not_negative_millis": {"millis"},
        "bytes": {"bytes"},
        "quota_size": {"bytes"},
        "retention_size": {"bytes"},
        "int": {"number"},
        "minutes": {"number"},
        "rate": {"number"},
        "period": {"number"},
        "float": {"number"},
        "fractional_rate": {"number"},
        "ints": {"several"},
        "many": {"several"},
        "map": {"several"},
        "maps": {"several"},
        "list": {"several", "text"},
    }.get(base, {"text"})


NUMBERS: Final = ("int", "float", "rate", "period", "fractional_rate")


def same_default(kind: str, ours: str, theirs: str) -> bool:
    if kind in ("millis", "some_millis", "not_negative_millis"):
        return seconds(ours) * 1000 == int(theirs)
    if kind in ("bytes", "quota_size"):
        return size(ours) == int(theirs)
    return float(ours) == float(theirs) if kind in NUMBERS else ours == theirs


def shape_of_endpoint(path: str) -> str:
    """A path with its variable segments replaced by placeholders."""
    path = re.sub(r"/(non-)?persistent/", "/DOMAIN/", path.replace("{domain}", "DOMAIN"))
    return re.sub(r"\{[^}]*\}", "{}", path)


def shape_of_call(path: str) -> str:
    """The shape of one of our paths, in which one placeholder may stand for several segments."""
    path = path.replace("{topic.name}", "{}/{}/{}").replace("{namespace}", "{}/{}")
    path = re.sub(r"\{(topic|source)\}", "DOMAIN/{}/{}/{}", path)
    return re.sub(r"\{[^}]*\}", "{}", re.sub(r"/(non-)?persistent/", "/DOMAIN/", path))


@cache
def known() -> dict[tuple[str, str], Endpoint]:
    return {(one.method, shape_of_endpoint(one.path)): one for one in endpoints()}


@pytest.mark.parametrize("group", ALL_GROUPS)
def test_a_command_asks_endpoints_that_there_are_with_queries_that_they_take(group: str) -> None:
    for command in (one for one in commands().values() if one.group == group):
        assert command.calls, command.name
        for call in command.calls:
            where = f"{group} {command.name}: {call.method} {call.path}"
            if call.path.startswith("/lookup/"):  # not part of the Admin API
                continue
            endpoint = known().get((call.method, shape_of_call(call.path)))
            assert endpoint is not None, where
            assert {key for key, _, _ in call.query} <= {*endpoint.query, *MORE_QUERIES.get(endpoint.operation, ())}, (
                where
            )


MORE_QUERIES: dict[str, set[str]] = {
    "deletePartitionedTopic": {"deleteSchema"},
    "deleteTopic": {"deleteSchema"},
    "removeMessageTTL": {"messageTTL"},
    "setNamespaceReplicationClusters": {"compareTopicPartitions"},
}
"""Query parameters that Pulsar's client sends but its API documentation omits."""


def test_every_endpoint_has_a_command_or_a_reason_to_have_none() -> None:
    asked = {(call.method, shape_of_call(call.path)) for command in commands().values() for call in command.calls}
    without = {one for key, one in known().items() if key not in asked}
    unexplained = [one for one in without if not any(re.match(pattern, one.path) for pattern in WITHOUT_COMMAND)]
    unexplained = [one for one in unexplained if one.operation not in WITHOUT_COMMAND_BY_NAME]
    assert sorted(f"{one.method} {one.path} {one.operation}" for one in unexplained) == []
    names = {one.operation for one in without}
    assert set(WITHOUT_COMMAND_BY_NAME) <= names
    for pattern in WITHOUT_COMMAND:
        assert any(re.match(pattern, one.path) for one in without), pattern


WITHOUT_COMMAND: dict[str, str] = {
    r"/admin/v2/functions/": "of the former version, v2",
    r"/admin/v3/(sink|source)/": "former paths of sinks and sources",
    r"/admin/v3/(functions|sinks|sources)/(.*/)?(connectors|leader|configdefinition|upload|download)\b": "for workers",
    r"/admin/v3/(functions|sinks|sources)/{tenant}/{namespace}/{\w+}(/|$)": "a box runs no functions or connectors",
    r"/admin/v2/worker/(cluster/leader/ready|connectors|(leader/)?drain)$": "for workers",
}
"""Unsupported endpoints of pulsar-admin's groups, by path."""

WITHOUT_COMMAND_BY_NAME: dict[str, str] = {
    "deleteNamespaceBundle": "of Pulsar's Java client only",
    "getActiveBrokers": "the command names its cluster, and asks the other endpoint of that name",
    "getBacklog": "topics stats has the backlog",
    "getBrokerResourceAvailability": "brokers ask each other",
    "getPendingBookieOpsStats": "for monitoring",
    "getStatus": "of the group migration, which is left out",
    "getTopics2": "broker-stats destinations asks by its other name, topics",
    "getVersionBySchema": "of Pulsar's Java client only",
    "grantPermissionsOnTopics": "of Pulsar's Java client only",
    "isReady": "for probes",
    "revokePermissionsOnTopics": "of Pulsar's Java client only",
    "scanOffloadedLedgers": "of Pulsar's Java client only",
    "startMigration": "of the group migration, which is left out",
}
"""Endpoints without a pulsar-admin command, by operation, and their purpose."""


def test_values_of_a_call_are_parameters_of_its_command() -> None:
    for (group, name), command in commands().items():
        if command.run:  # its function supplies additional values
            continue
        used = set()
        for call in command.calls:
            used |= {*re.findall(r"\{(\w+)", call.path), *call.when}
            used |= {found for _, _, text in call.query for found in re.findall(r"\$(\w+)", text)}
            used |= set(re.findall(r'"[$?](\w+)', json.dumps(call.body)))
        assert used <= {one.name for one in command.parameters}, (group, name)


def test_every_kind_is_known_and_every_option_has_help() -> None:
    for (group, name), command in commands().items():
        for one in command.parameters:
            assert one.base in {*KINDS, "flag", "choice", "bool"}, (group, name, one)
            assert not one.spellings or table.option_help(group, name, one), (group, name, one.name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90", 90),
        ("90s", 90),
        ("15m", 900),
        ("3h", 10800),
        ("1d", 86400),
        ("2w", 1209600),
        ("1y", 31536000),
        ("-1", -1),
    ],
)
def test_durations(text: str, expected: int) -> None:
    assert seconds(text) == expected == seconds(text.upper())


@pytest.mark.parametrize(
    ("text", "expected"),
    [("4096", 4096), ("100k", 102400), ("10M", 10 << 20), ("16G", 16 << 30), ("2T", 2 << 40), ("-1", -1)],
)
def test_sizes(text: str, expected: int) -> None:
    assert size(text) == expected


@pytest.mark.parametrize("convert", [seconds, size])
@pytest.mark.parametrize("text", ["", "x", "1x", "1.5m", "--1", "m", "1 m", "\N{SUPERSCRIPT TWO}m"])
def test_what_is_neither(text: str, convert: object) -> None:
    assert callable(convert)
    with pytest.raises(ValueError, match="such as"):
        convert(text)


def test_units_are_those_of_pulsar() -> None:
    assert set(SECONDS) == set("smhdwy")
    assert set(BYTES) == set("kmgt")
