"""Authorization with the official client: permissions, errors, and changes at runtime."""

import json
from collections.abc import Iterator
from typing import Any

import pulsar
import pytest
from click.testing import CliRunner

from pulsarbox import PulsarBox
from pulsarbox.cli.common.exits import EXIT_DENIED
from pulsarbox.cli.main import main
from tests.e2e.clients import EARLIEST, connect, take
from tests.unit.broker.security.signing import GUARDED, token

NAMESPACE = "public/default"


@pytest.fixture(scope="module")
def guarded() -> Iterator[PulsarBox]:
    """Start a box with authentication and authorization."""
    with PulsarBox(GUARDED, authorizationEnabled=True, superUserRoles="root") as box:
        yield box


def client_of(box: PulsarBox, role: str) -> Any:
    return connect(box.service_url, authentication=pulsar.AuthenticationToken(token(sub=role).decode()))


def admin(box: PulsarBox, role: str, *words: str, code: int = 0) -> str:
    """Run a command of `pulsarbox admin`; return its output."""
    proof = f"token:{token(sub=role).decode()}"
    done = CliRunner().invoke(main, ["admin", "--admin-url", box.admin_url, "--auth-params", proof, *words])
    assert done.exit_code == code, done.output
    return done.output


def grant(box: PulsarBox, role: str, actions: str) -> None:
    admin(box, "root", "namespaces", "grant-permission", NAMESPACE, "--role", role, "--actions", actions)


def test_produce_and_consume_are_what_was_granted_at_once(guarded: PulsarBox) -> None:
    topic = f"persistent://{NAMESPACE}/granted"
    writer, reader = client_of(guarded, "writer"), client_of(guarded, "reader")
    for each in (writer, reader):
        with pytest.raises(pulsar.AuthorizationError):
            each.create_producer(topic)
        with pytest.raises(pulsar.AuthorizationError):
            each.subscribe(topic, "s")
    assert "granted" not in admin(guarded, "root", "topics", "list", NAMESPACE)
    grant(guarded, "writer", "produce")
    grant(guarded, "reader", "consume")
    consumer = reader.subscribe(topic, "s", initial_position=EARLIEST)
    writer.create_producer(topic).send(b"x")
    assert take(consumer, 1) == [b"x"]
    with pytest.raises(pulsar.AuthorizationError):
        reader.create_producer(topic)
    with pytest.raises(pulsar.AuthorizationError):
        writer.subscribe(topic, "t")
    for each in (writer, reader):
        each.close()


def test_who_loses_a_permission_is_closed(guarded: PulsarBox) -> None:
    topic = f"persistent://{NAMESPACE}/revoked"
    grant(guarded, "leaving", "produce,consume")
    client = client_of(guarded, "leaving")
    client.create_producer(topic).send(b"x")
    client.subscribe(topic, "s")
    stats = json.loads(admin(guarded, "root", "topics", "stats", topic))
    assert (len(stats["publishers"]), len(stats["subscriptions"]["s"]["consumers"])) == (1, 1)
    admin(guarded, "root", "namespaces", "revoke-permission", NAMESPACE, "--role", "leaving")
    stats = json.loads(admin(guarded, "root", "topics", "stats", topic))
    assert (stats["publishers"], stats["subscriptions"]["s"]["consumers"]) == ([], [])
    with pytest.raises(pulsar.AuthorizationError):
        client.create_producer(topic)
    with pytest.raises(pulsar.AuthorizationError):
        client.subscribe(topic, "t")
    client.close()


def test_partitions_of_a_topic_on_which_a_role_was_granted_something(guarded: PulsarBox) -> None:
    topic = f"persistent://{NAMESPACE}/parts"
    admin(guarded, "root", "topics", "create-partitioned-topic", topic, "-p", "3")
    admin(guarded, "root", "topics", "grant-permission", topic, "--role", "parter", "--actions", "produce,consume")
    client = client_of(guarded, "parter")
    consumer = client.subscribe(topic, "s", initial_position=EARLIEST)
    producer = client.create_producer(topic, message_routing_mode=pulsar.PartitionsRoutingMode.RoundRobinDistribution)
    for i in range(6):
        producer.send(b"%d" % i)
    assert len(take(consumer, 6)) == 6
    with pytest.raises(pulsar.AuthorizationError):
        client.create_producer(f"{topic}-others")
    client.close()


