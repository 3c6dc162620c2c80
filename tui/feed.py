"""Requests to the box, each in its own thread, so that a slow connection never blocks the keyboard.

Responses are decoded here, so terminal control characters are removed here. Rows keep the original names, because
requests need the real name of a topic.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urlencode

from pulsarbox.cleaning import clean, cleaned
from pulsarbox.client.credentials import NOBODY, Credentials
from pulsarbox.client.transport.web import Reply, TooSlow, Unanswered, Web

VIEWS: Final = "/pulsarbox/v1/top"
EVENTS: Final = "/pulsarbox/v1/events"
SECONDS_MAX: Final = 10.0
"""Timeout of a request."""

Exchange = Callable[[str, str, bytes | None], Reply]
"""Send a request with method, target and body, and return the reply. Raises Unanswered."""

_INVALID: Final = 400


class FeedError(Exception):
    """No response, or an error response. The text has the reason, without control characters."""

    def __init__(self, text: str, status: int = 0) -> None:
        """``status`` is the HTTP status, 0 without a response."""
        super().__init__(clean(text))
        self.status = status

    @property
    def is_gone(self) -> bool:
        """Whether there was no response."""
        return self.status == 0

    @property
    def is_invalid(self) -> bool:
        """Whether the query was invalid."""
        return self.status == _INVALID


class ShownRow(dict[str, Any]):
    """A row without control characters; ``real`` has the original values that differ."""

    real: dict[str, Any]

    def __init__(self, told: Mapping[str, Any]) -> None:
        super().__init__(cleaned(dict(told)))
        self.real = {key: value for key, value in told.items() if isinstance(value, str) and self.get(key) != value}


def real(row: Mapping[str, Any], key: str) -> str:
    """Return the original value of a row's name."""
    kept: dict[str, Any] = getattr(row, "real", {})
    return str(kept.get(key, row.get(key) or ""))


class RowQuery(NamedTuple):
    """Selection of rows of a view."""

    view: str
    sort: str | None = None
    descending: bool = True
    offset: int = 0
    limit: int = 60
    filter: str = ""
    at: int | None = None
    """Time in recorded history (ms since 1970), None for live data."""
    columns: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """Request path with query."""
        asked: dict[str, str] = {"offset": str(self.offset), "limit": str(self.limit)}
        if self.sort:
            asked |= {"sort": self.sort, "order": "desc" if self.descending else "asc"}
        if self.filter:
            asked["filter"] = self.filter
        if self.columns:
            asked["columns"] = ",".join(self.columns)
        if self.at is not None:
            asked["at"] = str(self.at)
        return f"{VIEWS}/{self.view}?{urlencode(asked)}"


_NOTHING: Final[Mapping[str, Any]] = {}


class ViewSnapshot(NamedTuple):
    """A response: the requested rows and the totals."""

    query: RowQuery
    now: int = 0
    total: int = 0
    matching: int = 0
    offset: int = 0
    rows: Sequence[ShownRow] = ()
    totals: Mapping[str, Any] = _NOTHING
    series: Mapping[str, Any] = _NOTHING
    step: float = 1.0
    """Seconds between two values of a series."""
    series_end: int = 0
    """Time of the last values of a stopped box (ms since 1970); 0 if the series end at ``now``."""
    read_only: bool = False
    sampled: int = 0
    virtual_clock: int | None = None
    unknown: Mapping[str, str] = _NOTHING
    """Columns without known values, with the reason, as for a stopped box."""
    received: float = 0.0
    """Time of receipt by the monotonic clock; 0 if not received from the box."""
    took: float = 0.0


class _Early:
    """A pending response, its result or its error."""

    def __init__(self) -> None:
        self._done = threading.Event()
        self._found: ViewSnapshot | Exception = FeedError("no request was sent")

    def find(self, ask: Callable[[], ViewSnapshot]) -> None:
        """Send the request and store its result."""
        try:
            self._found = ask()
        except Exception as error:  # raised again in found()
            self._found = error
        finally:
            self._done.set()

    def found(self) -> ViewSnapshot:
        """Wait for the result. Raises Trouble."""
        self._done.wait()
        if isinstance(self._found, Exception):
            raise self._found
        return self._found


