"""``pulsarbox.protocol.send_decoder``."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarbox.protocol.commands import COMMANDS, parse_command
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandSend
from pulsarbox.protocol.send_decoder import parse_send
from pulsarbox.protocol.violations import MalformedCommand
from tests.tools.campaigns import examples
from tests.unit.protocol.strategies import captured, command_of


@given(command_of(COMMANDS[BaseCommand.SEND]))
def test_it_reads_what_parse_command_reads(command: BaseCommand) -> None:
    assert parse_send(command.SerializeToString()) == command.send


@given(st.data())
@settings(max_examples=examples(300))
def test_mutated_sends_are_read_or_refused_alike(data: st.DataObject) -> None:
    base = BaseCommand(type=6, send=CommandSend(producer_id=0, sequence_id=0, num_messages=3))  # type: ignore[arg-type]
    raw = bytearray(base.SerializeToString())
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    assert outcome_of_parse_send(bytes(raw)) == outcome_of_parse_command(bytes(raw))


def outcome_of_parse_send(raw: bytes) -> CommandSend | str | None:
    try:
        return parse_send(raw)
    except MalformedCommand as error:
        return str(error)


def outcome_of_parse_command(raw: bytes) -> CommandSend | str | None:
    try:
        command = parse_command(raw)
    except MalformedCommand as error:
        return str(error)
    return command.send if command.type == BaseCommand.SEND else None


def test_other_commands_are_none_and_bad_ones_raise() -> None:
    for row in captured():
        size = int.from_bytes(row.frame[4:8], "big")
        assert (parse_send(row.frame[8 : 8 + size]) is not None) == (row.type == "SEND")
    with pytest.raises(MalformedCommand, match=r"send\.sequence_id"):
        parse_send(b"\x08\x06\x32\x02\x08\x00")
