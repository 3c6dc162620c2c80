"""Requests and answers of handlers, independent of sockets."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from pulsarbox.broker.broker import Broker
from pulsarbox.broker.security.permissions import Permissions
from pulsarbox.broker.security.principal import Principal
from pulsarbox.broker.tenants import Tenants
from pulsarbox.broker.topic.registry import Topics
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.errors import CODE_HEADER, BadRequest, InvalidTopicName, NotFound, PreconditionFailed, PulsarBoxError
from pulsarbox.names import TopicName, check_entity_name, parse_topic

log = logging.getLogger(__name__)

JSON = "application/json"

_LONG_DIGITS: Final = 100
"""Maximum digits of a number, leading zeros included."""
DEPTH_MAX: Final = 100
"""Maximum nesting of arrays and objects in a body; the API needs only a few levels."""


class HttpResponse(NamedTuple):
    """A response, sent once everything that the core has changed is durable."""

    status: int = 204
    body: bytes = b""
    content_type: str = JSON
    headers: Mapping[str, str] = MappingProxyType({})


DONE = HttpResponse()
"""The answer to a change without a result."""


class Pieces(NamedTuple):
    """An answer too long for one turn of the loop. It is read-only and does not wait for the disk."""

    content_type: str
    pieces: Iterator[bytes]
    """Each takes little work; an empty piece ends a turn, as does a number of bytes."""


class LiveResponse(NamedTuple):
    """A streaming answer: lines of JSON as events occur, until the client disconnects. Not held back for the disk."""

    take: Callable[[], bytes]
    """Returns the lines since its last call; called until it returns none."""
    listen: Callable[[Callable[[], None]], Callable[[], None]]
    """Registers a callback for new lines; returns a function that unregisters it."""


class Download(NamedTuple):
    """An answer that is read from the disk step by step. It does not wait for the disk otherwise."""

    size: int
    """Bytes of the answer."""
    read: Callable[[Callable[[bytes, Exception | None, Now], None], Now], None]
    """Requests the next bytes, which are empty at the end, or an error."""


class DeferredAnswer:
    """A deferred answer, which waits for a read, other turns or the disk. It is given once."""

    __slots__ = ("_answer", "_callback")

    def __init__(self) -> None:
        self._answer: HttpResponse | None = None
        self._callback: Callable[[HttpResponse], None] | None = None

    def complete(self, given: HttpResponse) -> None:
        """Give the answer."""
        assert self._answer is None, "the answer was already given"
        self._answer = given
        if self._callback is not None:
            self._callback(given)

    def done(self, now: Now) -> None:
        """Answer a change without a result."""
        self.complete(DONE)

    def failed(self, error: Exception) -> None:
        """Answer with an error."""
        if isinstance(error, PulsarBoxError):
            self.complete(refusal_of(error))
        else:
            log.error("request failed", exc_info=error)
            self.complete(refusal(500, FAILED))

    def on_complete(self, told: Callable[[HttpResponse], None]) -> None:
        """Register the receiver of the answer, called at once if it is already given."""
        self._callback = told
        if self._answer is not None:
            told(self._answer)


FAILED: Final = "The broker failed to process the request; its log has the reason"
"""The message that a client gets for an internal error."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request, read completely."""

    broker: Broker
    now: Now
    path: Mapping[str, str]
    """The variable parts of the path, decoded."""
    query: Mapping[str, str]
    body: bytes
    host: str
    """The address by which the client reached the box, from the Host header; empty without it."""
    listener: str = ""
    """The listener in the X-Pulsar-ListenerName header; empty without it."""
    principal: Principal | None = None
    """The authenticated client; None if authentication is disabled."""
    secure: bool = False
    """Whether the request used TLS."""

    @property
    def topics(self) -> Topics:
        """The topics of the box."""
        return self.broker.topics

    @property
    def tenants(self) -> Tenants:
        """The tenants and namespaces of the box."""
        return self.broker.tenants

    @property
    def permissions(self) -> Permissions:
        """The permissions of roles."""
        return self.broker.permissions

    @property
    def settings(self) -> Settings:
        """The settings in effect."""
        return self.broker.settings

    def json(self) -> Any:
        """Parse the body, None for an empty one. Raises BadRequest."""
        if not self.body.strip():
            return None
        try:
            value = json.loads(self.body, parse_constant=_no_number, parse_float=_number)
        except ValueError as error:  # includes invalid UTF-8
            raise BadRequest(f"The body is not JSON: {str(error)[:200]}") from None
        except RecursionError:
            raise BadRequest("The body is nested too deep") from None
        _check(self.body, value)
        return value

    def text(self) -> str:
        """Return the body as text, empty if it is blank. Raises BadRequest if it is not UTF-8."""
        try:
            text = self.body.decode()
        except UnicodeDecodeError:
            raise BadRequest("The body is not UTF-8") from None
        return text if text.strip() else ""

    def json_object(self) -> dict[str, Any] | None:
        """Parse a body that must be a JSON object; None for an empty one and for null. Raises BadRequest."""
        value = self.json()
        if value is not None and not isinstance(value, dict):
            raise BadRequest(f"The body must be a JSON object, not {kind_of(value)}")
        return value

    def flag(self, name: str) -> bool:
        """Return whether a query parameter is true."""
        return self.query.get(name, "").lower() == "true"

    def values(self, name: str) -> list[str]:
        """Return all values of a query parameter that may be repeated."""
        all_values = getattr(self.query, "getall", None)
        if all_values is not None:
            return [str(value) for value in all_values(name, ())]
        return [self.query[name]] if name in self.query else []

    def number(self, name: str) -> int:
        """Parse a path variable that must be an integer of at most 64 bits.

        Raises NotFound, as in Pulsar, whose routes do not match such a path.
        """
        number = long_of(self.path[name])
        if number is None:
            raise NotFound(f"There is nothing at this path: {self.path[name][:40]!r} is not a whole number")
        return number

    def namespace(self) -> str:
        """Return ``tenant/namespace`` of the path. Raises PreconditionFailed if it is invalid."""
        for part in (self.path["tenant"], self.path["namespace"]):
            check_entity_name("Namespace", part)
        return f"{self.path['tenant']}/{self.path['namespace']}"

    def topic(self, domain: str = "") -> TopicName:
        """Return the topic of the path. Raises PreconditionFailed if it is invalid."""
        domain, namespace = domain or self.path["domain"], self.namespace()
        try:
            return parse_topic(f"{domain}://{namespace}/{self.path['topic']}")
        except InvalidTopicName as error:
            raise PreconditionFailed(f"Topic name is not valid: {error}") from None


