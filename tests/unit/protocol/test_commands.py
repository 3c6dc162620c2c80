"""``pulsarbox.protocol.commands``."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsarbox.protocol.commands import COMMANDS, CommandSpec, encode_frame, encode_payload_frame, parse_command
from pulsarbox.protocol.frames import FrameDecoder
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand
from pulsarbox.protocol.violations import MalformedCommand
from tests.tools.campaigns import examples
from tests.unit.protocol.strategies import captured, command_of


def test_the_table_has_every_type_and_every_part() -> None:
    assert {number: spec.name for number, spec in COMMANDS.items()} == {
        value.number: value.name for value in BaseCommand.Type.DESCRIPTOR.values
    }
    for number, spec in COMMANDS.items():
        assert BaseCommand.DESCRIPTOR.fields_by_number[number].name == spec.field
    assert [spec.name for spec in COMMANDS.values() if spec.has_payload] == ["SEND", "MESSAGE"]


@pytest.mark.parametrize("spec", COMMANDS.values(), ids=lambda spec: spec.name)
def test_every_command_comes_back_from_its_frame(spec: CommandSpec) -> None:
    @given(command_of(spec), st.binary(max_size=20))
    @settings(max_examples=8)
    def round_trip(command: BaseCommand, payload: bytes) -> None:
        stream = encode_frame(command) + encode_payload_frame(command, payload)
        (first, nothing), (second, rest) = FrameDecoder(100_000).feed(stream)
        assert (nothing, rest) == (b"", payload)
        assert parse_command(first) == parse_command(second) == command

    round_trip()


def test_real_frames_are_read_and_written_back_byte_by_byte() -> None:
    for row in captured():
        ((data, rest),) = FrameDecoder(100_000).feed(row.frame)
        command = parse_command(data)
        assert COMMANDS[command.type].name == row.type
        assert encode_payload_frame(command, rest) == row.frame
        assert bool(rest) == COMMANDS[command.type].has_payload


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "command without a type, 0 bytes long"),
        (b"\xff", "malformed command of 1 bytes"),
        (b"\x08\x46", "command of unknown type 70"),
        (b"\x08\xc6\x02\x12\x00", "command of unknown type 326"),
        (b"\x12\x00", "command without a type"),
        (b"\x08\x06", "command of type 6 (SEND) without the field send"),
        (b"\x08\x06\x12\x00", "command of type 6 (SEND) without the field send"),
        (b"\x08\x06\x32\x02\x08\x01", "SEND without the required fields send.sequence_id"),
        (b"\x08\x0e\x72\x07\x08\x01\x10\x00\x1a\x01\xff", "ERROR: message is not UTF-8"),
        (b"\x08\x05\x2a\x10\x0a\x01t\x10\x01\x18\x02\x32\x07\x0a\x02\xc3\x28\x12\x01v", "metadata.key is not UTF-8"),
    ],
)
def test_what_is_wrong_is_said(data: bytes, says: str) -> None:
    with pytest.raises(MalformedCommand) as caught:
        parse_command(data)
    assert says in str(caught.value)


@given(st.data())
@settings(max_examples=examples(300))
def test_mutated_commands_are_read_or_refused(data: st.DataObject) -> None:
    command = bytearray(FrameDecoder(100_000).feed(data.draw(st.sampled_from(captured())).frame)[0][0])
    for _ in range(data.draw(st.integers(1, 3))):
        command[data.draw(st.integers(0, len(command) - 1))] = data.draw(st.integers(0, 255))
    try:
        parsed = parse_command(bytes(command))
    except MalformedCommand:
        return
    parsed.SerializeToString()


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        assert parse_command(data).IsInitialized()
    except MalformedCommand:
        pass
