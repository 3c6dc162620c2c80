"""Messages without a covering subscription in the commands: retained, shown, and with a warning before a loss."""

import json
import re
from collections.abc import Iterator

import pytest

from pulsarbox import PulsarBox
from tests.e2e.commands import run


@pytest.fixture
def box() -> Iterator[PulsarBox]:
    with PulsarBox(brokerClock="virtual") as box:
        yield box


def at(box: PulsarBox) -> list[str]:
    return ["--url", box.service_url, "--admin-url", box.admin_url]


def web(box: PulsarBox) -> list[str]:
    return ["--admin-url", box.admin_url]


def test_the_first_message_is_there_two_hours_later(box: PulsarBox) -> None:
    run("produce", "invoices", "hello", *at(box))
    run("clock", "advance", "2h", *web(box))
    shown = run("topic", "stats", "invoices", *web(box)).stdout.decode()
    assert re.search(r"unsubscribed +1 message, \d+ B, that no subscription has covered; kept until 2\d\d\d-", shown)
    assert run("consume", "invoices", "-n", "1", "--url", box.service_url).stdout == b"hello\n"


def test_the_retention_policy_names_the_rule(box: PulsarBox) -> None:
    run("topic", "create", "orders", *web(box))
    shown = run("topic", "policy", "orders", "retention", *web(box)).stdout.decode()
    assert "Until a topic has a subscription, its messages are kept for 7d, at most 10%, " in shown
    assert "for all topics together (0 B used)" in shown
    run("ns", "policy", "public/default", "retention", "retentionTimeInMinutes=0,retentionSizeInMB=0", *web(box))
    shown = run("topic", "policy", "orders", "retention", *web(box)).stdout.decode()
    assert "not retained beyond that, as in Pulsar" in shown


def test_a_load_that_would_not_be_kept_is_warned_of_before_it_begins(box: PulsarBox) -> None:
    def produced(*words: str) -> str:
        return run("produce", *words, *at(box), stdin=b"a\nb\n").stderr.decode()

    assert "warning" not in produced("kept")
    run("ns", "policy", "public/default", "retention", "retentionTimeInMinutes=0,retentionSizeInMB=0", *web(box))
    said = produced("lost")
    assert said.startswith("pulsarbox: warning: topic lost has no subscription and no retention")
    assert "--keep NAME" in said
    assert "warning" not in produced("lost", "one message"), "no load"
    assert "warning" in produced("lost", "-q")
    assert "warning" not in produced("archived", "--keep", "archive")
    assert "warning" not in produced("archived"), "it has a subscription"
    found = json.loads(run("sub", "list", "archived", "-o", "json", *web(box)).stdout)
    assert [(each["name"], each["backlog_bytes"] > 0) for each in found] == [("archive", True)]
    got = run("consume", "archived", "-s", "archive", "--until", "end", "--url", box.service_url).stdout
    assert got == b"a\nb\na\nb\n"


def test_keep_takes_each_partition_and_leaves_a_subscription_as_it_is(box: PulsarBox) -> None:
    run("topic", "create", "parts", "-p", "3", *web(box))
    for _ in range(2):
        run("produce", "parts", "--no-batch", "--keep", "archive", *at(box), stdin=b"a\nb\nc\n")
    stats = json.loads(run("topic", "stats", "parts", "-o", "json", *web(box)).stdout)
    assert (stats[0] if isinstance(stats, list) else stats)["subscriptions"]["archive"]["msgBacklog"] == 6


def test_keep_is_no_flag_any_more(box: PulsarBox) -> None:
    said = run("produce", "t", "--keep", "--ids", *at(box), stdin=b"a\n", code=2).stderr.decode()
    assert "--keep requires a subscription name" in said