def long_of(text: str) -> int | None:
    """Parse an integer of at most 64 bits; None for anything else."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _LONG_DIGITS):  # int() raises beyond 4300 digits
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def fairness_group(call: HttpRequest) -> tuple[str, str]:
    """Return the fairness group of a request's computations: roles take turns."""
    return "HTTP", str(call.principal)


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is not a JSON number")


def _number(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text[:40]} is too large")
    return number


def _check(body: bytes, value: object) -> None:
    """Raise BadRequest for valid JSON that could not be stored or returned."""
    if body.count(b"[") + body.count(b"{") > DEPTH_MAX and _is_deep(value):
        raise BadRequest(f"The body is nested too deep: more than {DEPTH_MAX} levels")
    if b"\\ud" in body.lower():
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise BadRequest(
                "The body is not JSON: it contains half of a surrogate pair, which is not a character"
            ) from None


def _is_deep(value: object) -> bool:
    level = [value]
    for _ in range(DEPTH_MAX):
        parts = [each for each in level if isinstance(each, dict | list)]
        level = [each for part in parts for each in (part.values() if isinstance(part, dict) else part)]
    return any(isinstance(each, dict | list) for each in level)


compact: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
"""Encodes a value as JSON without spaces. Shared: creating an encoder costs as much as encoding a small value."""


def answer(value: object) -> HttpResponse:
    """Return a value as JSON."""
    return HttpResponse(200, compact(value).encode(errors="replace"))


def plain(text: str) -> HttpResponse:
    """Return plain text. Its content type is JSON, as in Pulsar."""
    return HttpResponse(200, text.encode())


def refusal(status: int, reason: str) -> HttpResponse:
    """Return an error in the form that all clients of the Admin API parse."""
    return answer({"reason": reason})._replace(status=status)


def refusal_of(error: PulsarBoxError) -> HttpResponse:
    """Return an error of the error table as an answer, with its code, if any, in the header ``CODE_HEADER``."""
    told = refusal(error.http_status, str(error))
    return told._replace(headers=MappingProxyType({CODE_HEADER: error.error_code})) if error.error_code else told


def kind_of(value: object) -> str:
    """Describe the type of a JSON value for an error message."""
    kinds = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return kinds.get(type(value), "a number")


def texts(value: object, what: str) -> dict[str, str]:
    """Parse a JSON object of strings, such as properties; numbers and booleans are converted.

    Raises BadRequest.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadRequest(f"{what} must be a JSON object with string values, not {kind_of(value)}")
    wrong = [name for name, each in value.items() if each is None or isinstance(each, dict | list)]
    if wrong:
        raise BadRequest(
            f"{what} must be a JSON object with string values: {wrong[0]!r} has {kind_of(value[wrong[0]])}"
        )
    return {name: each if isinstance(each, str) else json.dumps(each) for name, each in value.items()}
