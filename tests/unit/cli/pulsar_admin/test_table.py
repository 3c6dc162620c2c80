"""The command tables, compared with the grammar of pulsar-admin 4.2.4 and with the endpoints.

``commands.tsv`` has a line for each command: group, hidden flag, aliases, and parameters. A line without a command is
that of its group. ``<>`` is an argument, ``<>?`` any number of them, and ``-s|--size:bytes*`` an option with its
spellings and its kind. ``*`` marks a required option, ``=`` precedes its default, and ``!`` follows a hidden option.
"""

import csv
import json
import re
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import click
import pytest
from click.testing import CliRunner

from pulsarbox.cli.pulsar_admin import table
from pulsarbox.cli.pulsar_admin.admin import admin
from pulsarbox.cli.pulsar_admin.commands import AdminCommand
from pulsarbox.cli.pulsar_admin.table import Command
from pulsarbox.cli.pulsar_admin.values import BYTES, KINDS, SECONDS, seconds, size
from pulsarbox.server.http.admin_endpoints import Endpoint, endpoints
from tests.tools import generate_admin_groups

FACTS = Path(__file__).with_name("commands.tsv")
ALL_GROUPS = {**table.GROUPS, **table.OLD_GROUPS}


class Fact(NamedTuple):
    """A command of pulsar-admin."""

    group: str
    name: str
    hidden: bool
    aliases: set[str]
    arguments: list[str]
    """``<>`` or ``<>?`` for each."""
    options: dict[frozenset[str], str]
    """Kind, ``*``, default and ``!``, keyed by spellings."""


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
            [one for one in row["parameters"].split() if one.startswith("<>")],
            {
                frozenset(option.partition(":")[0].split("|")): option.partition(":")[2]
                for option in row["parameters"].split()
                if not option.startswith("<>")
            },
        )
        for row in rows
        if row["command"]
    )


@cache
def groups() -> dict[str, tuple[bool, set[str]]]:
    """Whether each group is hidden, and its aliases."""
    with FACTS.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {
            row["group"]: (row["hidden"] == "hidden", set(row["aliases"].split(",")) - {""})
            for row in rows
            if not row["command"]
        }


@cache
def commands() -> dict[tuple[str, str], Command]:
    return {
        (group, name): table.command(group, row) for group in ALL_GROUPS for name, row in table.headings(group).items()
    }


def test_every_group_of_pulsar_admin_is_here() -> None:
    assert set(groups()) == set(ALL_GROUPS)
    assert {name for name, (hidden, _) in groups().items() if hidden} == set(table.OLD_GROUPS)
    assert {alias: name for name, (_, aliases) in groups().items() for alias in aliases} == table.ALIASES


def test_every_command_of_pulsar_admin_is_here() -> None:
    assert {(fact.group, fact.name) for fact in facts()} == set(commands())
    assert len(commands()) > 550


ROOT_OPTIONS: Final = {
    "--admin-url", "--auth-plugin", "--auth-params", "--request-timeout", "--tls-allow-insecure",
    "--tls-trust-cert-path", "--tls-enable-hostname-verification", "--tls-provider", "-h", "--help", "-v", "--version",
}  # fmt: skip
"""Options of pulsar-admin before the group."""


def test_the_root_has_the_options_of_pulsar_admin() -> None:
    accepted = {one for option in admin.get_params(click.Context(admin)) for one in option.opts}
    assert accepted | set(admin.context_settings["help_option_names"]) >= ROOT_OPTIONS


def test_the_page_lists_the_groups() -> None:
    page = generate_admin_groups.DOCUMENT.read_text("utf-8")
    assert generate_admin_groups.generate(page) == page, "run `make generate`"


@pytest.mark.parametrize("group", [*ALL_GROUPS, *table.ALIASES])
def test_a_group_lists_its_commands(group: str) -> None:
    result = CliRunner().invoke(admin, [group, "--help"])
    assert result.exit_code == 0, result.output
    shown = re.findall(r"^  (\S+)(?:  |$)", result.output.partition("Commands:")[2], re.MULTILINE)
    assert shown == sorted(
        fact.name for fact in facts() if fact.group == table.ALIASES.get(group, group) and not fact.hidden
    )


@pytest.mark.parametrize("group", ALL_GROUPS)
def test_the_options_of_a_command_are_accepted(group: str) -> None:
    """The command of the command line, rather than the table that it is built from, has each spelling."""
    root = admin.get_command(click.Context(admin), group)
    assert isinstance(root, click.Group)
    for fact in (fact for fact in facts() if fact.group == group):
        for name in (fact.name, *fact.aliases):
            command = root.get_command(click.Context(root), name)
            assert isinstance(command, AdminCommand), name
            accepted = {one for option in command.params for one in option.opts} | set(command._words)
            assert {one for spellings in fact.options for one in spellings} <= accepted, (group, name)


MORE_REQUIRED = {
    ("functions", "querystate", "key"),
    ("namespaces", "get-topic-positions", "bundle"),
    ("transactions", "scale-transactionCoordinators", "replicas"),
}
"""Options that pulsar-admin reports as missing only after it has started executing the command."""


