"""The endpoints of the WebSocket API: what the path of a request names.

Source: https://pulsar.apache.org/docs/4.2.x/client-libraries-websocket/ and the behavior of Pulsar 4.2.4.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from pulsarbox.errors import BadRequest, InvalidTopicName, NotFound
from pulsarbox.names import DOMAINS, TopicName, parse_topic
from pulsarbox.server.http.framework.routes import PathSegment, split_path

PREFIXES: Final = ("/ws/v2/", "/ws/v3/")
PRODUCER: Final = "producer"
CONSUMER: Final = "consumer"
READER: Final = "reader"
TOPICS_MAX: Final = 1000
"""Maximum number of topics that one consumer names."""


class SocketEndpoint(NamedTuple):
    """The producer, consumer or reader that a path names."""

    kind: str
    topics: tuple[TopicName, ...]
    """One topic, or those of a consumer of several topics; empty with ``pattern``."""
    subscription: str = ""
    pattern: str = ""
    """Regular expression that selects topics; empty without one."""


def parse_endpoint(raw_path: str, query: Mapping[str, str]) -> SocketEndpoint:
    """Return the endpoint of a raw path. Raises NotFound for an unknown path, BadRequest for an invalid one."""
    _, version, kind, *rest = (*split_path(raw_path), "", "", "")
    segments = [each for each in rest if each]
    if version == "v3" and kind == CONSUMER:
        return _several(segments, query)
    if version != "v2" or kind not in (PRODUCER, CONSUMER, READER):
        raise NotFound("There is no WebSocket endpoint at this path")
    return _single(kind, segments)


def _single(kind: str, segments: list[str]) -> SocketEndpoint:
    least = 5 if kind == CONSUMER else 4
    form = "{domain}/{tenant}/{namespace}/{topic}" + ("/{subscription}" if kind == CONSUMER else "")
    if len(segments) < least or (kind == CONSUMER and len(segments) > least):
        raise BadRequest(f"Invalid path: expected /ws/v2/{kind}/{form}")
    domain, tenant, namespace, topic, *more = segments
    if domain not in DOMAINS:
        raise BadRequest(f"Invalid path: the domain must be persistent or non-persistent, not {domain[:40]!r}")
    name = _topic(f"{domain}://{tenant}/{namespace}/{_form(topic)}")
    return SocketEndpoint(kind, (name,), _form(more[0]) if kind == CONSUMER else "")


def _several(segments: list[str], query: Mapping[str, str]) -> SocketEndpoint:
    if len(segments) != 1:
        raise BadRequest("Invalid path: expected /ws/v3/consumer/{subscription}")
    topics, pattern = query.get("topics"), query.get("topicsPattern")
    if (topics is None) == (pattern is None):
        raise BadRequest("Invalid query params: expected either topics or topicsPattern")
    if pattern is not None:
        return SocketEndpoint(CONSUMER, (), _form(segments[0]), pattern)
    names = [each.strip() for each in (topics or "").split(",")]
    if len(names) > TOPICS_MAX:
        raise BadRequest(f"Invalid query params: topics names {len(names)} topics, the maximum is {TOPICS_MAX}")
    return SocketEndpoint(CONSUMER, tuple(dict.fromkeys(_topic(each) for each in names)), _form(segments[0]))


def _form(segment: str) -> str:
    """Return a segment decoded as form data: a plus is a space."""
    return segment.form if isinstance(segment, PathSegment) else segment


def _topic(text: str) -> TopicName:
    try:
        return parse_topic(text)
    except InvalidTopicName as error:
        raise BadRequest(str(error)) from None
