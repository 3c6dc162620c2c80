"""``pulsarbox top --serve``: the dashboard in a browser on this machine.

textual-serve provides the page and starts a process for each open one. This module restricts access: the address
contains a key, and requests from pages of other sites, which browsers allow to local ports, are rejected. The page
loads nothing from other hosts.
"""

import asyncio
import contextlib
import ipaddress
import logging
import re
import secrets
import shlex
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler
from textual_serve.app_service import AppService
from textual_serve.server import Server, to_int

from pulsarbox.tui.web_page import with_touch

_ENDING_SECONDS: Final = 5.0
"""How long a dashboard may take to end before it is killed."""
_ELSEWHERE: Final = re.compile(r"<link[^>]*https?://(?!127\.0\.0\.1|localhost)[^>]*>")
_POLICY: Final = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self' ws://{host}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def is_loopback(host: str) -> bool:
    """Return whether a host is a loopback address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


class _Session(AppService):
    """The dashboard process of one page. It and the page's connection end together."""

    _process: Process | None

    async def run(self) -> None:
        """Run until the process ends; see AppService."""
        try:
            await super().run()
        finally:
            await self.remote_close()

    async def stop(self) -> None:
        """Stop the process and wait for its end; kill it after a timeout."""
        process = self._process
        try:
            await asyncio.wait_for(super().stop(), _ENDING_SECONDS)
        except TimeoutError:
            if process is not None:
                process.kill()
        if process is not None:
            await process.wait()


class DashboardServer(Server):
    """Web server of the dashboard."""

    def __init__(self, words: Sequence[str], host: str, port: int) -> None:
        """``words`` are the arguments of ``pulsarbox`` that each page runs."""
        command = "exec " + shlex.join([sys.executable, "-m", "pulsarbox", *words])
        super().__init__(command, host=host, port=port, title="pulsarbox top")
        self._key = secrets.token_urlsafe(16)
        self._cookie = f"pulsarbox-{port}"
        self._sessions: set[_Session] = set()

    @property
    def address(self) -> str:
        """URL to open in a browser. It grants all permissions of this user."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/?key={self._key}"

    def run(self, begun: Callable[[], None]) -> None:
        """Serve until Ctrl-C. ``begun`` is called once pages can be opened. Raises OSError if the port is in use."""
        logging.getLogger("textual-serve").setLevel(logging.CRITICAL)
        with contextlib.redirect_stdout(sys.stderr):  # output of failed dashboards
            web.run_app(
                self._make_app(), host=self.host, port=self.port, access_log=None, print=lambda *args, **more: begun()
            )

    async def on_startup(self, app: web.Application) -> None:
        """Print nothing; ``begun`` reports the start once it is complete."""

    async def on_shutdown(self, app: web.Application) -> None:
        """Stop all dashboards, for which the shutdown would wait otherwise."""
        await asyncio.gather(*(session.stop() for session in self._sessions))

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._guarded)
        return app

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Reject requests without the key, for another host name, or from pages of another origin."""
        name = urlsplit(f"//{request.host}").hostname or ""
        origin = request.headers.get("Origin")
        shown = request.query.get("key") or request.cookies.get(self._cookie) or ""
        if not is_loopback(name):
            raise web.HTTPForbidden(text=f"this page is served only to this machine, as 127.0.0.1, not as {name}\n")
        if origin is not None and urlsplit(origin).netloc != request.host:
            raise web.HTTPForbidden(text=f"requests from pages of {origin} are rejected\n")
        if not secrets.compare_digest(shown.encode(), self._key.encode()):
            raise web.HTTPForbidden(text="open the address that `pulsarbox top --serve` printed: it contains a key\n")
        return await handler(request)

    async def handle_index(self, request: web.Request) -> web.Response:
        """Return the page with the requested host and port (``ssh -L`` may use another port), without remote fonts."""
        answer: web.Response = await super().handle_index(request)  # type: ignore[assignment]
        here = f"//{request.host}"
        text = re.sub(rf"//{re.escape(self.public_url.partition('//')[2])}\b", here, answer.text or "")
        answer.text = with_touch(_ELSEWHERE.sub("", text))
        answer.headers["Content-Security-Policy"] = _POLICY.format(host=request.host)
        answer.headers["Referrer-Policy"] = "no-referrer"
        answer.set_cookie(self._cookie, self._key, httponly=True, samesite="Strict")
        return answer

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Run a dashboard for a page, with its size in columns and lines."""
        socket = web.WebSocketResponse(heartbeat=15)
        await socket.prepare(request)

        async def close() -> None:
            await socket.close()

        session = _Session(
            self.command,
            write_bytes=socket.send_bytes,
            write_str=socket.send_str,
            close=close,
            download_manager=self.download_manager,
        )
        self._sessions.add(session)
        try:
            width, height = (to_int(request.query.get(name, ""), usual) for name, usual in _SIZE)
            await session.start(width, height)
            await self._process_messages(socket, session)
        finally:
            self._sessions.discard(session)
            await session.stop()
        return socket


_SIZE: Final = (("width", 80), ("height", 24))
