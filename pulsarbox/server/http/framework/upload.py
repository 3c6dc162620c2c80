"""Bodies that are received piece by piece: a form with a file, larger than what the server holds in memory.

The next bytes are read from the socket only once the previous ones are stored. The handler of such a route is called
before the body; whatever ends the request, the upload is completed or cancelled.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from pulsarbox.clock import Now
from pulsarbox.errors import BadRequest, PulsarBoxError
from pulsarbox.server.http.framework.multipart import FormPart, MultipartDecoder
from pulsarbox.server.http.framework.request import DeferredAnswer, HttpResponse, refusal, refusal_of
from pulsarbox.server.shell_protocol import Shell

UPLOAD_SECONDS_MAX: Final = 600.0
"""Seconds for a client to send the whole body."""
_FORM: Final = "multipart/form-data"
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class Upload(Protocol):
    """Receives the parts of a form. Its methods raise PulsarBoxError to reject the upload."""

    @property
    def body_max(self) -> int:
        """Maximum bytes of the body."""

    @property
    def too_large(self) -> PulsarBoxError:
        """The error for a larger body."""

    def receive(self, part: FormPart, data: bytes, now: Now) -> DeferredAnswer | None:
        """Receive the next bytes of a part. An answer, if any, is given when the client may send more, or is an error.

        A part begins with a call without bytes.
        """

    def complete(self, now: Now) -> DeferredAnswer:
        """Complete the upload after the end of the form, and return the answer."""

    def cancel(self, now: Now) -> None:
        """Drop what was received, unless the upload is complete."""


There = Callable[[DeferredAnswer], Awaitable[HttpResponse]]
"""Waits for an answer, for a limited time."""


async def receive_upload(
    request: web.BaseRequest, upload: Upload, shell: Shell, there: There, idle_seconds: float
) -> HttpResponse:
    """Pass a body to ``upload`` and return the answer. ``idle_seconds``: time for the client to send more."""
    try:
        async with asyncio.timeout(UPLOAD_SECONDS_MAX):
            return await _receive(request, upload, shell, there, idle_seconds)
    except PulsarBoxError as error:
        return refusal_of(error)
    except TimeoutError:
        return refusal(
            408,
            f"No bytes of the body were received for {idle_seconds:g} s (httpServerIdleTimeout), or it took more than"
            f" {UPLOAD_SECONDS_MAX:g} s",
        )
    except (web.RequestPayloadError, HttpProcessingError, ConnectionError) as error:
        return refusal(400, f"The body cannot be read: {error}")
    finally:
        upload.cancel(shell.now())
        shell.kick()


async def _receive(
    request: web.BaseRequest, upload: Upload, shell: Shell, there: There, idle_seconds: float
) -> HttpResponse:
    if request.content_type != _FORM:
        return refusal(415, f"Content-Type {request.content_type[:60]} is not supported here: send {_FORM}")
    if (packed := request.headers.get("Content-Encoding", "identity")) != "identity":
        return refusal(415, f"Content-Encoding {packed[:40]} is not supported: send the body uncompressed")
    decoder = MultipartDecoder(request.headers.get("Content-Type", ""))
    if (request.content_length or 0) > upload.body_max:
        raise upload.too_large
    await _invite(request)
    received = 0
    while data := await _next(request, idle_seconds):
        received += len(data)
        if received > upload.body_max:
            raise upload.too_large
        for part, piece in decoder.feed(data):
            waiting = upload.receive(part, piece, shell.now())
            if waiting is not None and (given := await there(waiting)).status >= 400:
                return given
    if not decoder.over:
        raise BadRequest("The body ends before the last boundary of the form")
    return await there(upload.complete(shell.now()))


async def _invite(request: web.BaseRequest) -> None:
    """Ask a client that waits for it to send the body."""
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(_CONTINUE)
        request.writer.output_size = 0  # no part of the response


async def _next(request: web.BaseRequest, seconds: float) -> bytes:
    async with asyncio.timeout(seconds):
        return await request.content.readany()
