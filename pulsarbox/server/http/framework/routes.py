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
from pulsarbox.server.http.framework.request import (
    DeferredAnswer,
    Download,
    HttpRequest,
    HttpResponse,
    LiveResponse,
    Pieces,
)
from pulsarbox.server.http.framework.upload import Upload

Handler = Callable[[HttpRequest], HttpResponse | DeferredAnswer | Pieces | LiveResponse | Download | Upload]


class Permission(enum.Enum):
    """Roles that may call an endpoint with authorization enabled; ``authorization`` has the rule of each."""

    ANYONE = "anyone, even unauthenticated"
    NAMED = "any authenticated role"
    SUPERUSER = "superusers"
    WATCHER = "superusers and viewers; if the query names a tenant or a namespace, also the admins of that tenant"
    TENANT_ADMIN = "superusers and the admins of the tenant"
    TENANT = "superusers and the admins of the tenant; its existence is not disclosed to others"
    TENANT_ADMIN_OF_TOPICS = "superusers and the admins of the tenants whose topics the body names"
    NAMESPACE_USER = "superusers, tenant admins, and roles that may produce or consume in the whole namespace"
    NAMESPACE_CONSUMER = (
        "superusers, tenant admins, and roles that may consume in the whole namespace, with the subscription if one is"
        " named"
    )
    FUNCTIONS = "superusers, tenant admins, and roles with the functions permission in the namespace"
    SOURCES = "superusers, tenant admins, and roles with the sources permission in the namespace"
    SINKS = "superusers, tenant admins, and roles with the sinks permission in the namespace"
    PACKAGES = "superusers, tenant admins, and roles with the packages permission in the namespace"
    TOPIC_USER = "superusers, tenant admins, and roles that may produce to the topic or consume from it"
    TOPIC_PRODUCER = "superusers, tenant admins, and roles that may produce to the topic"
    TOPIC_CONSUMER = (
        "superusers, tenant admins, and roles that may consume from the topic, with the subscription if one is named"
    )
    JOB = (
        "superusers, tenant admins, and roles that may consume from the job's topic with its subscription and produce"
        " to its target"
    )


class HttpRoute(NamedTuple):
    """One endpoint. ``{domain}`` in its path is ``persistent`` or ``non-persistent``, other braces hold a name."""

    method: str
    path: str
    permission: Permission
    handler: Handler
    streams_body: bool = False
    """Whether the handler is called before the body, and returns the ``Upload`` that receives it."""


class Match(NamedTuple):
    """The route of a request, and the variable parts of its path."""

    route: HttpRoute
    path: dict[str, str]


class _Node:
    """A node of the routing tree: the segments that may follow."""

    __slots__ = ("names", "route", "variable", "words")

    def __init__(self) -> None:
        self.words: dict[str, _Node] = {}
        self.variable: _Node | None = None
        self.route: HttpRoute | None = None
        self.names: tuple[str, ...] = ()
        """Names of the variable parts, in order, except ``domain``."""


class Routes:
    """All routes, found by method and path."""

    def __init__(self, rows: Iterable[HttpRoute]) -> None:
        self.rows = tuple(rows)
        self._roots: dict[str, _Node] = {}
        for row in self.rows:
            if not isinstance(row.permission, Permission):
                raise TypeError(f"{row.method} {row.path} declares no permission")
            for domain in DOMAINS if "{domain}" in row.path else ("",):
                self._add(row, row.path.replace("{domain}", domain))

    def _add(self, row: HttpRoute, path: str) -> None:
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
        if isinstance(topic, PathSegment):
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


class PathSegment(str):
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


def _segment(text: str) -> PathSegment:
    if "%" in text and _NO_ESCAPE.search(text):
        raise BadRequest("The path has a % that is not followed by two hexadecimal digits: encode it as %25")
    try:
        decoded = unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise BadRequest("The path is not UTF-8") from None
    _check_nul(decoded)
    segment = PathSegment(decoded)
    segment.form = unquote_plus(text, errors="strict") if "+" in text else decoded
    return segment


def _check_nul(text: str) -> None:
    if "\0" in text:
        raise BadRequest("The path has a NUL (%00), which no name may contain")


_NO_ESCAPE: Final = re.compile("%(?![0-9A-Fa-f]{2})")
