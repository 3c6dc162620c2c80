"""Format strings of ``-f``: verbs such as ``%k`` and ``%v{hex}``, for writing messages and parsing lines.

Verbs: %t topic, %p partition, %i ID, %k key, %v payload, %s payload size, %P{name} property, %h all properties, %q
sequence ID, %T publish time, %d event time, %r redelivery count, %%. Times are in milliseconds since 1970, or in a
strftime format (%T{%H:%M:%S}). Modifiers of %k and %v: {hex}, {base64}, {json .a.b}.
Escapes: \\n \\t \\r \\0 \\\\ \\xNN.
"""

import base64
import binascii
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from pulsarbox.client.message_decoder import ReceivedMessage
from pulsarbox.protocol.message_encoder import Outgoing, encoded

VERBS: Final = "%t %p %i %k %v %s %P{name} %h %q %T %d %r %%"
Format = Callable[[ReceivedMessage], bytes]

_TOKEN: Final = re.compile(
    r"%(?P<verb>.)(?:\{(?P<first>[^{}]*)\})?(?:\{(?P<second>[^{}]*)\})?|\\(?P<escape>x[0-9a-fA-F]{2}|.)"
)
_ESCAPES: Final = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}


def pieces(text: str) -> list[bytes | tuple[str, str | None, str | None]]:
    """Split a format into literals and verbs with their arguments in braces. Raises ValueError."""
    found: list[bytes | tuple[str, str | None, str | None]] = []
    literal = b""
    at = 0
    for token in _TOKEN.finditer(text):
        literal += encoded(text[at : token.start()])
        at = token.end()
        escape, verb = token["escape"], token["verb"]
        if escape is not None:
            if escape not in _ESCAPES and len(escape) == 1:
                raise ValueError(f"unknown escape \\{escape}; expected \\n \\t \\r \\0 \\\\ or \\xNN")
            literal += _ESCAPES.get(escape) or bytes([int(escape[1:], 16)])
        elif verb == "%":
            literal += b"%" + encoded(token[0][2:])
        else:
            first, second, behind = _braces(verb, token["first"], token["second"])
            if literal:
                found.append(literal)
            found.append((verb, first, second))
            literal = encoded(behind)
    literal += encoded(text[at:])
    if text.endswith(("%", "\\")) and not text.endswith(("%%", "\\\\")):
        raise ValueError(f"'{text[-1]}' at the end of the format: double it")
    return [*found, literal] if literal else found


def _braces(verb: str, first: str | None, second: str | None) -> tuple[str | None, str | None, str]:
    """Return the arguments of a verb, and the literal text of braces it does not take. Raises ValueError."""
    takes = _TAKES.get(verb)
    if takes is None:
        raise ValueError(f"unknown verb %{verb}; expected one of {VERBS}")
    if first is not None and takes < 1:
        raise ValueError(f"%{verb} takes no argument in braces")
    if second is not None and takes < 2:
        return first, None, f"{{{second}}}"
    return first, second, ""


_TAKES: Final = {"t": 0, "p": 0, "i": 0, "k": 1, "v": 1, "s": 0, "P": 2, "h": 0, "q": 0, "T": 1, "d": 1, "r": 0}

# Writing -------------------------------------------------------------------------------------------------------------


def output_format(text: str) -> Format:
    """Compile a format into a writer of messages. Raises ValueError."""
    parts = [_fixed(each) if isinstance(each, bytes) else _verb(*each) for each in pieces(text)]
    return lambda message: b"".join([part(message) for part in parts])


def _fixed(literal: bytes) -> Format:
    return lambda message: literal


def _verb(verb: str, first: str | None, second: str | None) -> Format:
    if verb == "k":
        return _modified(_key_bytes, first)
    if verb == "v":
        return _modified(lambda message: message.payload or b"", first)
    if verb == "P":
        if not first:
            raise ValueError("%P requires a property name: %P{name}")
        name = first
        return _modified(lambda message: encoded(dict(message.properties).get(name, "")), second)
    if verb == "T":
        return _time(lambda message: message.publish_time, first)
    if verb == "d":
        return _time(lambda message: message.event_time, first)
    return _SIMPLE[verb]


_SIMPLE: Final[dict[str, Format]] = {
    "t": lambda message: encoded(message.topic),
    "p": lambda message: b"%d" % message.partition,
    "i": lambda message: str(message.id).encode(),
    "s": lambda message: b"%d" % len(message.payload or b""),
    "h": lambda message: encoded(",".join(f"{name}={value}" for name, value in message.properties)),
    "q": lambda message: b"%d" % message.sequence_id,
    "r": lambda message: b"%d" % message.entry.redelivery,
}


