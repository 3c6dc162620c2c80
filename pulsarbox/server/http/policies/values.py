"""Conversion between requests or answers and policy values."""

from typing import Any, Final

from pulsarbox.broker.policies.kinds.compression_at_rest import COMPRESSION_AT_REST
from pulsarbox.errors import BadRequest, NotFound, PreconditionFailed
from pulsarbox.plugins.registry import PluginError
from pulsarbox.protocol.policies.checks import check
from pulsarbox.protocol.policies.row import Blank, PolicyEndpoint, PolicyRow, Silent
from pulsarbox.server.http.framework.request import DONE, HttpRequest, HttpResponse, answer

UNCHANGED: Final = object()
"""Marks a request that changes nothing."""

_NO_BODY: Final = "The request entity cannot be empty."


def given(call: HttpRequest, row: PolicyRow, place: PolicyEndpoint) -> Any:
    """Return the value that a request sets: validated, None to remove it, or UNCHANGED.

    Raises BadRequest, PreconditionFailed, NotFound.
    """
    if place.always is not None:
        return place.always
    raw = _queried(call, place) if place.query else call.json()
    if raw is None:
        return _blank(call, row, place)
    value = row.shape.read(raw, place.path)
    check(row, place, value)
    if row.name == COMPRESSION_AT_REST.name:
        _require_codec(call, value)
    return None if value == place.nothing else value


def _require_codec(call: HttpRequest, name: str) -> None:
    """Raise PreconditionFailed unless the codec exists and supports compression at rest."""
    try:
        call.broker.plugins.require_codec(name)
    except PluginError as error:
        raise PreconditionFailed(f"compressionAtRest cannot be {name!r}: {error}") from None


def _queried(call: HttpRequest, place: PolicyEndpoint) -> int | None:
    text = call.query.get(place.query, "").strip()
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise NotFound(f"{place.query} must be a whole number, not {text[:40]!r}") from None


def _blank(call: HttpRequest, row: PolicyRow, place: PolicyEndpoint) -> Any:
    if place.blank is Blank.KEEPS:
        return UNCHANGED
    if place.blank is Blank.REFUSED:
        raise BadRequest(place.without or f"The body must be {row.shape.expected}")
    if place.blank is Blank.ZERO:
        if not call.body.strip():
            raise BadRequest(_NO_BODY)
        return row.shape.zero
    return None


def shown(value: Any, unset: Any) -> HttpResponse:
    """Return a value as an answer; ``unset`` is the answer if there is none."""
    if value is not None:
        return answer(value)
    if unset is Silent.NO_CONTENT:
        return DONE
    return HttpResponse(200) if unset is Silent.EMPTY else answer(unset)
