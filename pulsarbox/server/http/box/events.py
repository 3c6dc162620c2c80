"""The events of a box: past ones, in memory and on disk, and new ones as a stream. Below ``/pulsarbox/v1``."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

from pulsarbox.broker.events import FIELDS, RING, Event, Events
from pulsarbox.server.http.framework.filter_parameters import Row, Wanted, moment_of, number_of, wanted_of
from pulsarbox.server.http.framework.request import (
    DeferredAnswer,
    HttpRequest,
    HttpResponse,
    LiveResponse,
    answer,
    compact,
)
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.live.asking import scope_of
from pulsarbox.storage.recording.event_files import FOLDER, newest_first, oldest_first

LIMIT: Final = 100
LIMIT_MAX: Final = 5000
TAKEN: Final = 500
"""Maximum number of events per write of a stream."""
_NUMBER_MAX: Final = 2**63 - 1
SEARCHED: Final = ("kind", "subject", "text")


def events(call: HttpRequest) -> DeferredAnswer | LiveResponse:
    """Return events, oldest first: ``{"events", "next", "first"}``; ``next`` is the value of ``after`` to continue.

    Parameters: ``after`` a number, from there on; otherwise the newest events, optionally ``before`` a number.
    ``since`` (a time: ms since 1970, -1h), ``limit``, ``filter``, ``tenant`` or ``namespace`` (only events about their
    topics). With ``follow=true`` a stream of new events, one per line.
    """
    wanted = _wanted(call)
    events = call.broker.events
    if call.flag("follow"):
        return follow(events, wanted, number_of(call, "after", events.last, 0, _NUMBER_MAX))
    limit = number_of(call, "limit", LIMIT, 1, LIMIT_MAX)
    if call.query.get("after"):
        return _following(call, wanted, limit, number_of(call, "after", 0, 0, _NUMBER_MAX))
    return _newest(call, wanted, limit, number_of(call, "before", _NUMBER_MAX, 0, _NUMBER_MAX))


def _wanted(call: HttpRequest) -> Wanted:
    wanted, since = wanted_of(call, FIELDS, SEARCHED), moment_of(call, "since")
    prefix = scope_of(call.query).prefix
    if not since and not prefix:
        return wanted
    return lambda row: row["time"] >= since and (not prefix or _is_within(row, prefix)) and wanted(row)


def _is_within(row: Row, prefix: str) -> bool:
    """Return whether an event is about a topic of a tenant or namespace."""
    return str(row["subject"]).partition("://")[2].startswith(prefix)


def follow(events: Events, wanted: Wanted, after: int) -> LiveResponse:
    """Stream the events after a number. A slow client misses evicted events, visible as a gap in the numbers."""
    at = after

    def take() -> bytes:
        nonlocal at
        while found := events.after(at, TAKEN):
            at = found[-1].sequence
            rows = [row for each in found if wanted(row := each.as_json())]
            if rows:
                return b"".join(compact(row).encode(errors="replace") + b"\n" for row in rows)
        return b""

    def listen(wake: Callable[[], None]) -> Callable[[], None]:
        def heard(event: Event) -> None:
            wake()

        events.listeners[heard] = None
        return partial(_leave, events, heard)

    return LiveResponse(take, listen)


def _leave(events: Events, heard: Callable[[Event], None]) -> None:
    events.listeners.pop(heard, None)


def _newest(call: HttpRequest, wanted: Wanted, limit: int, before: int) -> DeferredAnswer:
    events = call.broker.events
    there = (each.as_json() for each in reversed(events.after(0, RING)) if each.sequence < before)
    found = list(islice(filter(wanted, there), limit))
    begin = min(before, events.first)

    def done(older: list[Row]) -> HttpResponse:
        return _answer(events, (found + older)[::-1], min(events.last, before - 1))

    return _with_files(call, lambda folder: newest_first(folder, begin), wanted, limit - len(found), done)


def _following(call: HttpRequest, wanted: Wanted, limit: int, after: int) -> DeferredAnswer:
    events = call.broker.events
    first = events.first

    def done(older: list[Row]) -> HttpResponse:
        if len(older) == limit:
            return _answer(events, older, older[-1]["sequence"])
        there = events.after(max(after, first - 1), RING)
        found = older + list(islice(filter(wanted, (each.as_json() for each in there)), limit - len(older)))
        return _answer(events, found, found[-1]["sequence"] if len(found) == limit else max(events.last, after))

    missing = limit if after + 1 < first else 0
    return _with_files(call, lambda folder: oldest_first(folder, after, first), wanted, missing, done)


def _with_files(
    call: HttpRequest,
    rows: Callable[[Any], Iterator[Row]],
    wanted: Wanted,
    limit: int,
    done: Callable[[list[Row]], HttpResponse],
) -> DeferredAnswer:
    """Answer with the matching events of the files, read in a thread; at once if none are needed."""
    later, data = DeferredAnswer(), call.broker.host.folder
    if data is None or not limit:
        later.complete(done([]))
        return later

    def told(found: list[Row], error: Exception | None) -> None:
        if error is not None:
            later.failed(error)
        else:
            later.complete(done(found))

    folder = Path(data) / FOLDER
    call.broker.host.run_in_thread("old events", lambda: list(islice(filter(wanted, rows(folder)), limit)), told)
    return later


def _answer(events: Events, rows: list[Row], next_: int) -> HttpResponse:
    return answer({"events": rows, "next": next_, "first": events.first})


ROUTES = (HttpRoute("GET", "/pulsarbox/v1/events", Permission.WATCHER, events),)
