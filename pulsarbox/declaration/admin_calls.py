"""Calls of the Admin API as values, and the exchange of calls for replies."""

import json
from collections.abc import Generator
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urlencode

from pulsarbox.errors import PulsarBoxError

T = TypeVar("T")

JSON_TYPE: Final = "application/json"


class AdminCall(NamedTuple):
    """A request."""

    method: str
    target: str
    """Quoted path, with its query."""
    body: Any = None
    """JSON, or bytes to send as they are; None for no body."""
    content_type: str = JSON_TYPE


class AdminReply(NamedTuple):
    """The reply to a call."""

    status: int
    value: Any = None
    """JSON; None for an empty body."""
    reason: str = ""
    """Why the call was rejected."""


Exchange = Generator[AdminCall, AdminReply, T]
"""A computation that yields calls, receives their replies, and returns a result."""


class CallRejected(PulsarBoxError):
    """The broker rejected a call; ``status`` is the HTTP status, the message its reason."""

    def __init__(self, call: AdminCall, reply: AdminReply) -> None:
        super().__init__(reply.reason or f"HTTP {reply.status}")
        self.status = reply.status
        self.method = call.method


def admin(method: str, path: str, body: Any = None, content_type: str = JSON_TYPE, **query: str) -> AdminCall:
    """Return a call below /admin/v2."""
    return AdminCall(method, f"/admin/v2{path}" + (f"?{urlencode(query)}" if query else ""), body, content_type)


def body_of(call: AdminCall) -> bytes | None:
    """Return the body of a call as it is sent; None for none."""
    if call.body is None or isinstance(call.body, bytes):
        return call.body
    return json.dumps(call.body).encode()


def own(method: str, path: str, body: Any = None) -> AdminCall:
    """Return a call below /pulsarbox/v1, which only a box answers."""
    return AdminCall(method, f"/pulsarbox/v1{path}", body)


def reply_to(call: AdminCall, *accepted: int) -> Exchange[AdminReply]:
    """Yield a call and return its reply. Raises CallRejected for an error status that is not ``accepted``."""
    reply = yield call
    if reply.status >= 400 and reply.status not in accepted:
        raise CallRejected(call, reply)
    return reply


def value_of(call: AdminCall, missing: Any = None) -> Exchange[Any]:
    """Yield a call and return the value of its reply; ``missing`` for 404. Raises CallRejected."""
    reply = yield from reply_to(call, 404)
    return missing if reply.status == 404 else reply.value
