"""Raw bytes to and from the HTTP port, for requests that regular clients cannot send."""

import asyncio
from typing import NamedTuple

from tests.unit.server.http.harness import HttpBox


class Said(NamedTuple):
    """A response; status 0 if the box sent none."""

    status: int
    head: str
    body: str
    closed: bool
    """Whether the box has closed the connection."""


async def connected(box: HttpBox) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a connection to the HTTP port."""
    return await asyncio.open_connection("127.0.0.1", box.port, limit=1 << 24)


async def read_answer(reader: asyncio.StreamReader) -> Said:
    """Read one response."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except (asyncio.IncompleteReadError, ConnectionError):
        return Said(0, "", "", True)
    lengths = [line.split(":")[1] for line in head.split("\r\n") if line.lower().startswith("content-length:")]
    body = await reader.readexactly(int(lengths[0])) if lengths else b""
    return Said(int(head.split()[1]), head, body.decode(), "connection: close" in head.lower() or "HTTP/1.0" in head)


async def said(box: HttpBox, text: str | bytes) -> Said:
    """Send bytes over a separate connection and return the response."""
    reader, writer = await connected(box)
    writer.write(text.encode("latin-1") if isinstance(text, str) else text)
    try:
        return await read_answer(reader)
    finally:
        writer.close()
