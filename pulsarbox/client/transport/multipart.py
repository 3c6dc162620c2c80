"""Bodies of type multipart/form-data, with files read from disk while they are sent (RFC 7578)."""

import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

CHUNK_BYTES: Final = 1 << 18
_END: Final = b"\r\n"


class Part(NamedTuple):
    """One field of a form."""

    name: str
    content: str | Path
    """Text, or a file to send."""
    kind: str
    """Media type."""

    @property
    def heading(self) -> str:
        """The headers of the part, without the boundary."""
        named = f'form-data; name="{_quoted(self.name)}"'
        if isinstance(self.content, Path):
            named += f'; filename="{_quoted(self.content.name)}"'
        return f"Content-Disposition: {named}\r\nContent-Type: {self.kind}\r\n\r\n"


class MultipartBody:
    """A form as a body, which can be sent repeatedly, and whose files are never held in memory."""

    def __init__(self, parts: Sequence[Part]) -> None:
        """Raises OSError if a file is missing or is a folder."""
        self._boundary = secrets.token_hex(16)
        self._parts = [(self._opening(part), part.content) for part in parts]
        self._last = f"--{self._boundary}--\r\n".encode()
        self.length = sum(len(opening) + _size(content) + len(_END) for opening, content in self._parts)
        self.length += len(self._last)
        """In bytes."""

    @property
    def kind(self) -> str:
        """The media type, with the boundary."""
        return f"multipart/form-data; boundary={self._boundary}"

    def __iter__(self) -> Iterator[bytes]:
        """Yield the body in chunks. Raises OSError if a file cannot be read or has changed its size."""
        for opening, content in self._parts:
            yield opening
            if isinstance(content, Path):
                yield from _chunks(content)
            else:
                yield content.encode()
            yield _END
        yield self._last

    def _opening(self, part: Part) -> bytes:
        return f"--{self._boundary}\r\n{part.heading}".encode()


def _size(content: str | Path) -> int:
    if isinstance(content, str):
        return len(content.encode())
    with content.open("rb") as file:  # a folder has a size too, but cannot be opened
        return file.seek(0, 2)


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


def _quoted(text: str) -> str:
    """Escape a name in a header, as browsers do."""
    return text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
