"""The audit lines of the Admin API: who did what from where, and how it ended.

One line for each request that changes something, and for each that is refused because of who asks, whatever it is; of
a flood of refusals only some are told.
"""

import json
import logging
import re
from typing import Final

from aiohttp import web

from pulsarbox.broker.events import Events
from pulsarbox.broker.security.principal import Principal
from pulsarbox.broker.security.refusals import Refusals
from pulsarbox.clock import Now
from pulsarbox.server.http.framework.request import Answer

log = logging.getLogger(__name__)

_READING: Final = ("GET", "HEAD", "OPTIONS")
_ORDINARY: Final = (
    ("POST", "/topics/"),
    ("PUT", "/pulsarbox/v1/pipelines/"),
    ("POST", "/pulsarbox/v1/epochs/"),
    ("POST", "/pulsarbox/v1/places"),
    ("POST", "/pulsarbox/v1/segments"),
)
"""No administrator's action either: messages that come by HTTP, or are committed by epochs, what runners of pipelines
tell of themselves every two seconds, and questions."""
_DENIED: Final = (401, 403)
_TOKEN: Final = re.compile(r"([?&;]token=)[^&;]*", re.IGNORECASE)


class Audit:
    """Writes the lines of one port."""

    def __init__(self, refusals: Refusals, events: Events) -> None:
        self._events = events
        self._refusals = refusals

    def tell(self, request: web.BaseRequest, given: Answer, principal: Principal | None, now: Now) -> None:
        """A request was answered."""
        end: str | None = ""
        if given.status in _DENIED:
            self._event("denied", request, given, principal, now)
            end = self._refusals.line(now)
        elif request.method in _READING or _is_ordinary(request):
            return
        else:
            self._event("changed", request, given, principal, now)
        if end is not None:
            _write(request, given, principal, end)

    def _event(self, kind: str, request: web.BaseRequest, given: Answer, principal: Principal | None, now: Now) -> None:
        what = f"{request.method} {printable(request.raw_path)}"
        who, outcome = _who_and_outcome(request, given, principal)
        self._events.tell(
            kind, what if kind == "changed" else who, f"{who}: {what}: {outcome}", now, status=given.status
        )


def _is_ordinary(request: web.BaseRequest) -> bool:
    return any(request.method == method and request.raw_path.startswith(path) for method, path in _ORDINARY)


def _who_and_outcome(request: web.BaseRequest, given: Answer, principal: Principal | None) -> tuple[str, str]:
    address = request.remote or "?"
    who = address if principal is None else f"{principal} at {address}"
    reason = "" if given.status < 400 else _reason(given)
    return who, f"refused with {given.status}: {reason}" if reason else f"done ({given.status})"


def _write(request: web.BaseRequest, given: Answer, principal: Principal | None, end: str) -> None:
    address, path = request.remote or "?", printable(request.raw_path)
    who, outcome = _who_and_outcome(request, given, principal)
    reason = "" if given.status < 400 else _reason(given)
    fields = {"who": address, "method": request.method, "path": path, "status": given.status}
    if principal is not None:
        fields |= {"role": principal.role} | ({"original": principal.original} if principal.original else {})
    log.log(
        logging.WARNING if given.status in _DENIED or given.status >= 500 else logging.INFO,
        "%s: %s %s: %s%s",
        who, request.method, path, outcome, end if reason else "",
        extra={"fields": fields | ({"reason": reason} if reason else {})},
    )  # fmt: skip


def _reason(given: Answer) -> str:
    try:
        return str(json.loads(given.body)["reason"])
    except (ValueError, TypeError, KeyError):
        return given.body[:200].decode(errors="replace")


def printable(raw_path: str) -> str:
    """A path as the client sent it, fit for one line of a log; without a token, which some send there."""
    return _TOKEN.sub(r"\1...", raw_path[:500]).encode("ascii", "backslashreplace").decode()
