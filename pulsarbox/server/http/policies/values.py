"""Conversion between requests or answers and policy values."""

from typing import Any, Final

from pulsarbox.broker.policies.kinds.compression_at_rest import COMPRESSION_AT_REST
from pulsarbox.broker.policies.kinds.persistence import PERSISTENCE
from pulsarbox.errors import BadRequest, NotFound, PreconditionFailed
from pulsarbox.plugins.registry import PluginError
from pulsarbox.protocol.policies.checks import check
from pulsarbox.protocol.policies.row import Blank, PolicyEndpoint, PolicyRow, Silent
from pulsarbox.server.http.framework.request import DONE, HttpRequest, HttpResponse, answer, plain
from pulsarbox.server.http.framework.stored_only import stored_only
from pulsarbox.server.http.policies.copies import warn_of_copies, without_effect

UNCHANGED: Final = object()
"""Marks a request that changes nothing."""

_NO_BODY: Final = "The request entity cannot be empty."


def given(call: HttpRequest, row: PolicyRow, place: PolicyEndpoint) -> Any:
    """Return the value that a request sets: validated, None to remove it, or UNCHANGED.

    Raises BadRequest, PreconditionFailed, NotFound.
    """
    if place.always is not None:
        return place.always
    raw = _raw(call, place)
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


def _raw(call: HttpRequest, place: PolicyEndpoint) -> Any:
    if place.query:
        return _queried(call, place)
    return call.text() or None if place.local else call.json()


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
        raise BadRequest(place.without or "The body must be a JSON value, not null or empty")
    if place.blank is Blank.UNMET:
        raise PreconditionFailed(place.without)
    if place.blank is Blank.ZERO:
        if not call.body.strip():
            raise BadRequest(_NO_BODY)
        return row.shape.zero
    return None


def changed(call: HttpRequest, row: PolicyRow, value: Any, done: HttpResponse = DONE) -> HttpResponse:
    """Answer a change, with a warning if the value has no effect or cannot be met; None removes the policy."""
    if value is None:
        return done
    reason = without_effect(call.broker, row)
    if reason:
        return stored_only(row.name, reason, done)
    return warn_of_copies(call.broker, value, done) if row.name == PERSISTENCE.name else done


def shown(value: Any, place: PolicyEndpoint) -> HttpResponse:
    """Return a value as an answer, or that of the level's endpoint if there is none."""
    if value is not None:
        return plain(value) if place.local else answer(value)
    unset = place.unset
    if unset is Silent.NO_CONTENT:
        return DONE
    return HttpResponse(200) if unset is Silent.EMPTY else answer(unset)
