"""`pulsarbox admin` with a running box: supported commands work, others report that they are unsupported."""

import json
import re
import subprocess
from collections.abc import Callable

import pulsar
import pytest

from pulsarbox.cli.pulsar_admin import table
from pulsarbox.server.http.admin_endpoints import endpoints
from tests import forks
from tests.e2e.conftest import Running

Admin = Callable[..., str]


@pytest.fixture
def run(box: Running) -> Callable[..., subprocess.CompletedProcess[str]]:
    return lambda *words: forks.text(forks.run("admin", "--admin-url", box.web_url, *words))


@pytest.fixture
def admin(run: Callable[..., subprocess.CompletedProcess[str]]) -> Admin:
    """Return the output of a command, which must succeed."""

    def admin(*words: str) -> str:
        done = run(*words)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    return admin


def test_tenants_and_namespaces(admin: Admin, run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    admin("tenants", "create", "acme", "-r", "clerk,boss")
    assert "acme" in admin("tenants", "list").splitlines()
    assert sorted(json.loads(admin("tenants", "get", "acme"))["adminRoles"]) == ["boss", "clerk"]
    admin("tenants", "update", "acme", "--admin-roles", "boss")
    assert json.loads(admin("tenants", "get", "acme"))["adminRoles"] == ["boss"]
    admin("namespaces", "create", "acme/shop", "-b", "8")
    assert admin("namespaces", "list", "acme") == "acme/shop\n"
    assert json.loads(admin("namespaces", "bundles", "acme/shop"))["numBundles"] == 8
    admin("namespaces", "grant-permission", "acme/shop", "--role", "clerk", "--actions", "produce,consume")
    assert admin("namespaces", "permissions", "acme/shop") == "clerk    [produce, consume]\n"
    admin("namespaces", "revoke-permission", "acme/shop", "--role", "clerk")
    assert admin("namespaces", "permissions", "acme/shop") == ""
    admin("namespaces", "set-properties", "acme/shop", "-p", "a=b", "-p", "c=d")
    assert json.loads(admin("namespaces", "get-properties", "acme/shop")) == {"a": "b", "c": "d"}
    assert run("tenants", "delete", "acme").returncode == 4
    admin("namespaces", "delete", "acme/shop")
    admin("tenants", "delete", "acme")
    assert run("tenants", "get", "acme").returncode == 3


def test_topics_with_and_without_partitions(admin: Admin, fresh: Callable[[str], str]) -> None:
    plain, divided = fresh("plain"), fresh("divided")
    admin("topics", "create", plain, "-m", "owner=me")
    assert admin("topics", "get-properties", plain) == "owner    me\n"
    admin("topics", "create-partitioned-topic", divided, "-p", "2")
    assert json.loads(admin("topics", "get-partitioned-topic-metadata", divided))["partitions"] == 2
    admin("topics", "update-partitioned-topic", divided, "-p", "3")
    listed = admin("topics", "list", "public/default").splitlines()
    assert {plain, f"{divided}-partition-2"} <= set(listed)
    assert divided in admin("topics", "list-partitioned-topics", "public/default").splitlines()
    assert admin("topics", "partitioned-lookup", divided).count("pulsar://") == 3
    assert admin("topics", "lookup", plain).startswith("pulsar://")
    assert admin("topics", "bundle-range", plain).startswith("0x")
    admin("topics", "unload", plain)
    admin("topics", "delete-partitioned-topic", divided)
    admin("topics", "delete", plain)
    assert plain not in admin("topics", "list", "public/default").splitlines()


def test_subscriptions_and_their_messages(admin: Admin, client: pulsar.Client, fresh: Callable[[str], str]) -> None:
    topic = fresh("orders")
    name = "a/b+c %d"
    admin("topics", "create", topic)
    admin("topics", "create-subscription", topic, "-s", name, "-m", "earliest")
    assert admin("topics", "subscriptions", topic) == f"{name}\n"
    producer = client.create_producer(topic, batching_enabled=False)
    for number in range(5):
        producer.send(b"message %d" % number, properties={"n": str(number)})
    assert backlog(admin, topic, name) == 5
    peeked = admin("topics", "peek-messages", topic, "-s", name, "-n", "2")
    assert peeked.count("Message ID: ") == 2
    assert "n    1" in peeked.splitlines()
    assert "|message 0       |" in peeked
    admin("topics", "skip", topic, "-s", name, "-n", "2")
    assert backlog(admin, topic, name) == 3
    admin("topics", "reset-cursor", topic, "-s", name, "-t", "1h")
    assert backlog(admin, topic, name) == 5
    last = json.loads(admin("topics", "last-message-id", topic))
    admin("topics", "reset-cursor", topic, "-s", name, "-m", f"{last['ledgerId']}:{last['entryId']}")
    assert backlog(admin, topic, name) == 1
    found = admin("topics", "get-message-by-id", topic, "-l", str(last["ledgerId"]), "-e", str(last["entryId"]))
    assert "|message 4       |" in found
    assert "|message 0       |" in admin("topics", "examine-messages", topic, "-i", "earliest", "-m", "1")
    admin("topics", "clear-backlog", topic, "-s", name)
    assert backlog(admin, topic, name) == 0
    admin("topics", "unsubscribe", topic, "-s", name)
    assert admin("topics", "subscriptions", topic) == ""


def backlog(admin: Admin, topic: str, subscription: str) -> int:
    found = json.loads(admin("topics", "stats", topic, "-gpb"))["subscriptions"][subscription]["msgBacklog"]
    assert isinstance(found, int)
    return found


def test_brokers_and_clusters(admin: Admin) -> None:
    assert admin("brokers", "healthcheck") == "ok\n"
    assert admin("brokers", "version").strip()
    assert admin("clusters", "list") == "standalone\n"
    assert admin("clusters", "list", "-c") == "standalone(*)\n"
    assert admin("brokers", "list", "standalone").count("\n") == 1
    assert "allowAutoTopicCreation" in admin("brokers", "list-dynamic-config").splitlines()


@pytest.mark.usefixtures("ours")
def test_what_is_not_served_says_so(run: Callable[..., subprocess.CompletedProcess[str]], box: Running) -> None:
    done = run("namespaces", "update-migration-state", "public/default", "--migrated")
    refusal = "enableMigration is not supported: a box cannot redirect the clients of a namespace"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"pulsarbox: {refusal}\n")


