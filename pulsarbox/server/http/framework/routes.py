"""The table of routes: method, path, permission, handler. A row without a permission is rejected.

Paths are matched segment by segment as sent by the client, and each segment is decoded separately: a slash in a name is
encoded as %2F and stays in the name. If both match, a literal segment takes precedence over a variable.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple
from urllib.parse import unquote, unquote_plus

from pulsarbox.errors import BadRequest
from pulsarbox.names import DOMAINS
from pulsarbox.server.http.framework.request import Answer, Call, Later, Live, Pieces

Handler = Callable[[Call], Answer | Later | Pieces | Live]


class Permission(enum.Enum):
    """Roles that may call an endpoint with authorization enabled; ``authorization`` has the rule of each."""

    ANYONE = "anyone, without a name too"
    NAMED = "whoever has proved a name"
    SUPERUSER = "superusers"
    WATCHER = "superusers and viewers; where the query names a tenant or a namespace, the admins of that tenant too"
    TENANT_ADMIN = "superusers and the admins of the tenant"
    TENANT = "superusers and the admins of the tenant; others do not learn whether it exists"
    TENANT_ADMIN_OF_TOPICS = "superusers and the admins of the tenants whose topics the body names"
    NAMESPACE_USER = "those, and who may produce or consume in the whole namespace"
    NAMESPACE_CONSUMER = "those, and who may consume in the whole namespace, with the subscription where one is named"
    FUNCTIONS = "those, and who was granted functions in the namespace"
    SOURCES = "those, and who was granted sources in the namespace"
    SINKS = "those, and who was granted sinks in the namespace"
    PACKAGES = "those, and who was granted packages in the namespace"
    TOPIC_USER = "those, and who may produce to the topic or consume from it"
    TOPIC_PRODUCER = "those, and who may produce to the topic"
    TOPIC_CONSUMER = "those, and who may consume from the topic, with the subscription where one is named"
    JOB = "those, and who may consume from the topic of the job, with its subscription, and produce to its target"


class Route(NamedTuple):
    """One endpoint. ``{domain}`` in its path is ``persistent`` or ``non-persistent``, other braces hold a name."""

    method: str
    path: str
    permission: Permission
    handler: Handler


class Match(NamedTuple):
    """The route of a request, and the variable parts of its path."""

    route: Route
    path: dict[str, str]


class _Node:
    """A node of the routing tree: the segments that may follow."""

    __slots__ = ("names", "route", "variable", "words")

    def __init__(self) -> None:
        self.words: dict[str, _Node] = {}
        self.variable: _Node | None = None
        self.route: Route | None = None
        self.names: tuple[str, ...] = ()
        """Names of the variable parts, in order, except ``domain``."""


class Routes:
    """All routes, found by method and path."""

    def __init__(self, rows: Iterable[Route]) -> None:
        self.rows = tuple(rows)
        self._roots: dict[str, _Node] = {}
        for row in self.rows:
            if not isinstance(row.permission, Permission):
                raise TypeError(f"{row.method} {row.path} declares no permission")
            for domain in DOMAINS if "{domain}" in row.path else ("",):
                self._add(row, row.path.replace("{domain}", domain))

    def _add(self, row: Route, path: str) -> None:
        node = self._roots.setdefault(row.method, _Node())
        names = []
        for segment in path.strip("/").split("/"):
            if segment.startswith("{"):
                names.append(segment.strip("{}"))
                node.variable = node = node.variable or _Node()
            else:
                node = node.words.setdefault(segment, _Node())
        if node.route is not None:
            raise ValueError(f"{row.method} {path} is registered twice")
        node.route, node.names = row, tuple(names)

    def find(self, method: str, segments: list[str]) -> Match | None:
        """Return the route of a request, or None."""
        root = self._roots.get(method)
        found = _walk(root, segments, 0, ()) if root else None
        if found is None:
            return None
        node, values = found
        assert node.route is not None
        path = dict(zip(node.names, values, strict=True))
        if "{domain}" in node.route.path:
            path["domain"] = next(segment for segment in segments if segment in DOMAINS)
        topic = path.get("topic")
        if isinstance(topic, Segment):
            path["topic"] = topic.form  # as in Pulsar, a plus is a space: its clients encode topic names that way
        if "subscription" in path and "topic" in path:
            path["subscription"] = unquote_plus(path["subscription"])  # clients encode it twice, as Pulsar requires
            _check_nul(path["subscription"])
        return Match(node.route, path)

    def methods(self, segments: list[str]) -> list[str]:
        """Return the methods that a path supports."""
        return sorted(method for method in self._roots if self.find(method, segments) is not None)


def _walk(node: _Node, segments: list[str], i: int, values: tuple[str, ...]) -> tuple[_Node, tuple[str, ...]] | None:
    if i == len(segments):
        return (node, values) if node.route else None
    word = node.words.get(segments[i])
    found = _walk(word, segments, i + 1, values) if word else None
    if found is None and node.variable is not None and segments[i]:
        found = _walk(node.variable, segments, i + 1, (*values, segments[i]))
    return found


class Segment(str):
    """One decoded segment of a path."""

    __slots__ = ("form",)
    form: str
    """The segment decoded as form data: a plus is a space."""


def split_path(raw: str) -> list[str]:
    """Return the decoded segments of a raw path; a trailing slash is ignored. Raises BadRequest."""
    segments: list[str] = [_segment(text) for text in raw.removeprefix("/").split("/")]
    if len(segments) > 1 and not segments[-1]:
        segments.pop()
    return segments


def _segment(text: str) -> Segment:
    if "%" in text and _NO_ESCAPE.search(text):
        raise BadRequest("The path has a % that is not followed by two hexadecimal digits: write it %25")
    try:
        decoded = unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise BadRequest("The path is not UTF-8") from None
    _check_nul(decoded)
    segment = Segment(decoded)
    segment.form = unquote_plus(text, errors="strict") if "+" in text else decoded
    return segment


def _check_nul(text: str) -> None:
    if "\0" in text:
        raise BadRequest("The path has a NUL (%00): no name has one")


_NO_ESCAPE: Final = re.compile("%(?![0-9A-Fa-f]{2})")
