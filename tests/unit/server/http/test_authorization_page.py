"""docs/authorization.md matches the permissions of routes and commands."""

import re
from pathlib import Path

from pulsarbox.broker.connection.command_table import command_table
from pulsarbox.broker.security.command_rules import RULES, Needs
from pulsarbox.protocol.commands import COMMANDS
from pulsarbox.server.http.framework.routes import Permission
from pulsarbox.server.http.route_table import all_routes
from tests.unit.broker.roles import guarded_box

PAGE = (Path(__file__).parents[4] / "docs" / "authorization.md").read_text("utf-8")
WORDS = {
    "none": Permission.ANYONE,
    "an authenticated role": Permission.NAMED,
    "superuser": Permission.SUPERUSER,
    "superuser or viewer; if the query names a tenant or a namespace, also an admin of that tenant": Permission.WATCHER,
    "tenant admin": Permission.TENANT_ADMIN,
    "tenant admin; other roles cannot find out whether the tenant exists": Permission.TENANT,
    "admin of the tenants of all topics in the body": Permission.TENANT_ADMIN_OF_TOPICS,
    "produce or consume in the namespace": Permission.NAMESPACE_USER,
    "consume in the namespace": Permission.NAMESPACE_CONSUMER,
    "functions in the namespace": Permission.FUNCTIONS,
    "sources in the namespace": Permission.SOURCES,
    "sinks in the namespace": Permission.SINKS,
    "packages in the namespace": Permission.PACKAGES,
    "produce or consume on the topic": Permission.TOPIC_USER,
    "produce on the topic": Permission.TOPIC_PRODUCER,
    "consume on the topic": Permission.TOPIC_CONSUMER,
    "consume on the topic of the job, and produce on its target": Permission.JOB,
}


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table under a heading, without its header row."""
    part = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_kind_of_permission_has_a_row_and_its_examples_are_of_it() -> None:
    table = {f"{row.method} {row.path}": row.permission for row in all_routes().rows}
    said = {WORDS[what]: re.findall("`([^`]+)`", examples) for what, examples in rows("Permissions of the Admin API")}
    assert set(said) == set(Permission)
    assert {each: permission for permission, found in said.items() for each in found} == {
        each: table[each] for found in said.values() for each in found
    }


def test_every_command_that_is_asked_about_has_a_row() -> None:
    needs = {each.value: each for each in Needs}
    said = {name: needs[what] for names, what in rows("Permissions of clients") for name in names.split(", ")}
    table = command_table(guarded_box().broker.authorization)
    assert said == {
        COMMANDS[number].name: row.permission for number, row in table.items() if RULES[row.permission] is not None
    }
