"""What a handler is given, and what it gives back: a request without a socket, an answer without one."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from pulsarbox.broker.broker import Broker
from pulsarbox.broker.security.principal import Principal
from pulsarbox.clock import Now
from pulsarbox.errors import BadRequest, InvalidTopicName, NotFound, PreconditionFailed, PulsarBoxError
from pulsarbox.names import TopicName, check_entity_name, parse_topic

log = logging.getLogger(__name__)

JSON = "application/json"

_LONG_DIGITS: Final = 100
"""Digits that are read of a number, leading zeros included."""
DEPTH_MAX: Final = 100
"""Lists and objects within each other in a body; nothing in the API needs more than a few."""


class Answer(NamedTuple):
    """A response to be sent once everything that the core has changed is durable."""

    status: int = 204
    body: bytes = b""
    content_type: str = JSON
    headers: Mapping[str, str] = MappingProxyType({})


DONE = Answer()
"""A change was made; there is nothing to say."""


class Pieces(NamedTuple):
    """An answer too long for one turn of the loop. It tells what is, and promises nothing: it does not wait for the
    disk."""

    content_type: str
    pieces: Iterator[bytes]
    """Each is short work; an empty one ends a turn, as does a number of bytes."""


class Live(NamedTuple):
    """An answer that goes on as long as the client wants it: lines of JSON as things happen. It promises nothing."""

    take: Callable[[], bytes]
    """The lines that have come since it was called last; it is called again while it gives any."""
    listen: Callable[[Callable[[], None]], Callable[[], None]]
    """Has a function called when there is something to take; what it gives ends that."""


class Later:
    """An answer that waits for something: a read, other turns, the disk. It is given once."""

    __slots__ = ("_given", "_told")

    def __init__(self) -> None:
        self._given: Answer | None = None
        self._told: Callable[[Answer], None] | None = None

    def give(self, given: Answer) -> None:
        """Here it is."""
        assert self._given is None, "an answer is given once"
        self._given = given
        if self._told is not None:
            self._told(given)

    def done(self, now: Now) -> None:
        """A change was made; there is nothing to say."""
        self.give(DONE)

    def failed(self, error: Exception) -> None:
        """It cannot be done."""
        if isinstance(error, PulsarBoxError):
            self.give(refusal(error.http_status, str(error)))
        else:
            log.error("a request failed", exc_info=error)
            self.give(refusal(500, FAILED))

    def when_given(self, told: Callable[[Answer], None]) -> None:
        """Tell of it, at once where it has been given already."""
        self._told = told
        if self._given is not None:
            told(self._given)


FAILED: Final = "The broker failed to carry this out; its log says why"
"""All that a client is told of a mistake of ours."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request, read completely."""

    broker: Broker
    now: Now
    path: Mapping[str, str]
    """The variable parts of the path, decoded."""
    query: Mapping[str, str]
    body: bytes
    host: str
    """The address by which the client reached the box, as its Host header has it; empty where there was none."""
    listener: str = ""
    """The listener that its X-Pulsar-ListenerName header names; empty where there is none."""
    principal: Principal | None = None
    """Who asks; None where authentication is off."""
    secure: bool = False
    """Whether it came over TLS."""

    def json(self) -> Any:
        """The body, None for an empty one. Raises BadRequest."""
        if not self.body.strip():
            return None
        try:
            value = json.loads(self.body, parse_constant=_no_number, parse_float=_number)
        except ValueError as error:  # of bytes that are no UTF-8 as well
            raise BadRequest(f"The body is not JSON: {str(error)[:200]}") from None
        except RecursionError:
            raise BadRequest("The body is nested too deep") from None
        _check(self.body, value)
        return value

    def json_object(self) -> dict[str, Any] | None:
        """The body where it must be a JSON object; None for an empty one and for null. Raises BadRequest."""
        value = self.json()
        if value is not None and not isinstance(value, dict):
            raise BadRequest(f"The body must be a JSON object, not {kind_of(value)}")
        return value

    def flag(self, name: str) -> bool:
        """Whether a parameter of the query says true."""
        return self.query.get(name, "").lower() == "true"

    def number(self, name: str) -> int:
        """A part of the path that must be a whole number of at most 64 bits.

        Raises NotFound, as Pulsar, whose routes such a path does not fit.
        """
        number = long_of(self.path[name])
        if number is None:
            raise NotFound(f"There is nothing at this path: {self.path[name][:40]!r} is no whole number")
        return number

    def namespace(self) -> str:
        """``tenant/namespace`` of the path. Raises PreconditionFailed where it cannot be one."""
        for part in (self.path["tenant"], self.path["namespace"]):
            check_entity_name("Namespace", part)
        return f"{self.path['tenant']}/{self.path['namespace']}"

    def topic(self, domain: str = "") -> TopicName:
        """The topic of the path. Raises PreconditionFailed where it cannot be one."""
        domain, namespace = domain or self.path["domain"], self.namespace()
        try:
            return parse_topic(f"{domain}://{namespace}/{self.path['topic']}")
        except InvalidTopicName as error:
            raise PreconditionFailed(f"Topic name is not valid: {error}") from None


def long_of(text: str) -> int | None:
    """The whole number of at most 64 bits that a text is; None for anything else."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _LONG_DIGITS):  # int() raises beyond 4300
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def asker(call: Call) -> tuple[str, str]:
    """Whom the computations of a request belong to: its role, all of whose requests take turns with other roles'."""
    return "HTTP", str(call.principal)


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number of JSON")


def _number(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text[:40]} is too large")
    return number


def _check(body: bytes, value: object) -> None:
    """Raises BadRequest for what could be read, and neither be kept nor told again."""
    if body.count(b"[") + body.count(b"{") > DEPTH_MAX and _is_deep(value):
        raise BadRequest(f"The body is nested too deep: more than {DEPTH_MAX} levels")
    if b"\\ud" in body.lower():
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise BadRequest("The body is not JSON: it has half of a surrogate pair, which is no character") from None


def _is_deep(value: object) -> bool:
    level = [value]
    for _ in range(DEPTH_MAX):
        parts = [each for each in level if isinstance(each, dict | list)]
        level = [each for part in parts for each in (part.values() if isinstance(part, dict) else part)]
    return any(isinstance(each, dict | list) for each in level)


compact: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
"""A value as JSON without spaces. An encoder is made once: to make one costs as much as a small value."""


def answer(value: object) -> Answer:
    """A value as JSON."""
    return Answer(200, compact(value).encode(errors="replace"))


def plain(text: str) -> Answer:
    """Text as it is. Pulsar calls it JSON too, whatever it holds."""
    return Answer(200, text.encode())


def refusal(status: int, reason: str) -> Answer:
    """An error as all clients of the Admin API read it."""
    return answer({"reason": reason})._replace(status=status)


def kind_of(value: object) -> str:
    """What a JSON value is, for an error message."""
    kinds = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return kinds.get(type(value), "a number")


def texts(value: object, what: str) -> dict[str, str]:
    """A JSON object whose values are text (numbers and booleans are taken as such), as properties are.

    Raises BadRequest.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadRequest(f"{what} must be a JSON object of texts, not {kind_of(value)}")
    wrong = [name for name, each in value.items() if each is None or isinstance(each, dict | list)]
    if wrong:
        raise BadRequest(f"{what} must be a JSON object of texts: {wrong[0]!r} has {kind_of(value[wrong[0]])}")
    return {name: each if isinstance(each, str) else json.dumps(each) for name, each in value.items()}
