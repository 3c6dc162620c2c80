"""SEND, read the short way: one for every message or batch a producer sends.

The bytes of CommandSend are cut out of the BaseCommand around them and given to protobuf alone: 0.3 us, against
1.0 us for ``parse_command`` and its checks (benchmarks/protocol_codec.py). A parser written in Python takes 0.9 us.
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

    Raises MalformedCommand like ``parse_command``, which reads what is not in the usual form.
    """
    if data[:3] == _START and len(data) > 4 and data[3] == len(data) - 4 < 128:
        try:
            send = _parse(data[4:])
        except DecodeError:
            send = None
        if send is not None and _is_plain(send):
            return send
    command = parse_command(data)
    return command.send if command.type == BaseCommand.SEND else None


def _is_plain(send: CommandSend) -> bool:
    """Whether what is required is there. A number that is not 0 is; nested ids, which only replicators send, are not looked at."""
    return (
        (send.producer_id > 0 or send.HasField("producer_id"))
        and (send.sequence_id > 0 or send.HasField("sequence_id"))
        and not send.HasField("message_id")
    )