def test_every_reading_command_reaches_its_endpoint(admin: Admin, box: Running, fresh: Callable[[str], str]) -> None:
    """No command requests an unknown path: the status would be 404 or 405 without the box's own reason."""
    from click.testing import CliRunner

    from pulsarbox.cli.main import main

    topic = fresh("all")
    admin("topics", "create", topic)
    unknown = []
    rooms = {room_of(one.path) for one in endpoints()}
    for group in table.GROUPS:
        for name, heading in table.headings(group).items():
            command = table.command(group, heading)
            if any(call.method != "GET" or room_of(call.path) not in rooms for call in command.calls):
                continue  # it changes something, or asks a proxy
            if not command.calls:
                continue
            words = [VALUES.get(one.name, "x") if one.name != "topic" else topic for one in arguments(command)]
            for one in command.parameters:
                if one.spellings and one.required:
                    words += [one.spellings[0], "1" if one.base in ("int", "millis") else VALUES.get(one.name, "x")]
            done = CliRunner().invoke(main, ["admin", "--admin-url", box.web_url, group, name, *words])
            if done.stderr.startswith("Usage:") or re.search("There is nothing at|HTTP 40[45]", done.stderr):
                unknown.append((group, name, words, done.stderr))
    assert unknown == []


def room_of(path: str) -> str:
    """The resource of an endpoint, such as ``topics``."""
    return path.split("/")[3] if path.startswith("/admin/") else "" if path.startswith("/lookup/") else path


VALUES = {
    "namespace": "public/default",
    "package": "function://public/default/orders@1",
    "tenant": "public",
    "cluster": "standalone",
    "datetime": "2026-01-31T12:00:00Z",
}


def arguments(command: table.Command) -> list[table.Parameter]:
    return [one for one in command.parameters if not one.spellings]
