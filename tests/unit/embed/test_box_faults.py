"""Rules of faults: a misspelled member fails in the line that has it."""

from dataclasses import fields
from typing import Any

import pytest

from pulsarbox.broker.faults.rule import Rule
from pulsarbox.embed.box_faults import BoxFaults, FaultRule


def no_box(method: str, path: str, body: object) -> Any:
    raise AssertionError("the box was asked")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"subscripton": "billing"}, "unknown member 'subscripton' of a fault; did you mean subscription?"),
        ({"commands": "send"}, "unknown member 'commands' of a fault; did you mean command?"),
        ({"qqqq": 1}, "unknown member 'qqqq' of a fault"),
    ],
)
def test_a_misspelled_member_is_refused_without_a_box(rule: dict[str, Any], message: str) -> None:
    faults = BoxFaults(no_box)
    with pytest.raises(TypeError) as refused:
        faults.add("error", **rule)
    assert str(refused.value) == message
    with pytest.raises(TypeError), faults.rule("error", **rule):
        pass


def test_the_members_are_those_of_the_box() -> None:
    assert {*FaultRule.__annotations__, "action", "command", "delay"} == {each.name for each in fields(Rule)}
