"""Output formats of messages: ``-o`` and ``-f``."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Final

from pulsarbox.cleaning import hex_rows
from pulsarbox.cli.common.stdout import cleaned
from pulsarbox.cli.common.terminal_text import clean
from pulsarbox.cli.messages.message_colors import ID, KEY, NAME, TIME, painted, painted_json
from pulsarbox.client.message_decoder import ReceivedMessage

if TYPE_CHECKING:
    from pulsarbox.cli.envelope.stored_fields import Ask
    from pulsarbox.cli.messages.schema_decoding import Decoding

Form = Callable[[ReceivedMessage], bytes]

_PREVIEW: Final = 200
"""Maximum number of payload characters shown in a table."""


def form_of(
    name: str,
    line_format: str | None,
    decoding: "Decoding | None" = None,
    ask: "Ask | None" = None,
    *,
    colors: bool = False,
) -> Form:
    """Return a writer of messages. With ``decoding``, envelopes include the decoded value; ``ask`` looks up schemas
    for them. With ``colors``, for names in ``COLORED``, the text has no control characters but those of its colours.

    Raises ValueError for an invalid format.
    """
    if line_format is not None:
        from pulsarbox.cli.messages.format_string import output_format

        form = output_format(line_format)
    elif name == "ndjson":
        from pulsarbox.cli.envelope.envelope import EnvelopeWriter

        line = EnvelopeWriter(decoding, ask).line
        return (lambda message: _painted(line(message))) if colors else line
    else:
        form = (COLORED if colors else _FORMS)[name]
    return form if decoding is None else lambda message: form(decoding.readable(message))


def is_colored(name: str, line_format: str | None) -> bool:
    """Return whether an output format has colours."""
    return line_format is None and (name in COLORED or name == "ndjson")


def _raw(message: ReceivedMessage) -> bytes:
    return message.payload or b""


def _lines(message: ReceivedMessage) -> bytes:
    return (message.payload or b"") + b"\n"


def _hex(message: ReceivedMessage) -> bytes:
    """Write the ID, then a hex dump with sixteen bytes per line."""
    payload = message.payload or b""
    lines = [f"{message.id} {len(payload)} bytes" + (" (null)" if message.payload is None else "")]
    lines += [f"{row.offset:08x}  {row.hex}  |{row.text}|" for row in hex_rows(payload)]
    return ("\n".join(lines) + "\n").encode()


def _painted_lines(message: ReceivedMessage) -> bytes:
    return _painted(_lines(message))


def _painted(line: bytes) -> bytes:
    return painted_json(cleaned(line).decode()).encode()


def _table(message: ReceivedMessage) -> bytes:
    return _row(message, colors=False)


def _painted_table(message: ReceivedMessage) -> bytes:
    return _row(message, colors=True)


def _row(message: ReceivedMessage, *, colors: bool) -> bytes:
    when = datetime.fromtimestamp(min(message.publish_time, 2**42) / 1000).astimezone()
    key = f"{'-' if message.key is None else clean(message.key):<12}"
    payload = _preview(message.payload)
    words = [
        painted(when.strftime("%H:%M:%S.%f")[:-3], TIME, colors),
        painted(f"{message.id!s:<16}", ID, colors),
        painted(key, KEY, colors),
        painted_json(payload) if colors else payload,
    ]
    if message.properties:
        pairs = (f"{painted(clean(name), NAME, colors)}={clean(value)}" for name, value in message.properties)
        words.append("{" + ", ".join(pairs) + "}")
    topic = painted(f"{clean(message.topic.rpartition('/')[2]):<20}", TIME, colors)
    return f"{topic} {'  '.join(words)}\n".encode("utf-8", "backslashreplace")


def _preview(payload: bytes | None) -> str:
    if payload is None:
        return "(null)"
    text = clean(payload[: 4 * _PREVIEW].decode("utf-8", "backslashreplace"))
    if len(text) > _PREVIEW or len(payload) > 4 * _PREVIEW:
        return f"{text[:_PREVIEW]}... ({len(payload):,} bytes)"
    return text


_FORMS: Final[dict[str, Form]] = {"lines": _lines, "raw": _raw, "hex": _hex, "table": _table}
COLORED: Final[dict[str, Form]] = {"lines": _painted_lines, "table": _painted_table}
"""Formats with colours, besides ``ndjson``."""
