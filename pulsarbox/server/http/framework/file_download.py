"""Answers that are read from the disk step by step, each step once the client has taken the previous one."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from aiohttp import web

from pulsarbox.clock import Now
from pulsarbox.errors import PulsarBoxError
from pulsarbox.server.http.framework.request import Download, HttpResponse, refusal_of
from pulsarbox.server.shell_protocol import Shell

log = logging.getLogger(__name__)

DOWNLOAD_SECONDS_MAX: Final = 600.0
"""Seconds for a client to read the whole answer."""
STEP_SECONDS_MAX: Final = 60.0
"""Seconds for a client to read one step, and for the disk to return it."""


async def send_download(
    request: web.BaseRequest, given: Download, shell: Shell, headers: Mapping[str, str]
) -> web.StreamResponse | HttpResponse:
    """Send a file. Return the error if its first bytes cannot be read; later errors abort the connection."""
    about = {**headers, "Content-Type": "application/octet-stream", "Content-Length": str(given.size)}
    if request.method == "HEAD":
        return web.Response(headers=about)
    response = web.StreamResponse(headers=about)
    try:
        async with asyncio.timeout(DOWNLOAD_SECONDS_MAX):
            data = await _next(given, shell)
            await response.prepare(request)
            while data:
                async with asyncio.timeout(STEP_SECONDS_MAX):
                    await response.write(data)
                data = await _next(given, shell)
            await response.write_eof()
    except PulsarBoxError as error:
        if not response.prepared:
            return refusal_of(error)
        _abort(request, str(error))
    except ConnectionError:
        log.debug("%s disconnected before the end of %s", request.remote, request.path)
    except TimeoutError:
        _abort(request, "the client did not read it in time")
    return response


def _abort(request: web.BaseRequest, reason: str) -> None:
    """Close the connection, so that the client notices the missing rest."""
    log.warning("the download of %s was aborted: %s", request.path, reason)
    if request.transport is not None:
        request.transport.close()


async def _next(given: Download, shell: Shell) -> bytes:
    """Return the next bytes. Raises PulsarBoxError, TimeoutError."""
    future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def told(data: bytes, error: Exception | None, now: Now) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(data)
        else:
            future.set_exception(error)

    given.read(told, shell.now())
    shell.kick()
    async with asyncio.timeout(STEP_SECONDS_MAX):
        return await future