class Feed:
    """Source of all data of the dashboard."""

    def __init__(self, exchange: Exchange, label: str = "", scope: Mapping[str, str] | None = None) -> None:
        """``label`` names the box; ``scope`` restricts queries to a ``tenant`` or ``namespace``."""
        self._exchange = exchange
        self.label = clean(label)
        self.scope = dict(scope or {})
        self._foreseen: dict[RowQuery, _Early] = {}

    @property
    def scope_words(self) -> list[str]:
        """The scope as command line options."""
        return [word for name, value in self.scope.items() for word in (f"--{name}", value)]

    @property
    def credentials_method(self) -> str:
        """Name of the authentication method of requests, empty without credentials."""
        return self._exchange.method if isinstance(self._exchange, WebExchange) else ""

    def close(self) -> None:
        """Close the connections."""
        if isinstance(self._exchange, WebExchange):
            self._exchange.close()

    def prefetch(self, queries: Sequence[RowQuery]) -> None:
        """Send queries ahead of time. The first ``view`` of each gets that response."""
        early = {query: _Early() for query in queries}
        self._foreseen.update(early)

        def work() -> None:
            for query, answer in early.items():
                answer.find(partial(self._view, query))

        threading.Thread(target=work, name="foreseen", daemon=True).start()

    def view(self, query: RowQuery) -> ViewSnapshot:
        """Query rows of a view. Raises Trouble."""
        early = self._foreseen.pop(query, None)
        return self._view(query) if early is None else early.found()

    def _view(self, query: RowQuery) -> ViewSnapshot:
        before = time.monotonic()
        told = self.ask("GET", query.target)
        if not isinstance(told, dict):
            raise FeedError("the response is not a view: is this the Admin API of a box?", 502)
        now = time.monotonic()
        return ViewSnapshot(
            query=query,
            now=told.get("now") or 0,
            total=told.get("total") or 0,
            matching=told.get("matching") or 0,
            offset=told.get("offset") or 0,
            rows=[ShownRow(row) for row in told.get("rows") or ()],
            totals=cleaned(told.get("totals") or {}),
            series=told.get("series") or (told.get("totals") or {}).get("series") or {},
            step=told.get("seriesStep") or 1.0,
            series_end=told.get("seriesEnd") or 0,
            read_only=bool(told.get("readOnly")),
            sampled=told.get("sampled") or 0,
            virtual_clock=told.get("virtualClock"),
            unknown=cleaned(told.get("unknown") or {}),
            received=now,
            took=now - before,
        )

    def ask(self, method: str, target: str, body: object = None) -> Any:
        """Send a request and return the raw JSON of the response. Raises Trouble."""
        if self.scope and method == "GET" and target.startswith((VIEWS, EVENTS)):
            target += f"{'&' if '?' in target else '?'}{urlencode(self.scope)}"
        try:
            reply = self._exchange(method, target, None if body is None else json.dumps(body).encode())
        except Unanswered as error:
            raise FeedError(str(error)) from error
        if reply.status >= 400:
            raise FeedError(reply.reason, reply.status)
        try:
            return json.loads(reply.body) if reply.body else None
        except ValueError:
            return reply.text


class WebExchange:
    """Exchange over HTTP or HTTPS, with a pool of one connection per concurrent request."""

    def __init__(self, hosts: Sequence[tuple[str, int]], *, secure: bool, credentials: Credentials) -> None:
        self.method = credentials.method
        self._made = partial(Web, hosts, secure=secure, credentials=credentials, seconds=SECONDS_MAX)
        self._idle: list[Web] = []

    def __call__(self, method: str, target: str, body: bytes | None) -> Reply:
        """See Exchange."""
        try:
            web = self._idle.pop()
        except IndexError:
            web = self._made()
        try:
            return web.exchange(method, target, body)
        except TooSlow:
            raise TooSlow(f"no response within {SECONDS_MAX:g} s") from None
        finally:
            self._idle.append(web)

    def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.pop().close()


def web_exchange(
    hosts: Sequence[tuple[str, int]], *, secure: bool = False, credentials: Credentials = NOBODY
) -> WebExchange:
    """Return an exchange with a box at one of these addresses."""
    return WebExchange(hosts, secure=secure, credentials=credentials)


_T = TypeVar("_T")


async def aside(call: Callable[[], _T]) -> _T:
    """Run a blocking call in a daemon thread, which does not delay the end of the program, and await its result."""
    import asyncio  # late: the first queries are sent before there is a loop

    loop = asyncio.get_running_loop()
    future: asyncio.Future[_T] = loop.create_future()

    def tell(settle: Callable[[Any], None], value: Any) -> None:
        def settled() -> None:
            if not future.done():
                settle(value)

        try:
            loop.call_soon_threadsafe(settled)
        except RuntimeError:  # the program is exiting
            pass

    def work() -> None:
        try:
            value = call()
        except Exception as error:  # raised again in the awaiting task
            tell(future.set_exception, error)
        else:
            tell(future.set_result, value)

    threading.Thread(target=work, name="asking", daemon=True).start()
    return await future
