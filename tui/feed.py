"""Asking the box: one question, one answer, each in a thread of its own, so that a slow link never stops the keys.

Here bytes become text, so here everything that could speak to the terminal is cleaned away; what it was before is kept
beside, because a topic is asked for by its real name.
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
from pulsarbox.client.web import Reply, TooSlow, Unanswered, Web

VIEWS: Final = "/pulsarbox/v1/top"
EVENTS: Final = "/pulsarbox/v1/events"
SECONDS_MAX: Final = 10.0
"""How long an answer is waited for."""

Exchange = Callable[[str, str, bytes | None], Reply]
"""A method, a target and a body: the answer. Raises Unanswered."""


class Trouble(Exception):
    """There is no answer, or not the one that was asked for. The text says why, in words fit for the terminal."""

    def __init__(self, text: str, status: int = 0) -> None:
        """``status`` is that of HTTP; 0 where nobody has answered."""
        super().__init__(clean(text))
        self.status = status

    @property
    def is_gone(self) -> bool:
        """Nobody has answered."""
        return self.status == 0


class Row(dict[str, Any]):
    """A row as it may be shown; ``real`` has what differs from that."""

    real: dict[str, Any]

    def __init__(self, told: Mapping[str, Any]) -> None:
        super().__init__(cleaned(dict(told)))
        self.real = {key: value for key, value in told.items() if isinstance(value, str) and self.get(key) != value}


def real(row: Mapping[str, Any], key: str) -> str:
    """A name as the box knows it."""
    kept: dict[str, Any] = getattr(row, "real", {})
    return str(kept.get(key, row.get(key) or ""))


class Query(NamedTuple):
    """Which rows of a view."""

    view: str
    sort: str | None = None
    descending: bool = True
    offset: int = 0
    limit: int = 60
    filter: str = ""
    at: int | None = None
    """A time of recorded history (ms since 1970), None for now."""
    columns: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """As a path with its query."""
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


class Snapshot(NamedTuple):
    """An answer: the rows that were asked for, and how many there are."""

    query: Query
    now: int = 0
    total: int = 0
    matching: int = 0
    offset: int = 0
    rows: Sequence[Row] = ()
    totals: Mapping[str, Any] = _NOTHING
    series: Mapping[str, Any] = _NOTHING
    read_only: bool = False
    sampled: int = 0
    virtual_clock: int | None = None
    unknown: Mapping[str, str] = _NOTHING
    """Columns whose values nobody can tell now, and why: of a box that does not run."""
    received: float = 0.0
    """On the monotonic clock of this process."""
    took: float = 0.0


class _Early:
    """An answer that is on its way, or the trouble there was."""

    def __init__(self) -> None:
        self._done = threading.Event()
        self._found: Snapshot | Exception = Trouble("nothing was asked")

    def find(self, ask: Callable[[], Snapshot]) -> None:
        """Wait for it."""
        try:
            self._found = ask()
        except Exception as error:  # carried to whoever wants the answer
            self._found = error
        finally:
            self._done.set()

    def found(self) -> Snapshot:
        """The answer, waited for. Raises Trouble."""
        self._done.wait()
        if isinstance(self._found, Exception):
            raise self._found
        return self._found


class Feed:
    """Where answers come from."""

    def __init__(self, exchange: Exchange, label: str = "", scope: Mapping[str, str] | None = None) -> None:
        """``label`` names the box; ``scope`` has the ``tenant`` or the ``namespace`` that alone is looked at."""
        self._exchange = exchange
        self.label = clean(label)
        self.scope = dict(scope or {})
        self._foreseen: dict[Query, _Early] = {}

    @property
    def scope_words(self) -> list[str]:
        """The same, as options of a command."""
        return [word for name, value in self.scope.items() for word in (f"--{name}", value)]

    def close(self) -> None:
        """Nothing is asked any more."""
        if isinstance(self._exchange, WebExchange):
            self._exchange.close()

    def foresee(self, queries: Sequence[Query]) -> None:
        """Ask all this now: whoever asks it for the first time is given that answer."""
        early = {query: _Early() for query in queries}
        self._foreseen.update(early)

        def work() -> None:
            for query, answer in early.items():
                answer.find(partial(self._view, query))

        threading.Thread(target=work, name="foreseen", daemon=True).start()

    def view(self, query: Query) -> Snapshot:
        """Rows of a view. Raises Trouble."""
        early = self._foreseen.pop(query, None)
        return self._view(query) if early is None else early.found()

    def _view(self, query: Query) -> Snapshot:
        before = time.monotonic()
        told = self.ask("GET", query.target)
        if not isinstance(told, dict):
            raise Trouble("the answer is no view: is this the Admin API of a box?", 502)
        now = time.monotonic()
        return Snapshot(
            query=query,
            now=told.get("now") or 0,
            total=told.get("total") or 0,
            matching=told.get("matching") or 0,
            offset=told.get("offset") or 0,
            rows=[Row(row) for row in told.get("rows") or ()],
            totals=cleaned(told.get("totals") or {}),
            series=told.get("series") or (told.get("totals") or {}).get("series") or {},
            read_only=bool(told.get("readOnly")),
            sampled=told.get("sampled") or 0,
            virtual_clock=told.get("virtualClock"),
            unknown=cleaned(told.get("unknown") or {}),
            received=now,
            took=now - before,
        )

    def ask(self, method: str, target: str, body: object = None) -> Any:
        """The JSON of an answer, as it came. Raises Trouble."""
        if self.scope and method == "GET" and target.startswith((VIEWS, EVENTS)):
            target += f"{'&' if '?' in target else '?'}{urlencode(self.scope)}"
        try:
            reply = self._exchange(method, target, None if body is None else json.dumps(body).encode())
        except Unanswered as error:
            raise Trouble(str(error)) from error
        if reply.status >= 400:
            raise Trouble(reply.reason, reply.status)
        try:
            return json.loads(reply.body) if reply.body else None
        except ValueError:
            return reply.text


class WebExchange:
    """Over HTTP or HTTPS. Each question that is under way has a connection; those that are done are kept."""

    def __init__(self, hosts: Sequence[tuple[str, int]], *, secure: bool, credentials: Credentials) -> None:
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
            raise TooSlow(f"there was no answer within {SECONDS_MAX:g} s") from None
        finally:
            self._idle.append(web)

    def close(self) -> None:
        """Let the connections go that nobody waits for."""
        while self._idle:
            self._idle.pop().close()


def web_exchange(
    hosts: Sequence[tuple[str, int]], *, secure: bool = False, credentials: Credentials = NOBODY
) -> WebExchange:
    """What asks a box at one of these."""
    return WebExchange(hosts, secure=secure, credentials=credentials)


_T = TypeVar("_T")


async def aside(call: Callable[[], _T]) -> _T:
    """What a call that waits gives, from a thread that nobody waits for when the program ends."""
    import asyncio  # not before there is a loop: the first questions are asked long before

    loop = asyncio.get_running_loop()
    future: asyncio.Future[_T] = loop.create_future()

    def tell(settle: Callable[[Any], None], value: Any) -> None:
        def settled() -> None:
            if not future.done():
                settle(value)

        try:
            loop.call_soon_threadsafe(settled)
        except RuntimeError:  # the program has ended meanwhile
            pass

    def work() -> None:
        try:
            value = call()
        except Exception as error:  # carried to whoever awaits it
            tell(future.set_exception, error)
        else:
            tell(future.set_result, value)

    threading.Thread(target=work, name="asking", daemon=True).start()
    return await future
