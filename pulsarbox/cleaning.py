"""Escaping of untrusted text and bytes before they are written to a terminal."""

from collections.abc import Iterator
from typing import Any, NamedTuple


def clean(text: str) -> str:
    """Return ``text`` with every non-printable character (control codes, bidi controls) shown as an escape sequence."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def cleaned(value: Any) -> Any:
    """Return a JSON value with every string in it cleaned, object keys included."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [cleaned(each) for each in value]
    if isinstance(value, dict):
        return {clean(key): cleaned(each) for key, each in value.items()}
    return value


class HexRow(NamedTuple):
    """Sixteen bytes of a hex dump."""

    offset: int
    data: bytes
    text: str
    """The bytes as ASCII; a dot for every other byte."""

    @property
    def hex(self) -> str:
        """The bytes in two groups of eight, padded to the width of a full row."""
        return f"{self.data[:8].hex(' '):<23}  {self.data[8:].hex(' '):<23}"


def hex_rows(data: bytes) -> Iterator[HexRow]:
    """Yield the rows of a hex dump."""
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        yield HexRow(at, row, text)
