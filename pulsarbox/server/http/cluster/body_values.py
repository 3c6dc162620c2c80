"""Values in request bodies of cluster resources."""

from typing import Any

from pulsarbox.errors import BadRequest
from pulsarbox.protocol.policies.shapes import ObjectShape
from pulsarbox.server.http.framework.request import HttpRequest, kind_of


def strings(value: Any, what: str) -> list[str]:
    """Return a list of strings in its order, without duplicates. Raises BadRequest; ``what`` names the value."""
    if not isinstance(value, list):
        raise BadRequest(f"{what} must be a list of strings, not {kind_of(value)}")
    wrong = [each for each in value if not isinstance(each, str)]
    if wrong:
        raise BadRequest(f"{what} must be a list of strings; one is {kind_of(wrong[0])}")
    return list(dict.fromkeys(value))


def object_in(call: HttpRequest, shape: ObjectShape, what: str) -> dict[str, Any]:
    """Return the object in the body, unknown members dropped. Raises BadRequest, also without a body."""
    body = call.json()
    if body is None:
        raise BadRequest(f"{what} is required: send an object with members such as {', '.join([*shape.members][:4])}")
    found: dict[str, Any] = shape.read(body, what)
    return found
