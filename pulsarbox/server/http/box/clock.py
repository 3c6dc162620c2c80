"""The clock of the box, which can be advanced if it is virtual. Below ``/pulsarbox/v1``."""

from datetime import UTC, datetime
from typing import Any, Final

from pulsarbox.clock import Now
from pulsarbox.errors import BadRequest
from pulsarbox.server.http.framework.request import DeferredAnswer, HttpRequest, HttpResponse, answer
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.times import duration

PATIENCE_SECONDS: Final = 30.0
"""Maximum seconds that the answer to an advance waits for due work: with a million topics, it continues afterwards."""


def clock(call: HttpRequest) -> HttpResponse:
    """Return the time: ``{"mode", "now", "real", "offset"}``, in milliseconds."""
    return _clock(call, call.now.wall)


def advance(call: HttpRequest) -> DeferredAnswer:
    """Advance the virtual clock. The body: ``{"by": "10d"}``, or a number of milliseconds.

    Answered once the work that becomes due is done and durable.
    """
    by = _only(call, "by")
    if isinstance(by, str):
        try:
            by = duration(by)
        except ValueError as error:
            raise BadRequest(str(error)) from None
    return _moved(call, _whole(by, "by"))


def set_to(call: HttpRequest) -> DeferredAnswer:
    """Advance the virtual clock to a time. The body: ``{"to": "2026-12-24T18:00:00Z"}``, or ms since 1970."""
    to = _only(call, "to")
    if isinstance(to, str):
        to = _instant(to)
    return _moved(call, _whole(to, "to") - call.now.wall)


def _moved(call: HttpRequest, by: int) -> DeferredAnswer:
    broker, later = call.broker, DeferredAnswer()
    moved = broker.advance_clock(by, call.now)
    patience = moved.monotonic + PATIENCE_SECONDS

    def look(now: Now) -> None:
        if broker.is_catching_up(now) and now.monotonic < patience:
            broker.timers.at(now.monotonic, look)
        else:
            later.complete(_clock(call, moved.wall))

    look(moved)
    return later


def _clock(call: HttpRequest, wall: int) -> HttpResponse:
    held = call.broker.clock
    mode = "virtual" if held.is_virtual else "real"
    return answer({"mode": mode, "now": wall, "real": wall - held.offset, "offset": held.offset})


def _only(call: HttpRequest, name: str) -> Any:
    body = call.json_object() or {}
    if set(body) != {name}:
        raise BadRequest(f'The body must be {{"{name}": ...}}, and nothing else')
    return body[name]


def _whole(value: object, name: str) -> int:
    if type(value) is not int:
        raise BadRequest(f'"{name}" must be a string or a whole number of milliseconds')
    return value


def _instant(text: str) -> int:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise BadRequest(f'"{text[:60]}" is not a time; expected the form 2026-12-24T18:00:00Z') from None
    found = found if found.tzinfo else found.replace(tzinfo=UTC)
    return round(found.timestamp() * 1000)


ROUTES = (
    HttpRoute("GET", "/pulsarbox/v1/clock", Permission.NAMED, clock),
    HttpRoute("POST", "/pulsarbox/v1/clock/advance", Permission.SUPERUSER, advance),
    HttpRoute("PUT", "/pulsarbox/v1/clock", Permission.SUPERUSER, set_to),
)
