"""SEND, read the short way: one for every message or batch a producer sends.

The bytes of CommandSend are cut out of the BaseCommand around them and given to protobuf alone, and only the required
fields are checked: 0.5 us, against 0.95 us for ``parse_command`` (benchmarks/protocol_codec.py).
"""

from __future__ import annotations

from google.protobuf.message import DecodeError

from pulsarbox.protocol.commands import parse_command
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandSend

_parse = CommandSend.FromString
_START = b"\x08\x06\x32"
"""The number of SEND, then the tag of the field ``send``: how every client begins it."""


def parse_send(data: bytes) -> CommandSend | None:
    """The CommandSend whose BaseCommand has the bytes ``data``; None when they are another command.

    Raises MalformedCommand like ``parse_command``, which reads what is not in the usual form: larger than 127 bytes,
    with fields in another order, or with the message id that only replicators send.
    """
    size = len(data) - 4
    if 0 < size < 128 and data[3] == size and data[:3] == _START:
        try:
            send = _parse(data[4:])
        except DecodeError:
            return _other(data)
        # A number that is not 0 was there; only 0 may also mean that a required field is missing.
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
