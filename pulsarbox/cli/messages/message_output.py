"""Output formats of messages: ``-o`` and ``-f``."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pulsarbox.cleaning import hex_rows
from pulsarbox.cli.common.stdout import cleaned
from pulsarbox.cli.common.terminal_text import counted
from pulsarbox.cli.messages.message_colors import painted_json
from pulsarbox.cli.messages.message_table import MessageTable
from pulsarbox.client.message_decoder import ReceivedMessage

if TYPE_CHECKING:
    from pulsarbox.cli.envelope.stored_fields import Ask
    from pulsarbox.cli.messages.schema_decoding import Decoding

Form = Callable[[ReceivedMessage], bytes]


def form_of(
    name: str,
    line_format: str | None,
    decoding: "Decoding | None" = None,
    ask: "Ask | None" = None,
    *,
    table: MessageTable | None = None,
    colors: bool = False,
) -> Form:
    """Return a writer of messages. With ``decoding``, envelopes include the decoded value; ``ask`` looks up schemas
    for them. With ``colors``, for names in ``COLORED``, the text has no control characters but those of its colours.
    ``table`` writes the rows of a table.

    Raises ValueError for an invalid format.
    """
    if line_format is not None:
        from pulsarbox.cli.messages.format_string import output_format

        form = output_format(line_format)
    elif name == "ndjson":
        from pulsarbox.cli.envelope.envelope import EnvelopeWriter

        line = EnvelopeWriter(decoding, ask).line
        return (lambda message: _painted(line(message))) if colors else line
    elif name == "table":
        form = (table or MessageTable(colors=colors)).row
    else:
        form = _painted_lines if colors and name == "lines" else _FORMS[name]
    return form if decoding is None else lambda message: form(decoding.readable(message))


def is_colored(name: str, line_format: str | None) -> bool:
    """Return whether an output format has colours."""
    return line_format is None and name in COLORED


def _raw(message: ReceivedMessage) -> bytes:
    return message.payload or b""


def _lines(message: ReceivedMessage) -> bytes:
    return (message.payload or b"") + b"\n"


def _hex(message: ReceivedMessage) -> bytes:
    """Write the ID, then a hex dump with sixteen bytes per line."""
    payload = message.payload or b""
    lines = [f"{message.id} {counted(len(payload), 'byte')}" + (" (null)" if message.payload is None else "")]
    lines += [f"{row.offset:08x}  {row.hex}  |{row.text}|" for row in hex_rows(payload)]
    return ("\n".join(lines) + "\n").encode()


def _painted_lines(message: ReceivedMessage) -> bytes:
    return _painted(_lines(message))


def _painted(line: bytes) -> bytes:
    return painted_json(cleaned(line).decode()).encode()


_FORMS: Final[dict[str, Form]] = {"lines": _lines, "raw": _raw, "hex": _hex}
COLORED: Final[frozenset[str]] = frozenset({"lines", "ndjson", "table"})
"""Formats with colours."""
