"""Every command of the binary protocol with every kind of role, and changes of permissions."""

import logging
from typing import Any

import pytest

from pulsarbox.broker.connection import command_table as table_module
from pulsarbox.broker.connection.command_table import command_table
from pulsarbox.broker.handlers import connection
from pulsarbox.broker.security import refusals
from pulsarbox.broker.security.command_rules import RULES, Needs
from pulsarbox.errors import AuthenticationError, AuthorizationError
from pulsarbox.names import parse_topic
from pulsarbox.protocol.commands import COMMANDS
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandSubscribe, ProducerAccessMode, Schema
from tests.unit.broker.playbook import Box
from tests.unit.broker.roles import TOPIC, client_of, guarded_box

ROLES = (None, "stranger", "producer", "consumer", "functions", "topic-producer", "topic-consumer", "other-admin",
         "admin", "root")  # fmt: skip
DENIED, UNKNOWN = AuthorizationError.server_error, AuthenticationError.server_error

LETS_IN: dict[Needs, set[str | None]] = {
    Needs.NOTHING: set(ROLES),
    Needs.OPENED: set(ROLES),
    Needs.NAME: set(ROLES) - {None},
    Needs.LOOKUP: {"producer", "consumer", "topic-producer", "topic-consumer", "admin", "root"},
    Needs.PRODUCE: {"producer", "topic-producer", "admin", "root"},
    Needs.CONSUME: {"consumer", "topic-consumer", "admin", "root"},
    Needs.NAMESPACE: {"producer", "consumer", "admin", "root"},
    Needs.SUPERUSER: {"root"},
}
"""Roles allowed per requirement of a command. The connection may still close for another reason."""

FIELDS: dict[int, dict[str, Any]] = {
    BaseCommand.LOOKUP: {"topic": TOPIC},
    BaseCommand.PARTITIONED_METADATA: {"topic": TOPIC},
    BaseCommand.GET_TOPICS_OF_NAMESPACE: {"namespace": "shop/eu"},
    BaseCommand.WATCH_TOPIC_LIST: {"namespace": "shop/eu", "watcher_id": 1, "topics_pattern": ".*"},
    BaseCommand.PRODUCER: {"topic": TOPIC, "producer_id": 1},
    BaseCommand.SUBSCRIBE: {"topic": TOPIC, "consumer_id": 1, "subscription": "s", "subType": 0},
    BaseCommand.GET_SCHEMA: {"topic": TOPIC},
    BaseCommand.GET_OR_CREATE_SCHEMA: {
        "topic": TOPIC,
        "schema": Schema(name="s", schema_data=b"", type=Schema.String),
    },
    BaseCommand.TC_CLIENT_CONNECT_REQUEST: {"tc_id": 0},
    BaseCommand.NEW_TXN: {},
    BaseCommand.ADD_PARTITION_TO_TXN: {"partitions": [TOPIC]},
    BaseCommand.ADD_SUBSCRIPTION_TO_TXN: {},
    BaseCommand.END_TXN: {},
    BaseCommand.END_TXN_ON_PARTITION: {"topic": TOPIC},
    BaseCommand.END_TXN_ON_SUBSCRIPTION: {},
}
"""Resources of the commands that require authorization."""


def code(reply: Any) -> int:
    """Return the error code of any response, or -1 if it has none."""
    for name in ("error", "error_code"):
        if any(field.name == name for field, _ in reply.ListFields()):
            value = getattr(reply, name)
            assert isinstance(value, int)
            return value
    return -1


@pytest.mark.parametrize("role", ROLES)
def test_every_command_lets_in_whom_its_row_says(role: str | None) -> None:
    box = guarded_box()
    for number, row in box.broker.command_table.items():
        assert (row.rule is None) == (RULES[row.permission] is None)
        if row.rule is None:
            continue
        client = client_of(box, role)
        reply = client.request(COMMANDS[number].field, **FIELDS[number])
        assert reply is not None, row
        refused = code(reply) in (DENIED, UNKNOWN)
        assert refused == (role not in LETS_IN[row.permission]), (role, row.permission, reply)
        if refused:
            text = getattr(reply, "error_message", None) or reply.message
            assert code(reply) == (UNKNOWN if role is None else DENIED)
            expected = f"Client is not authorized to {row.words}"
            if role is None:
                assert text.startswith("Need to auth")
            elif row.permission is Needs.LOOKUP:
                assert text == expected
            else:
                assert text.startswith(f"{expected}: ")
        assert not client.closed
        client.cnx.closed(box.now)


