"""Long answers, produced piece by piece: other clients are served in between, and slow clients delay nobody."""

import asyncio
import logging
import zlib
from collections.abc import Iterator, Mapping
from typing import Final

from aiohttp import web

from pulsarbox.server.http.framework.request import Pieces

log = logging.getLogger(__name__)

TURN_BYTES: Final = 1 << 17
"""Bytes of pieces per turn of the loop."""
STREAM_SECONDS_MAX: Final = 60.0
"""Seconds for a client to read the whole answer."""
_GZIP: Final = 31
"""The window size argument of zlib for the gzip format."""


async def stream(request: web.BaseRequest, given: Pieces, headers: Mapping[str, str]) -> web.StreamResponse:
    """Send the pieces, compressed if the client accepts it."""
    gzip = "gzip" in request.headers.get("Accept-Encoding", "").lower()
    packed = {"Content-Encoding": "gzip"} if gzip else {}
    about = {**headers, **packed, "Content-Type": given.content_type, "Vary": "Accept-Encoding"}
    if request.method == "HEAD":
        return web.Response(headers=about)
    response = web.StreamResponse(headers=about)
    pack = zlib.compressobj(1, zlib.DEFLATED, _GZIP) if gzip else None
    try:
        async with asyncio.timeout(STREAM_SECONDS_MAX):
            await response.prepare(request)
            await _send(response, given.pieces, pack)
    except ConnectionError:
        log.debug("%s did not wait for all of %s", request.remote, request.path)
    except TimeoutError:
        log.warning("%s took more than %g s for %s", request.remote, STREAM_SECONDS_MAX, request.path)
        response.force_close()
    return response


async def _send(response: web.StreamResponse, pieces: Iterator[bytes], pack: "zlib._Compress | None") -> None:
    loop = asyncio.get_running_loop()
    gathered: list[bytes] = []
    size = 0
    for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        if size >= TURN_BYTES:
            whole, gathered, size = b"".join(gathered), [], 0
            if pack is not None:  # in a thread: it releases the GIL
                whole = await loop.run_in_executor(None, pack.compress, whole)
            await response.write(whole)
        elif piece:
            continue
        await asyncio.sleep(0)
    whole = b"".join(gathered)
    await response.write_eof(whole if pack is None else pack.compress(whole) + pack.flush())
