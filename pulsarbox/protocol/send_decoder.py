"""Fast path for decoding SEND, the command that carries every published message or batch.

The bytes of CommandSend are cut out of their BaseCommand and parsed on their own, and only the required fields are
checked: 0.5 us, against 0.95 us for ``parse_command`` (benchmarks/protocol_codec.py).
"""

from __future__ import annotations

from google.protobuf.message import DecodeError

from pulsarbox.protocol.commands import parse_command
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandSend

_parse = CommandSend.FromString
_START = b"\x08\x06\x32"
"""The type number of SEND and the tag of the field ``send``, as every client encodes them."""


def parse_send(data: bytes) -> CommandSend | None:
    """Return the CommandSend of an encoded BaseCommand, or None if it is another command.

    Raises MalformedCommand. ``parse_command`` handles any unusual form: more than 127 bytes, another order of fields,
    or the message ID that only replicators send.
    """
    size = len(data) - 4
    if 0 < size < 128 and data[3] == size and data[:3] == _START:
        try:
            send = _parse(data[4:])
        except DecodeError:
            return _other(data)
        # A value other than 0 was present; a 0 may also mean that a required field is missing.
        if (
            (send.sequence_id or send.HasField("sequence_id"))
            and (send.producer_id or send.HasField("producer_id"))
            and not send.HasField("message_id")
        ):
            return send
    return _other(data)


def _other(data: bytes) -> CommandSend | None:
    command = parse_command(data)
    return command.send if command.type == BaseCommand.SEND else None