def test_the_test_knows_every_need() -> None:
    assert set(LETS_IN) == set(Needs) == set(RULES)


def test_a_command_whose_permission_has_no_rule_does_not_load(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ((BaseCommand.PING, table_module.CONNECTED, "everybody", connection.ping),)
    monkeypatch.setattr(table_module, "_ROWS", rows)
    with pytest.raises(ValueError, match="no permission: 'everybody'"):
        command_table(guarded_box().broker.authorization)


def test_nothing_is_asked_with_authorization_off() -> None:
    assert all(row.rule is None for row in Box().broker.command_table.values())


@pytest.mark.parametrize("field", ["lookupTopic", "partitionMetadata", "producer", "subscribe"])
def test_who_may_not_makes_no_topic(field: str) -> None:
    box = guarded_box()
    client, topic = client_of(box, "stranger"), "persistent://shop/eu/new"
    more: dict[str, dict[str, Any]] = {
        "producer": {"producer_id": 1},
        "subscribe": {"consumer_id": 1, "subscription": "s", "subType": 0},
    }
    fields = more.get(field, {})
    assert code(client.request(field, topic=topic, **fields)) == DENIED
    assert not box.broker.topics.exists(parse_topic(topic))
    assert code(client_of(box, "root").request("producer", topic=topic, producer_id=1)) == -1
    assert box.broker.topics.exists(parse_topic(topic))


def test_a_subscription_that_a_producer_brings_is_asked_for_too() -> None:
    box = guarded_box()
    assert code(client_of(box, "producer").producer(topic=TOPIC, initial_subscription_name="s")) == DENIED
    box.broker.permissions.grant("shop/eu", "producer", ["produce", "consume"], box.now)
    assert code(client_of(box, "producer").producer(topic=TOPIC, initial_subscription_name="s")) == -1


def test_a_missing_tenant_is_no_reason_to_try_again() -> None:
    box = guarded_box()
    reply = client_of(box, "stranger").request("partitionMetadata", topic="persistent://gone/eu/t")
    assert (reply.error, reply.message) == (11, "Tenant does not exist")


def test_a_bad_name_is_told_in_the_words_of_its_command() -> None:
    reply = client_of(guarded_box(), "stranger").request("lookupTopic", topic="a/b")
    assert reply.error == 17


# Changed permissions


def test_a_revoked_producer_is_closed_and_refused_when_it_comes_back() -> None:
    box = guarded_box()
    client, other = client_of(box, "producer"), client_of(box, "topic-producer")
    for each in (client, other):
        assert code(each.producer(topic=TOPIC)) == -1
    box.broker.permissions.revoke("shop/eu", "producer", box.now)
    box.turn()
    assert client.take("close_producer").producer_id == 1
    assert other.names() == []
    assert code(client.producer(topic=TOPIC)) == DENIED


def test_a_revoked_consumer_is_closed_and_what_it_held_goes_to_one_who_may() -> None:
    box = guarded_box()
    client_of(box, "root").producer(topic=TOPIC)
    left, stays = client_of(box, "topic-consumer"), client_of(box, "consumer")
    shared = CommandSubscribe.Shared
    for each in (left, stays):
        assert code(each.subscribe(topic=TOPIC, subType=shared)) == -1
    left.flow(10)
    root = client_of(box, "root")
    root.publish(3, topic=TOPIC)
    assert len(left.received()) == 3
    box.broker.permissions.revoke_topic(parse_topic(TOPIC), "topic-consumer", box.now)
    box.turn()
    assert left.take("close_consumer").consumer_id == 1
    stays.flow(10)
    assert len(stays.received()) == 3
    assert code(left.subscribe(topic=TOPIC, subType=shared)) == DENIED


def test_who_loses_a_permission_while_it_is_found_where_to_begin_does_not_begin() -> None:
    box = guarded_box()
    root, client = client_of(box, "root"), client_of(box, "consumer")
    root.publish(3, topic=TOPIC)
    box.advance(1)
    root.subscribe("s", topic=TOPIC)
    root.ask("close_consumer", consumer_id=1, request_id=1)
    box.auto = False
    assert client.subscribe("s", topic=TOPIC, start_message_rollback_duration_sec=100) is None
    box.broker.permissions.revoke("shop/eu", "consumer", box.now)
    box.auto = True
    box.turn()
    assert client.take("error").error == DENIED
    client.flow(10)
    assert client.names() == []


def test_all_revoked_consumers_of_a_subscription_go_before_any_of_them_is_sent_anything() -> None:
    box = guarded_box()
    clients = [client_of(box, "consumer") for _ in range(2)]
    for each in clients:
        each.subscribe(topic=TOPIC, subType=CommandSubscribe.Shared)
    clients[0].flow(10)
    client_of(box, "root").publish(3, topic=TOPIC)
    clients[1].flow(10)
    assert len(clients[0].received()) == 3
    box.broker.permissions.revoke("shop/eu", "consumer", box.now)
    box.turn()
    assert [each.names() for each in clients] == [["close_consumer"], ["close_consumer"]]


def test_who_waits_for_a_topic_and_may_not_any_more_gets_no_turn() -> None:
    box = guarded_box()
    holder, waits = client_of(box, "root"), client_of(box, "producer")
    holder.producer(topic=TOPIC, producer_access_mode=ProducerAccessMode.Exclusive)
    assert not waits.producer(topic=TOPIC, producer_access_mode=ProducerAccessMode.WaitForExclusive).producer_ready
    box.broker.permissions.revoke("shop/eu", "producer", box.now)
    box.turn()
    assert waits.take("error").error == DENIED
    holder.ask("close_producer", producer_id=1, request_id=1)
    assert waits.names() == []


def test_a_subscription_kept_for_others_and_names_that_begin_with_the_role() -> None:
    box = guarded_box()
    box.broker.permissions.grant_subscription("shop/eu", "s", ["topic-consumer"], box.now)
    reply = client_of(box, "consumer").subscribe(topic=TOPIC)
    assert (code(reply), "kept for other roles" in reply.message) == (DENIED, True)
    assert code(client_of(box, "topic-consumer").subscribe(topic=TOPIC)) == -1
    assert code(client_of(box, "admin").subscribe("u", topic=TOPIC)) == -1
    box.broker.tenants.set_policy("shop/eu", "subscription_auth_mode", "Prefix", box.now)
    reply = client_of(box, "consumer").subscribe("x", topic=TOPIC)
    assert (code(reply), "prefixed by the authentication role" in reply.message) == (DENIED, True)
    assert code(client_of(box, "consumer").subscribe("consumer-x", topic=TOPIC)) == -1


def test_a_change_of_another_policy_leaves_those_who_may(caplog: pytest.LogCaptureFixture) -> None:
    box = guarded_box()
    client = client_of(box, "producer")
    client.producer(topic=TOPIC)
    box.broker.tenants.set_policy("shop/eu", "message_ttl_in_seconds", 5, box.now)
    box.turn()
    assert client.names() == []


# Log


def test_a_refusal_is_one_line_and_of_a_flood_only_some_are_told(caplog: pytest.LogCaptureFixture) -> None:
    box = guarded_box()
    client = client_of(box, "stranger")
    with caplog.at_level(logging.WARNING):
        for _ in range(refusals.LINES + 20):
            client.producer(topic=TOPIC)
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == refusals.LINES
    assert lines[0].startswith("'stranger' at 127.0.0.1:1: PRODUCER: refused: 'stranger' has no permission to")
    box.advance(refusals.PERIOD)
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        client.producer(topic=TOPIC)
    assert caplog.records[0].getMessage().endswith("(and 20 more that are not told)")
