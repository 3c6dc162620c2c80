"""Streaming responses without an end: a line for each event, and an empty line as a heartbeat.

A client that reads too slowly is disconnected, so nothing is buffered; it resumes from its last event. Permission and
credentials are checked again with each heartbeat. The number of open streams is limited, in total and per client: its
authenticated role, or its address without authentication.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

from aiohttp import web

from pulsarbox.broker.security.authentication import ANONYMOUS
from pulsarbox.broker.security.principal import Principal
from pulsarbox.config import Settings
from pulsarbox.errors import ServiceNotReady, TooManyRequests
from pulsarbox.server.http.framework.request import HttpResponse, LiveResponse, refusal

log = logging.getLogger(__name__)

ALIVE_SECONDS: Final = 10.0
"""Heartbeat interval in seconds."""
WRITE_SECONDS_MAX: Final = 30.0
"""Seconds for a client to read."""
NDJSON: Final = "application/x-ndjson"
_RETRY: Final = MappingProxyType({"Retry-After": f"{ALIVE_SECONDS:.0f}"})


def holder_of(principal: Principal | None, address: str | None) -> str:
    """Describe the client that a stream counts for."""
    if principal is None or principal.method == ANONYMOUS:
        return f"the address {address}"
    return f"the role {principal.role!r}"


class LiveAnswers:
    """The streams of all HTTP ports."""

    def __init__(self) -> None:
        self._wakes: set[asyncio.Event] = set()
        self._of: Counter[str] = Counter()
        """Open streams by client."""
        self._over = False

    def refusal(self, holder: str, settings: Settings) -> HttpResponse | None:
        """Return why a client may not open another stream now, or None."""
        most, most_of_one = settings.maxHttpStreams, settings.maxHttpStreamsPerRole
        if most_of_one and self._of[holder] >= most_of_one:
            reason = (
                f"{holder} has {self._of[holder]} streams open, and maxHttpStreamsPerRole allows no more: close one"
            )
            return refusal(TooManyRequests.http_status, reason)._replace(headers=_RETRY)
        if most and self._of.total() >= most:
            reason = f"{self._of.total()} streams are open, and maxHttpStreams allows no more: try again later"
            return refusal(ServiceNotReady.http_status, reason)._replace(headers=_RETRY)
        return None

    @contextmanager
    def _held(self, holder: str) -> Iterator[None]:
        self._of[holder] += 1
        try:
            yield
        finally:
            self._of[holder] -= 1
            if not self._of[holder]:
                del self._of[holder]

    def end(self) -> None:
        """End all streams when the port closes."""
        self._over = True
        for wake in self._wakes:
            wake.set()

    async def stream(
        self,
        request: web.BaseRequest,
        given: LiveResponse,
        headers: Mapping[str, str],
        holder: str,
        may_still: Callable[[], Awaitable[bool]],
    ) -> web.StreamResponse:
        """Send lines until the client disconnects, loses its permission, or the port closes, counted for ``holder``."""
        response = web.StreamResponse(headers={**headers, "Content-Type": NDJSON, "Cache-Control": "no-store"})
        if request.method == "HEAD":
            return web.Response(headers=response.headers)
        wake = asyncio.Event()
        self._wakes.add(wake)
        leave = given.listen(wake.set)
        try:
            with self._held(holder):
                await response.prepare(request)
                await self._send(response, given, wake, may_still)
        except (ConnectionError, TimeoutError):
            log.debug("%s disconnected from %s", request.remote, request.path)
            response.force_close()
        finally:
            leave()
            self._wakes.discard(wake)
        return response

    async def _send(
        self,
        response: web.StreamResponse,
        given: LiveResponse,
        wake: asyncio.Event,
        may_still: Callable[[], Awaitable[bool]],
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
                if not await may_still():
                    break
                look_again = loop.time() + ALIVE_SECONDS
            async with asyncio.timeout(WRITE_SECONDS_MAX):
                await response.write(lines)
        async with asyncio.timeout(WRITE_SECONDS_MAX):
            await response.write_eof(given.take())
