"""Decoder of multipart/form-data (RFC 7578), which never holds more than one part's headers or a piece of its data."""

import re
from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

from pulsarbox.errors import BadRequest

PARTS_MAX: Final = 16
HEADERS_MAX: Final = 8 << 10
"""Maximum bytes of the headers of a part, and of what precedes the first part."""
_PADDING_MAX: Final = 128
_CRLF: Final = b"\r\n"
_END_OF_HEADERS: Final = b"\r\n\r\n"
_BOUNDARY: Final = re.compile(r';\s*boundary=(?:"([^"]{1,70})"|([^\s";,]{1,70}))\s*(?:;|$)', re.IGNORECASE)
_DISPOSITION: Final = re.compile(rb"^content-disposition:[ \t]*form-data[ \t]*;", re.IGNORECASE | re.MULTILINE)
_NAME: Final = re.compile(rb';[ \t]*name=(?:"([^"\r\n]*)"|([^\s";]+))', re.IGNORECASE)


class FormPart(NamedTuple):
    """The heading of one part of a form."""

    number: int
    """Counted from 1."""
    name: str


class _State(Enum):
    PREAMBLE = 1
    DELIMITER = 2
    HEADERS = 3
    DATA = 4
    OVER = 5


class MultipartDecoder:
    """Decodes one body, which is fed as it arrives."""

    def __init__(self, content_type: str) -> None:
        """``content_type``: the header with the boundary. Raises BadRequest without one."""
        found = _BOUNDARY.search(content_type)
        if found is None:
            raise BadRequest("Content-Type has no valid boundary: expected multipart/form-data; boundary=...")
        self._delimiter = b"\r\n--" + (found[1] or found[2]).encode("utf-8", "replace")
        self._buffer = bytearray(_CRLF)  # the first delimiter may be at the very beginning
        self._skipped = 0
        self._state = _State.PREAMBLE
        self._part = FormPart(0, "")

    @property
    def over(self) -> bool:
        """Whether the form is complete."""
        return self._state is _State.OVER

    def feed(self, data: bytes) -> Iterator[tuple[FormPart, bytes]]:
        """Yield the parts that the bytes continue, each with its data; a part begins with empty data.

        Raises BadRequest for bytes that are not a form.
        """
        self._buffer += data
        while True:
            before = self._state, len(self._buffer)
            if self._state is _State.PREAMBLE:
                self._skip()
            elif self._state is _State.DELIMITER:
                self._end_delimiter()
            elif self._state is _State.HEADERS:
                if self._begin_part():
                    yield self._part, b""
            elif self._state is _State.DATA:
                if piece := self._take():
                    yield self._part, piece
            else:
                self._buffer.clear()  # an epilogue is ignored
            if before == (self._state, len(self._buffer)):
                return

    def _take(self) -> bytes:
        """Remove and return the bytes before the delimiter, or those that cannot be part of it."""
        at = self._buffer.find(self._delimiter)
        end = at if at >= 0 else max(len(self._buffer) - len(self._delimiter) + 1, 0)
        taken = bytes(memoryview(self._buffer)[:end])
        del self._buffer[: end + len(self._delimiter) if at >= 0 else end]
        if at >= 0:
            self._state = _State.DELIMITER
        return taken

    def _skip(self) -> None:
        self._skipped += len(self._take())
        if self._skipped > HEADERS_MAX:
            raise BadRequest("The body does not begin with the boundary of its Content-Type")

    def _end_delimiter(self) -> None:
        buffer = self._buffer
        if buffer.startswith(b"--"):
            self._state = _State.OVER
            return
        end = buffer.find(_CRLF)
        if end < 0 and len(buffer) <= _PADDING_MAX:
            return
        if end < 0 or buffer[:end].strip(b" \t"):
            raise BadRequest("A boundary in the body is not followed by the end of its line")
        del buffer[:end]  # the end of the line may also end empty headers
        self._state = _State.HEADERS

    def _begin_part(self) -> bool:
        end = self._buffer.find(_END_OF_HEADERS)
        if end < 0 and len(self._buffer) <= HEADERS_MAX:
            return False
        if end < 0 or end > HEADERS_MAX:
            raise BadRequest(f"A part of the body has more than {HEADERS_MAX} bytes of headers")
        headers = bytes(self._buffer[len(_CRLF) : end])
        del self._buffer[: end + len(_END_OF_HEADERS)]
        number = self._part.number + 1
        if number > PARTS_MAX:
            raise BadRequest(f"The body has more than {PARTS_MAX} parts")
        self._part = FormPart(number, _name_in(headers))
        self._state = _State.DATA
        return True


def _name_in(headers: bytes) -> str:
    begin = _DISPOSITION.search(headers)
    line = b"" if begin is None else headers[begin.start() :].split(_CRLF, 1)[0]
    found = _NAME.search(line)
    if found is None:
        raise BadRequest('A part of the body has no name: expected Content-Disposition: form-data; name="..."')
    return (found[1] or found[2] or b"").decode("utf-8", "replace")
