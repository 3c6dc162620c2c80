"""The contents of a message in the forms in which they can be shown."""

from collections.abc import Iterator, Mapping
from typing import Any

from pulsarbox.tui.viewer.document import Document
from pulsarbox.tui.viewer.json_reader import JsonReader
from pulsarbox.tui.viewer.lines import HexLines, TextLines
from pulsarbox.tui.viewer.value_reader import ValueReader

_JSON_STARTS = b'{["-0123456789tfn'


class Contents:
    """A payload as a document, if it is one, as text and as bytes. ``steps`` reads the document."""

    def __init__(self, payload: bytes | None, is_whole: bool, reader: JsonReader | ValueReader | None) -> None:
        self.payload = payload
        self.is_whole = is_whole
        self.text = TextLines(payload or b"")
        self._reader = reader
        self._begun = iter(()) if reader is None else reader.steps()

    @property
    def document(self) -> Document | None:
        """The document as far as it has been read, None if the payload is none."""
        reader = self._reader
        if reader is None or (reader.document.is_complete and is_no_document(reader.document)):
            return None
        return reader.document

    @property
    def trouble(self) -> str:
        """Why the document is not whole, or the payload is none; empty if there is nothing to say."""
        return "" if self._reader is None else self._reader.document.trouble

    def steps(self) -> Iterator[None]:
        """Continue to read the document."""
        return self._begun

    def bytes_of(self, node: int) -> tuple[int, int] | None:
        """Return where the text of a node begins and ends in the payload; None for a value decoded by a schema."""
        document = self.document
        if document is None or node >= len(document):
            return None
        span, source = document.span_of(node), document.source
        if span is None or source.isascii():
            return span
        begin = len(source[: span[0]].encode("utf-8", "surrogatepass"))
        return begin, begin + len(source[span[0] : span[1]].encode("utf-8", "surrogatepass"))

    def dump(self, width: int = 16) -> HexLines:
        """Return the payload as a hex dump."""
        return HexLines(self.payload or b"", width)


def is_no_document(document: Document) -> bool:
    """Return whether a text turned out not to be JSON."""
    return document.trouble.startswith("not valid JSON")


def contents_of(row: Mapping[str, Any], payload: bytes | None, is_whole: bool) -> Contents:
    """Return the contents of a message: its value by its schema (``decoded``), or else its payload."""
    if row.get("schemaVersion") is not None and row.get("decoded") is not None:
        return Contents(payload, is_whole, ValueReader(row["decoded"]))
    text = None if payload is None else json_text(payload, is_whole)
    return Contents(payload, is_whole, None if text is None else JsonReader(text, is_whole))


def json_text(payload: bytes, is_whole: bool) -> str | None:
    """Return a payload as text if it may be JSON. The end of a truncated one may be a part of a character."""
    start = payload[:64].lstrip()[:1]
    if not start or start not in _JSON_STARTS:
        return None
    try:
        return payload.decode()
    except UnicodeDecodeError as error:
        return payload[: error.start].decode() if not is_whole and len(payload) - error.start < 4 else None


def is_text(payload: bytes) -> bool:
    """Return whether a payload is likely text, from its beginning."""
    try:
        text = payload[:4096].decode()
    except UnicodeDecodeError as error:
        if error.start < min(len(payload), 4096) - 4:
            return False
        text = payload[: error.start].decode()
    return all(one.isprintable() or one in "\t\r\n" for one in text[:1000])
