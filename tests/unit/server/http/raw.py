"""Bytes to the HTTP port as they are, and what comes back: for requests that no client would send."""

import asyncio
from typing import NamedTuple

from tests.unit.server.http.harness import Box


class Said(NamedTuple):
    """What came back; status 0 where nothing did."""

    status: int
    head: str
    body: str
    closed: bool
    """The box has closed the connection."""


async def connected(box: Box) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the HTTP port."""
    return await asyncio.open_connection("127.0.0.1", box.port, limit=1 << 24)


async def read_answer(reader: asyncio.StreamReader) -> Said:
    """One answer."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except (asyncio.IncompleteReadError, ConnectionError):
        return Said(0, "", "", True)
    lengths = [line.split(":")[1] for line in head.split("\r\n") if line.lower().startswith("content-length:")]
    body = await reader.readexactly(int(lengths[0])) if lengths else b""
    return Said(int(head.split()[1]), head, body.decode(), "connection: close" in head.lower() or "HTTP/1.0" in head)


async def said(box: Box, text: str | bytes) -> Said:
    """The answer to what is sent over a connection of its own."""
    reader, writer = await connected(box)
    writer.write(text.encode("latin-1") if isinstance(text, str) else text)
    try:
        return await read_answer(reader)
    finally:
        writer.close()
