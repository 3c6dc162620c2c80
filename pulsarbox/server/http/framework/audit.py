"""The audit log of the Admin API: client, request, address, and outcome.

One line per request that changes something, and per request of any kind that is refused for authentication or
authorization; repeated refusals are rate-limited.
"""

import json
import logging
import re
from typing import Final

from aiohttp import web

from pulsarbox.broker.events import KINDS, WARNING, Events
from pulsarbox.broker.security.principal import Principal
from pulsarbox.broker.security.refusals import Refusals
from pulsarbox.cleaning import clean
from pulsarbox.clock import Now
from pulsarbox.server.http.framework.change_words import change_subject, change_words, refusal_words
from pulsarbox.server.http.framework.request import HttpResponse

BODY: Final = web.RequestKey("body", bytes)
"""Key of the body among the values of a request."""

log = logging.getLogger(__name__)

_READING: Final = ("GET", "HEAD", "OPTIONS")
_ORDINARY: Final = (
    ("POST", "/topics/"),
    ("PUT", "/pulsarbox/v1/pipelines/"),
    ("POST", "/pulsarbox/v1/epochs/"),
    ("POST", "/pulsarbox/v1/places"),
    ("POST", "/pulsarbox/v1/segments"),
)
"""Requests that are not administrative changes.

Messages published by HTTP or committed by epochs, status reports of pipeline runners every two seconds, and queries.
"""
_DENIED: Final = (401, 403)
_TOKEN: Final = re.compile(r"([?&;]token=)[^&;]*", re.IGNORECASE)


class Audit:
    """Writes the audit log of one port."""

    def __init__(self, refusals: Refusals, events: Events) -> None:
        self._events = events
        self._refusals = refusals

    def log(self, request: web.BaseRequest, given: HttpResponse, principal: Principal | None, now: Now) -> None:
        """Log an answered request."""
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

    def _event(
        self, kind: str, request: web.BaseRequest, given: HttpResponse, principal: Principal | None, now: Now
    ) -> None:
        who = _who(request, principal)
        path = request.raw_path.partition("?")[0]
        words = clean(change_words(request.method, path, request.query, request.get(BODY, b"")))
        if given.status < 400:
            text = f"{words} by {who}"
        else:
            text = f"{clean(refusal_words(words))} refused for {who}: {_reason(given) or given.status}"
        subject = clean(change_subject(path)) if kind == "changed" else who
        part, severity = words.partition(" set to ")[0], KINDS[kind].severity
        if given.status >= 400:
            part, severity = f"{part} refused", WARNING
        self._events.report(kind, subject, text, now, part=part, severity=severity, status=given.status)


def _is_ordinary(request: web.BaseRequest) -> bool:
    return any(request.method == method and request.raw_path.startswith(path) for method, path in _ORDINARY)


def _who(request: web.BaseRequest, principal: Principal | None) -> str:
    address = request.remote or "?"
    return address if principal is None else f"{principal} at {address}"


def _principal_and_outcome(
    request: web.BaseRequest, given: HttpResponse, principal: Principal | None
) -> tuple[str, str]:
    who = _who(request, principal)
    reason = "" if given.status < 400 else _reason(given)
    return who, f"refused with {given.status}: {reason}" if reason else f"done ({given.status})"


def _write(request: web.BaseRequest, given: HttpResponse, principal: Principal | None, end: str) -> None:
    address, path = request.remote or "?", printable(request.raw_path)
    who, outcome = _principal_and_outcome(request, given, principal)
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


def _reason(given: HttpResponse) -> str:
    try:
        return str(json.loads(given.body)["reason"])
    except (ValueError, TypeError, KeyError):
        return given.body[:200].decode(errors="replace")


def printable(raw_path: str) -> str:
    """Return a path as sent by the client, escaped for one log line, and with tokens in its query removed."""
    return _TOKEN.sub(r"\1...", raw_path[:500]).encode("ascii", "backslashreplace").decode()
