"""Requests that change something, in the words of operators: "retention of acme/prod set to 7d"."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import unquote

from pulsarbox.protocol.policies.row import PolicyEndpoint, PolicyRow
from pulsarbox.protocol.policies.table import BACKLOG_QUOTA, ROWS

VALUE_MAX: Final = 200
"""Characters of a value in an event."""
_BODY_MAX: Final = 16 * 1024
"""Bytes of a body that is put in words. A policy is smaller, and parsing a larger one takes too long."""
_HOME: Final = "public/default/"


class ChangeRequest:
    """A request that matches a pattern."""

    def __init__(self, method: str, found: re.Match[str], query: Mapping[str, str], body: bytes) -> None:
        self.method = method
        self.query = query
        self._found = found
        self._body = body

    def __getitem__(self, name: str) -> str:
        return unquote(self._found[name] or "")

    @property
    def namespace(self) -> str:
        """``tenant/namespace``."""
        return f"{self['tenant']}/{self['namespace']}"

    @property
    def topic(self) -> str:
        """The name as commands show it."""
        name = f"{self.namespace}/{self['topic']}"
        return name.removeprefix(_HOME) if self["domain"] == "persistent" else f"{self['domain']}://{name}"

    @property
    def subscription(self) -> str:
        """The subscription with its topic."""
        return f"subscription {self['subscription']} of {self.topic}"

    @property
    def value(self) -> Any:
        """The JSON value of the body; None without one."""
        try:
            return json.loads(self._body)
        except (ValueError, RecursionError):
            return None


def change_words(method: str, path: str, query: Mapping[str, str], body: bytes) -> str:
    """Return what a request asks for, such as ``topic orders created``; empty if there are no words for it."""
    if len(body) > _BODY_MAX:
        return ""
    for pattern, words in _TABLE:
        found = pattern.fullmatch(path)
        if found is not None:
            return words(ChangeRequest(method, found, query, body))
    return ""


def _object(what: Callable[[ChangeRequest], str]) -> Callable[[ChangeRequest], str]:
    verbs = {"PUT": "created", "POST": "changed", "DELETE": "deleted"}

    def words(change: ChangeRequest) -> str:
        return f"{what(change)} {verbs[change.method]}" if change.method in verbs else ""

    return words


def _partitions(change: ChangeRequest) -> str:
    if change.method == "DELETE":
        return f"partitioned topic {change.topic} deleted"
    verb = "created with" if change.method == "PUT" else "extended to"
    return f"topic {change.topic} {verb} {change.value} partitions"


def _reset(change: ChangeRequest) -> str:
    if not change["time"]:
        return f"{change.subscription} reset to a message"
    time = datetime.fromtimestamp(min(int(change["time"]) / 1000, _YEAR_9999), UTC)
    return f"{change.subscription} reset to {time:%Y-%m-%d %H:%M:%S} UTC"


_YEAR_9999: Final = 253_402_300_799


def _policy(subject: Callable[[ChangeRequest], str], known: Mapping[str, tuple[PolicyRow, PolicyEndpoint]]) -> Any:
    def words(change: ChangeRequest) -> str:
        found = known.get(change["policy"])
        if found is None:
            return ""
        row, place = found
        kind = change.query.get("backlogQuotaType", "") if row is BACKLOG_QUOTA else ""
        name = f"{row.name}{f':{kind}' if kind else ''} of {subject(change)}"
        value = change.query.get(place.query) if place.query else change.value
        if change.method == "DELETE" or value is None:
            return f"{name} removed"
        return f"{name} set to {_shown(row, value)}"

    return words


def _shown(row: PolicyRow, value: Any) -> str:
    """Return a value as commands show it, or as JSON if it does not have the shape of the policy."""
    try:
        text = row.shape.text(row.shape.read(value, row.name))
    except Exception:  # of any kind: the box refuses the value for it
        text = json.dumps(value)
    return text if len(text) <= VALUE_MAX else f"{text[:VALUE_MAX]}..."


_OF_NAMESPACES: Final = {row.namespace.path: (row, row.namespace) for row in (*ROWS, BACKLOG_QUOTA) if row.namespace}
_OF_TOPICS: Final = {row.topic.path: (row, row.topic) for row in (*ROWS, BACKLOG_QUOTA) if row.topic}
_NAMESPACE: Final = "/admin/v2/namespaces/{tenant}/{namespace}"
_TOPIC: Final = "/admin/v2/{domain}/{tenant}/{namespace}/{topic}"
_SUBSCRIPTION: Final = f"{_TOPIC}/subscription/{{subscription}}"


def _pattern(path: str) -> re.Pattern[str]:
    named = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path)
    return re.compile(named.replace("(?P<domain>[^/]+)", "(?P<domain>persistent|non-persistent)"))


_TABLE: Final = [
    (_pattern(path), words)
    for path, words in (
        ("/admin/v2/tenants/{tenant}", _object(lambda change: f"tenant {change['tenant']}")),
        (_NAMESPACE, _object(lambda change: f"namespace {change.namespace}")),
        (f"{_NAMESPACE}/{{policy}}", _policy(lambda change: change.namespace, _OF_NAMESPACES)),
        ("/pulsarbox/v1/policies/{tenant}/{namespace}/{policy}", _policy(lambda c: c.namespace, _OF_NAMESPACES)),
        (_TOPIC, _object(lambda change: f"topic {change.topic}")),
        (f"{_TOPIC}/partitions", _partitions),
        (f"{_TOPIC}/unload", lambda change: f"topic {change.topic} unloaded"),
        (f"{_TOPIC}/terminate", lambda change: f"topic {change.topic} terminated"),
        (f"{_TOPIC}/truncate", lambda change: f"topic {change.topic} truncated"),
        (f"{_TOPIC}/compaction", lambda change: f"compaction of {change.topic} requested"),
        (f"{_TOPIC}/{{policy}}", _policy(lambda change: change.topic, _OF_TOPICS)),
        (
            "/pulsarbox/v1/policies/{domain}/{tenant}/{namespace}/{topic}/{policy}",
            _policy(lambda change: change.topic, _OF_TOPICS),
        ),
        (_SUBSCRIPTION, _object(lambda change: change.subscription)),
        (f"{_SUBSCRIPTION}/resetcursor(?:/(?P<time>-?[0-9]{{1,15}}))?", _reset),
        (f"{_SUBSCRIPTION}/skip_all", lambda change: f"{change.subscription} cleared"),
        (
            f"{_SUBSCRIPTION}/skip/{{count}}",
            lambda change: f"{change['count']} of {change.subscription} skipped",
        ),
        (
            f"{_SUBSCRIPTION}/expireMessages/{{seconds}}",
            lambda change: f"messages of {change.subscription} expired that are older than {change['seconds']} s",
        ),
        (
            "/admin/v2/brokers/configuration/{setting}/{value}",
            lambda change: f"setting {change['setting']} set to {change['value'][:VALUE_MAX]}",
        ),
        ("/admin/v2/brokers/configuration/{setting}", lambda change: f"setting {change['setting']} reset"),
    )
]