def _key_bytes(message: ReceivedMessage) -> bytes:
    key = message.key
    if key is None:
        return b""
    if not message.key_is_base64:
        return encoded(key)
    try:
        return base64.b64decode(key, validate=True)
    except binascii.Error:
        return encoded(key)


def _modified(read: Format, modifier: str | None) -> Format:
    if modifier is None:
        return read
    if modifier == "hex":
        return lambda message: read(message).hex().encode()
    if modifier == "base64":
        return lambda message: base64.b64encode(read(message))
    if modifier.startswith("json ."):
        path = modifier.removeprefix("json .").split(".")
        return lambda message: _json_text(json_at(read(message), path))
    raise ValueError(f"unknown modifier {{{modifier}}}; expected one of {{hex}}, {{base64}}, {{json .a.b}}")


def json_at(data: bytes, path: list[str]) -> Any:
    """Return the value at a path of a JSON text, None if it is missing or the text is not JSON."""
    try:
        found = json.loads(data)
        for name in path:
            found = found[int(name)] if isinstance(found, list) else found[name]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return None
    return found


def _json_text(value: Any) -> bytes:
    if value is None:
        return b""
    return encoded(value) if isinstance(value, str) else json.dumps(value, separators=(",", ":")).encode()


def _time(read: Callable[[ReceivedMessage], int], form: str | None) -> Format:
    if form is None:
        return lambda message: b"%d" % read(message)

    def written(message: ReceivedMessage) -> bytes:
        millis = read(message)
        if not millis:
            return b""
        try:
            return encoded(datetime.fromtimestamp(millis / 1000, UTC).astimezone().strftime(form))
        except (ValueError, OverflowError, OSError):  # out of the calendar's range
            return b"%d" % millis

    return written


# Reading -------------------------------------------------------------------------------------------------------------

_READ: Final = {"k": "a key", "v": "a payload", "P": "a property", "d": "an event time"}


def input_format(text: str) -> Callable[[bytes], Outgoing]:
    """Compile a format of %k %v %P{name} %d into a line parser. Each verb extends to the next literal, or the end.

    Raises ValueError for an invalid format. The parser raises ValueError for a line that does not match.
    """
    found = pieces(text)
    pattern = b""
    verbs = []
    for number, piece in enumerate(found):
        if isinstance(piece, bytes):
            pattern += re.escape(piece.rstrip(b"\n") if number == len(found) - 1 else piece)
            continue
        if piece[0] not in _READ:
            raise ValueError(f"%{piece[0]} is not supported for input; expected one of %k %v %P{{name}} %d")
        if number and not isinstance(found[number - 1], bytes):
            raise ValueError(f"%{found[number - 1][0]} and %{piece[0]} must be separated by text")
        pattern += b"(.*?)"
        verbs.append(piece)
    if not verbs:
        raise ValueError("the format has no field: expected %k or %v")
    fits = re.compile(pattern, re.DOTALL)

    def read(line: bytes) -> Outgoing:
        matched = fits.fullmatch(line)
        if matched is None:
            raise ValueError(f"does not match the format {text!r}")
        message = Outgoing(b"")
        for piece, value in zip(verbs, matched.groups(), strict=True):
            message = _with(message, piece, value)
        return message

    return read


def _with(message: Outgoing, piece: tuple[str, str | None, str | None], value: bytes) -> Outgoing:
    verb, first, second = piece
    if verb == "v":
        return message._replace(payload=_decoded(value, first))
    if verb == "k":
        data = _decoded(value, first)
        if first is None:
            return message._replace(key=data.decode("utf-8", "surrogateescape"))
        return message._replace(key=base64.b64encode(data).decode(), key_is_base64=True)
    if verb == "P":
        pair = (first or "", _decoded(value, second).decode("utf-8", "surrogateescape"))
        return message._replace(properties=[*message.properties, pair])
    if not value.isdigit():
        raise ValueError(f"event time {value!r} is not a number of milliseconds")
    return message._replace(event_time=int(value))


def _decoded(value: bytes, modifier: str | None) -> bytes:
    try:
        if modifier == "hex":
            return bytes.fromhex(value.decode("ascii"))
        if modifier == "base64":
            return base64.b64decode(value, validate=True)
    except (ValueError, binascii.Error):
        raise ValueError(f"{value[:50]!r} is not {modifier}") from None
    if modifier is not None:
        raise ValueError(f"{{{modifier}}} is not supported for input; expected {{hex}} or {{base64}}")
    return value
