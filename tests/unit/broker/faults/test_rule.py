"""Fault rules: validation, matching and frequency."""

from typing import Any

import pytest

from pulsarbox.broker.faults.faults import Faults
from pulsarbox.broker.faults.rule import Occasion, rule_of
from pulsarbox.errors import BadRequest, NotFound, PulsarBoxError, Unprocessable

TOPIC = "persistent://public/default/orders"
SEND = Occasion("send", TOPIC, "Pulsar-CPP-v4\n127.0.0.1:5", "press")
ACK = Occasion("ack", TOPIC, "Pulsar-CPP-v4\n127.0.0.1:5", "", "billing", "c1")


@pytest.mark.parametrize(
    ("document", "fits"),
    [
        ({}, (True, True)),
        ({"command": "send"}, (True, False)),
        ({"command": ["send", "ACK"]}, (True, True)),
        ({"command": "send,ack"}, (True, True)),
        ({"topic": "orders"}, (True, True)),
        ({"topic": "public/default/orders"}, (True, True)),
        ({"topic": "persistent://public/default/ord*"}, (True, True)),
        ({"topic": "*invoices"}, (False, False)),
        ({"producer": "pre?s"}, (True, False)),
        ({"subscription": "bill*"}, (False, True)),
        ({"consumer": "c2"}, (False, False)),
        ({"client": "Pulsar-CPP-*"}, (True, True)),
        ({"client": "127.0.0.1:*"}, (True, True)),
        ({"client": "Go*"}, (False, False)),
    ],
)
def test_what_a_rule_is_about(document: dict[str, Any], fits: tuple[bool, bool]) -> None:
    rule = rule_of({"action": "drop", **document})
    assert (rule.fits(SEND), rule.fits(ACK)) == fits


def struck(document: dict[str, Any], times: int = 12) -> list[int]:
    rule = rule_of({"action": "drop", **document})
    return [number for number in range(1, times + 1) if rule.strikes(number)]


def test_how_often_it_strikes() -> None:
    assert struck({}) == [*range(1, 13)]
    assert struck({"nth": 3}) == [3]
    assert struck({"every": 5}) == [5, 10]
    assert struck({"first": 2}) == [1, 2]
    assert struck({"every": 2, "first": 6}) == [2, 4, 6]
    assert struck({"probability": 0}) == []


def test_chance_is_as_likely_as_it_says_and_the_same_again() -> None:
    once = struck({"probability": 0.2, "seed": 7}, 10_000)
    assert 1_800 < len(once) < 2_200
    assert struck({"probability": 0.2, "seed": 7}, 10_000) == once
    assert struck({"probability": 0.2, "seed": 8}, 10_000) != once


@pytest.mark.parametrize(
    ("document", "kind", "why"),
    [
        ({}, Unprocessable, "must be one of error, delay"),
        ({"action": "explode"}, Unprocessable, "not 'explode'"),
        ({"action": "drop", "topik": "x"}, BadRequest, "did you mean topic"),
        ({"action": "drop", "command": "sent"}, Unprocessable, "did you mean send"),
        ({"action": "drop", "command": 5}, BadRequest, "a list of names"),
        ({"action": "drop", "topic": "a/b"}, PulsarBoxError, "Invalid topic name"),
        ({"action": "drop", "producer": 1}, BadRequest, "must be a string"),
        ({"action": "drop", "nth": -1}, BadRequest, "non-negative"),
        ({"action": "drop", "every": True}, BadRequest, "non-negative integer"),
        ({"action": "drop", "probability": 2}, BadRequest, "from 0 to 1"),
        ({"action": "drop", "at": "noon"}, Unprocessable, "request or answer"),
        ({"action": "duplicate", "at": "request"}, Unprocessable, "Only an answer"),
        ({"action": "delay"}, Unprocessable, "such as 250ms"),
        ({"action": "delay", "delay": "soon"}, BadRequest, "expected a number and a unit, such as"),
        ({"action": "delay", "delay": 0}, BadRequest, "up to a day"),
        ({"action": "drop", "delay": 5}, Unprocessable, "only with the action delay, not with drop"),
        ({"action": "drop", "seed": 5}, Unprocessable, 'requires a "probability"'),
        ({"action": "drop", "nth": 5, "every": 2}, Unprocessable, "exclude each other"),
        ({"action": "drop", "error": "PersistenceError"}, Unprocessable, "only with the action error"),
        ({"action": "error", "error": "PersistanceError"}, Unprocessable, "did you mean PersistenceError"),
        ({"action": "error", "command": "flow"}, Unprocessable, "flow has no answer"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(document: dict[str, Any], kind: type[Exception], why: str) -> None:
    with pytest.raises(kind, match=why):
        rule_of(document)


def test_the_first_that_strikes_decides_and_those_behind_it_do_not_count() -> None:
    faults = Faults()
    first = faults.add(rule_of({"action": "drop", "command": "send", "nth": 2}))
    second = faults.add(rule_of({"action": "disconnect"}))
    actions = [rule and rule.action for rule in map(faults.decide, (SEND, SEND, ACK))]
    assert actions == ["disconnect", "drop", "disconnect"]
    assert (first.matched, first.fired, second.matched, second.fired) == (2, 1, 2, 2)
    shown = {"id": 1, "action": "drop", "command": ("send",), "at": "request", "nth": 2, "matched": 2, "fired": 1}
    assert first.document() == shown
    faults.remove(1)
    with pytest.raises(NotFound, match="Fault 1 not found"):
        faults.get(1)
    faults.clear()
    assert faults.decide(SEND) is None
    assert faults.add(first.rule).number == 3