@pytest.mark.parametrize("group", ALL_GROUPS)
def test_a_command_has_the_words_of_pulsar_admin(group: str) -> None:
    for fact in (fact for fact in facts() if fact.group == group):
        ours = commands()[fact.group, fact.name]
        where = f"{fact.group} {fact.name}"
        assert set(ours.aliases) == fact.aliases, where
        assert ours.hidden == fact.hidden, where
        arguments = ["<>?" if one.several else "<>" for one in ours.parameters if not one.spellings]
        options = {frozenset(one.spellings): one for one in ours.parameters if one.spellings}
        assert arguments == fact.arguments, where
        assert set(options) == set(fact.options), where
        for spellings, fact_of in fact.options.items():
            option = options[spellings]
            kind, _, default = fact_of.removesuffix("!").partition("=")
            assert option.hidden == fact_of.endswith("!"), (where, option.name)
            if (group, fact.name, option.name) not in MORE_REQUIRED:
                assert option.required == kind.endswith("*"), (where, option.name)
            assert same_kind(option.kind, kind.rstrip("*")), (where, option.name)
            if default and option.default is not None:
                assert same_default(option.kind, option.default, default), (where, option.name)


def same_kind(ours: str, theirs: str) -> bool:
    base = ours.partition("(")[0]
    return theirs in {
        "bool": {"boolean"},
        "flag": {"flag"},
        "switch": {"flag"},
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
    if "/functions/" not in path and "/sink/" not in path and "/source/" not in path:
        path = path.replace("{namespace}", "{}/{}")
    path = path.replace("{topic.name}", "{}/{}/{}")
    path = path.replace("{package}", "{}/{}/{}/{}/{}").replace("{package.versions}", "{}/{}/{}/{}")
    path = re.sub(r"\{(topic|source)\}", "DOMAIN/{}/{}/{}", path)
    return re.sub(r"\{[^}]*\}", "{}", re.sub(r"/(non-)?persistent/", "/DOMAIN/", path))


@cache
def known() -> dict[tuple[str, str], Endpoint]:
    return {(one.method, shape_of_endpoint(one.path)): one for one in endpoints()}


@pytest.mark.parametrize("group", ALL_GROUPS)
def test_a_command_asks_endpoints_that_there_are_with_queries_that_they_take(group: str) -> None:
    for command in (one for one in commands().values() if one.group == group):
        assert command.calls or (group, command.name) in LOCAL, command.name
        for call in command.calls:
            where = f"{group} {command.name}: {call.method} {call.path}"
            if call.path.startswith(("/lookup/", "/proxy-stats/")):  # not part of the Admin API of a broker
                continue
            endpoint = known().get((call.method, shape_of_call(call.path)))
            if endpoint is None and group in ("sinks", "sources"):  # the table may have only the current name
                endpoint = known().get(
                    (call.method, re.sub(r"/v3/(sink|source)/", r"/v3/\1s/", shape_of_call(call.path)))
                )
            assert endpoint is not None, where
            assert {key for key, _, _ in call.query} <= {*endpoint.query, *MORE_QUERIES.get(endpoint.operation, ())}, (
                where
            )


LOCAL = {("documents", "generate"), *((group, "localrun") for group in ("functions", "sinks", "sources"))}
"""Commands without requests."""

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
    r"/admin/v3/(sinks|sources)/": "pulsar-admin uses the previous names, sink and source",
    r"/admin/v3/(sinks?|sources?)/builtin\w+/\{name\}": "of Pulsar's Java client only",
    r"/admin/v2/functions/": "the previous version of the same endpoints",
    r"/admin/v2/worker/((leader/)?drain|connectors|cluster/leader/ready)$": "of operators of Kubernetes",
    r"/admin/v3/functions/(connectors|leader)\b": "of functions workers and of Pulsar's Java client",
}
"""Endpoints that pulsar-admin does not use, by path."""

WITHOUT_COMMAND_BY_NAME: dict[str, str] = {
    "deleteNamespaceBundle": "of Pulsar's Java client only",
    "getActiveBrokers": "the command names its cluster, and asks the other endpoint of that name",
    "getBacklog": "topics stats has the backlog",
    "getBrokerResourceAvailability": "brokers ask each other",
    "getPendingBookieOpsStats": "for monitoring",
    "getTopics2": "broker-stats destinations asks by its other name, topics",
    "getVersionBySchema": "of Pulsar's Java client only",
    "grantPermissionsOnTopics": "of Pulsar's Java client only",
    "isReady": "for probes",
    "revokePermissionsOnTopics": "of Pulsar's Java client only",
    "scanOffloadedLedgers": "of Pulsar's Java client only",
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
            assert one.base in {*KINDS, "flag", "switch", "choice", "bool"}, (group, name, one)
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
    [
        ("4096", 4096),
        ("100k", 102400),
        ("10M", 10 << 20),
        ("16G", 16 << 30),
        ("2T", 2 << 40),
        ("-1", -1),
        ("1.5G", 3 << 29),
        ("5 MB", 5 << 20),
    ],
)
def test_sizes(text: str, expected: int) -> None:
    assert size(text) == expected


def test_a_duration_may_have_parts_and_fractions() -> None:
    assert seconds("1h30m") == seconds("1.5h") == 5400


@pytest.mark.parametrize("convert", [seconds, size])
@pytest.mark.parametrize("text", ["", "x", "1x", "1.0001s", "1.0001K", "--1", "m", "1 x", "\N{SUPERSCRIPT TWO}m"])
def test_what_is_neither(text: str, convert: object) -> None:
    assert callable(convert)
    with pytest.raises(ValueError, match=r"such as|is not a whole number of"):
        convert(text)


def test_units_are_those_of_pulsar() -> None:
    assert set(SECONDS) == set("smhdwy")
    assert set(BYTES) == set("kmgt")