def test_subscriptions_whose_names_have_to_begin_with_the_role(guarded: PulsarBox) -> None:
    admin(guarded, "root", "tenants", "create", "prefixed", "--allowed-clusters", "standalone")
    admin(guarded, "root", "namespaces", "create", "prefixed/eu")
    admin(guarded, "root", "namespaces", "grant-permission", "prefixed/eu", "--role", "ann", "--actions", "consume")
    told = asked(guarded, "root", "ns", "policy", "prefixed/eu", "subscription-auth-mode", "Prefix")
    assert (told.exit_code, "nothing follows" in told.output) == (0, False)
    client = client_of(guarded, "ann")
    with pytest.raises(pulsar.AuthorizationError):
        client.subscribe("persistent://prefixed/eu/orders", "billing")
    client.subscribe("persistent://prefixed/eu/orders", "ann-billing")
    client.close()


def test_a_command_that_may_not_says_who_can_help(guarded: PulsarBox) -> None:
    said = admin(guarded, "nobody", "namespaces", "permissions", NAMESPACE, code=EXIT_DENIED)
    assert "'nobody' is not an admin role of public" in said
    said = admin(guarded, "nobody", "topics", "stats", f"persistent://{NAMESPACE}/t", code=EXIT_DENIED)
    assert "grant-permission" in said


def asked(box: PulsarBox, role: str, *words: str) -> Any:
    """Run a command that connects to a box; return its result."""
    proof = f"token:{token(sub=role).decode()}"
    return CliRunner().invoke(main, [*words, "--admin-url", box.admin_url, "--auth-params", proof])


def test_the_admin_of_a_tenant_sees_what_happens_there(guarded: PulsarBox) -> None:
    for tenant in ("shop", "other"):
        allowed = ("--allowed-clusters", "standalone")
        admin(guarded, "root", "tenants", "create", tenant, "--admin-roles", f"{tenant}-ops", *allowed)
        admin(guarded, "root", "namespaces", "create", f"{tenant}/eu")
        admin(guarded, "root", "topics", "create", f"persistent://{tenant}/eu/orders-DLQ")
    for words in (("events",), ("client", "list")):
        refused = asked(guarded, "shop-ops", *words)
        assert refused.exit_code == EXIT_DENIED
        assert "admins of a tenant name it" in refused.stderr
        assert asked(guarded, "shop-ops", *words, "--namespace", "other/eu").exit_code == EXIT_DENIED
    events = asked(guarded, "shop-ops", "events", "--tenant", "shop", "-o", "json")
    assert {each["subject"] for each in json.loads(events.stdout)} == {"persistent://shop/eu/orders-DLQ"}
    with_both = asked(guarded, "shop-ops", "events", "--tenant", "shop", "--namespace", "shop/eu")
    assert with_both.exit_code == 2
    consumer = client_of(guarded, "shop-ops").subscribe("shop/eu/orders-DLQ", "s")
    clients = asked(guarded, "shop-ops", "client", "list", "--namespace", "shop/eu", "-o", "json")
    consumers = [each for each in json.loads(clients.stdout) if each["kind"] == "consumer"]
    assert [(each["topic"], each["role"]) for each in consumers] == [("persistent://shop/eu/orders-DLQ", "shop-ops")]
    consumer.close()


def test_dead_letters_and_plugins_say_who_may(guarded: PulsarBox) -> None:
    refused = asked(guarded, "nobody", "dlq", "list")
    assert refused.exit_code == EXIT_DENIED
    assert "specify one of your namespaces" in refused.stderr
    shown = asked(guarded, "nobody", "dlq", "show", "orders-DLQ", "--url", guarded.service_url)
    assert shown.exit_code == EXIT_DENIED
    assert asked(guarded, "nobody", "plugins", "enable", "any").exit_code == EXIT_DENIED
    assert asked(guarded, "root", "plugins", "enable", "any").exit_code == 3
    listed = asked(guarded, "nobody", "plugins", "list")
    assert listed.exit_code == 0
    assert "plugin states of the box are not shown" in listed.stderr
