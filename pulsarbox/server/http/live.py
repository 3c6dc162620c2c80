"""Answers that go on: lines as things happen, an empty one as a sign of life where nothing does.

What a client does not read in time it does not get: it is let go, nothing gathers for it here. It asks again from where
it was. Whether it may still have the answer is asked at each sign of life, and credentials are looked at again.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final

from aiohttp import web

from pulsarbox.server.http.call import Live

log = logging.getLogger(__name__)

ALIVE_SECONDS: Final = 10.0
"""How long nothing is sent at most."""
WRITE_SECONDS_MAX: Final = 30.0
"""How long a client may take to read."""
NDJSON: Final = "application/x-ndjson"


class LiveAnswers:
    """Those of one port."""

    def __init__(self) -> None:
        self._wakes: set[asyncio.Event] = set()
        self._over = False

    def end(self) -> None:
        """The port closes: all of them end."""
        self._over = True
        for wake in self._wakes:
            wake.set()

    async def give(
        self, request: web.BaseRequest, given: Live, headers: Mapping[str, str], may_still: Callable[[], bool]
    ) -> web.StreamResponse:
        """Send lines until the client goes, may not have them any more, or the port closes."""
        response = web.StreamResponse(headers={**headers, "Content-Type": NDJSON, "Cache-Control": "no-store"})
        if request.method == "HEAD":
            return web.Response(headers=response.headers)
        wake = asyncio.Event()
        self._wakes.add(wake)
        leave = given.listen(wake.set)
        try:
            await response.prepare(request)
            await self._send(response, given, wake, may_still)
        except (ConnectionError, TimeoutError):
            log.debug("%s has left %s", request.remote, request.path)
            response.force_close()
        finally:
            leave()
            self._wakes.discard(wake)
        return response

    async def _send(
        self, response: web.StreamResponse, given: Live, wake: asyncio.Event, may_still: Callable[[], bool]
    ) -> None:
        loop = asyncio.get_running_loop()
        look_again = loop.time() + ALIVE_SECONDS
        while not self._over:
            wake.clear()
            lines = given.take()
            if not lines:
                try:
                    async with asyncio.timeout_at(look_again):
                        await wake.wait()
                    continue
                except TimeoutError:
                    lines = b"\n"
            if loop.time() >= look_again:
                if not may_still():
                    break
                look_again = loop.time() + ALIVE_SECONDS
            async with asyncio.timeout(WRITE_SECONDS_MAX):
                await response.write(lines)
        async with asyncio.timeout(WRITE_SECONDS_MAX):
            await response.write_eof(given.take())
