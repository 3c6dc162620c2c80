"""What a handler is given, and what it gives back: a request without a socket, an answer without one."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pulsarbox.broker.broker import Broker
from pulsarbox.clock import Now
from pulsarbox.errors import BadRequest, InvalidTopicName, PreconditionFailed
from pulsarbox.names import TopicName, check_entity_name, parse_topic

JSON = "application/json"


class Answer(NamedTuple):
    """A response to be sent once everything that the core has changed is durable."""

    status: int = 204
    body: bytes = b""
    content_type: str = JSON


DONE = Answer()
"""A change was made; there is nothing to say."""


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

    def json(self) -> Any:
        """The body, None for an empty one. Raises BadRequest."""
        if not self.body.strip():
            return None
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise BadRequest(f"The body is not JSON: {error}") from None
        except RecursionError:
            raise BadRequest("The body is nested too deep") from None

    def json_object(self) -> dict[str, Any] | None:
        """The body where it must be a JSON object; None for an empty one and for null. Raises BadRequest."""
        value = self.json()
        if value is not None and not isinstance(value, dict):
            raise BadRequest(f"The body must be a JSON object, not {kind_of(value)}")
        return value

    def flag(self, name: str) -> bool:
        """Whether a parameter of the query says true."""
        return self.query.get(name, "").lower() == "true"

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


def answer(value: object) -> Answer:
    """A value as JSON."""
    return Answer(200, json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="replace"))


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
