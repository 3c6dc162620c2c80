"""From a request to the value of a policy, and back."""

from typing import Any, Final

from pulsarbox.broker.policies.kinds.compression_at_rest import COMPRESSION_AT_REST
from pulsarbox.errors import BadRequest, NotFound, PreconditionFailed
from pulsarbox.plugins.registry import PluginError
from pulsarbox.protocol.policies.checks import check
from pulsarbox.protocol.policies.row import Blank, Place, PolicyRow, Silent
from pulsarbox.server.http.framework.request import DONE, Answer, Call, answer

UNCHANGED: Final = object()
"""The request changes nothing."""

_NO_BODY: Final = "The request entity cannot be empty."


def given(call: Call, row: PolicyRow, place: Place) -> Any:
    """The value that a request sets: checked, None to take it away, or UNCHANGED.

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


def _require_codec(call: Call, name: str) -> None:
    """Whether there is a codec of that name which may write to the disk. Raises PreconditionFailed."""
    try:
        call.broker.core.plugins.require_codec(name)
    except PluginError as error:
        raise PreconditionFailed(f"compressionAtRest cannot be {name!r}: {error}") from None


def _queried(call: Call, place: Place) -> int | None:
    text = call.query.get(place.query, "").strip()
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise NotFound(f"{place.query} must be a whole number, not {text[:40]!r}") from None


def _blank(call: Call, row: PolicyRow, place: Place) -> Any:
    if place.blank is Blank.KEEPS:
        return UNCHANGED
    if place.blank is Blank.REFUSED:
        raise BadRequest(place.without or f"The body must be {row.shape.expected}")
    if place.blank is Blank.ZERO:
        if not call.body.strip():
            raise BadRequest(_NO_BODY)
        return row.shape.zero
    return None


def shown(value: Any, unset: Any) -> Answer:
    """A value as an answer; ``unset`` is what is said where there is none."""
    if value is not None:
        return answer(value)
    if unset is Silent.NO_CONTENT:
        return DONE
    return Answer(200) if unset is Silent.EMPTY else answer(unset)
