"""Requests that change something, in the words of operators: "retention of acme/prod set to 7d"."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final
from urllib.parse import unquote

from pulsarbox.names import short_topic
from pulsarbox.protocol.policies.row import PolicyEndpoint, PolicyRow
from pulsarbox.protocol.policies.table import BACKLOG_QUOTA, ROWS
from pulsarbox.server.http.framework.change_phrases import OWN, PHRASES, VERBS

VALUE_MAX: Final = 200
"""Characters of a value in an event."""
_BODY_MAX: Final = 16 * 1024
"""Bytes of a body that is put in words. A policy is smaller, and parsing a larger one takes too long."""
_DOMAINS: Final = ("persistent", "non-persistent")


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
        return short_topic(f"{self['domain']}://{self.namespace}/{self['topic']}")

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
    """Return what a request asks for, such as ``topic orders created``."""
    if len(body) <= _BODY_MAX:
        for pattern, words in _TABLE:
            found = pattern.fullmatch(path)
            if found is not None:
                said = words(ChangeRequest(method, found, query, body))
                if said:
                    return said
                break
    return _by_operation(method, path)


def change_subject(path: str) -> str:
    """Return the object of a request: a topic with its full name, a namespace, ``tenant acme``, ``setting ttl``."""
    parts = _parts(path)
    if not parts:
        return "box"
    kind, names = parts[0], parts[1:]
    if kind in ("schemas", "ledgers"):
        kind = "persistent"
    elif kind in ("compaction", "dead-letter-policy") and names[:1] and names[0] in _DOMAINS:
        kind, names = names[0], names[1:]
    elif kind == "policies":
        kind, names = (names[0], names[1:]) if names and names[0] in _DOMAINS else ("namespaces", names)
    if kind in _DOMAINS:
        return f"{kind}://{'/'.join(names[:3])}" if len(names) > 2 else "/".join(names) or "box"
    if kind == "namespaces":
        return "/".join(names[:2]) or "box"
    if kind == "brokers" and names[:1] == ["configuration"] and len(names) > 1:
        return f"setting {names[1]}"
    if kind in _NOUNS and names:
        return f"{_NOUNS[kind]} {names[0]}"
    if kind in _IN_NAMESPACES and len(names) > 2:
        return f"{_IN_NAMESPACES[kind]} {'/'.join(names[:3])}"
    return " ".join([_spaced(kind), *names[:3]])


def refusal_words(words: str) -> str:
    """Return a request as a noun: ``deletion of topic orders`` for ``topic orders deleted``."""
    for pattern, noun in _REFUSALS:
        found = pattern.fullmatch(words)
        if found is not None:
            return found.expand(noun)
    return f"the request '{words}'"


_NOUNS: Final = {
    "tenants": "tenant",
    "clusters": "cluster",
    "resourcegroups": "resource group",
    "pipelines": "pipeline",
    "clients": "client",
    "plugins": "plugin",
    "jobs": "job",
    "faults": "fault",
}
"""Objects by the first word of their path."""
_IN_NAMESPACES: Final = {
    "functions": "function",
    **dict.fromkeys(("sink", "sinks"), "sink"),
    **dict.fromkeys(("source", "sources"), "source"),
}
"""Objects of namespaces by the first word of their path."""
_REFUSALS: Final = [
    (re.compile(pattern), noun)
    for pattern, noun in (
        (r"(.+) deleted", r"deletion of \1"),
        (r"(.+) created( with .+)?", r"creation of \1\2"),
        (r"(.+) changed", r"change of \1"),
        (r"(.+) removed", r"removal of \1"),
        (r"(.+) set (to .+)", r"change of \1 \2"),
        (r"(.+) reset (to .+)", r"reset of \1 \2"),
        (r"(.+) extended (to .+)", r"extension of \1 \2"),
        (r"(.+) terminated", r"termination of \1"),
        (r"(.+) truncated", r"truncation of \1"),
        (r"(.+) requested", r"\1"),
        *((rf"(.+) {participle}", rf"{noun} of \1") for participle, noun in dict(VERBS.values()).items()),
    )
]


def _parts(path: str) -> list[str]:
    """Return the names of a path after its version, decoded."""
    parts = [unquote(each) for each in path.split("/") if each]
    if parts[:1] in (["admin"], ["pulsarbox"]):
        parts = parts[1:]
        if parts and re.fullmatch(r"v[0-9]", parts[0]):
            parts = parts[1:]
    return parts


def _spaced(name: str) -> str:
    """Return the words of a name in camel case or with hyphens."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: f" {found[1].lower()}", name).replace("-", " ")


def _by_operation(method: str, path: str) -> str:
    """Return the phrase of an operation, or its name in words with its object: ``shadow topics of orders set``."""
    subject = short_topic(change_subject(path))
    parts = path.split("/")
    for template, operation, phrase in _operations().get((method, len(parts)), ()):
        if all(map(_fits, template, parts)):
            if not phrase:
                return _in_words(operation, subject)
            names = {name[1:-1]: unquote(part) for name, part in zip(template, parts, strict=True) if name[:1] == "{"}
            return phrase.format_map({**names, "subject": subject})
    verbs = {"PUT": "set", "POST": "changed", "DELETE": "removed"}
    rest = [_spaced(each) for each in _parts(path)]
    return f"{' '.join(rest) or 'box'} {verbs.get(method, 'requested')}"


@cache
def _operations() -> Mapping[tuple[str, int], list[tuple[list[str], str, str]]]:
    """Return the parts of paths with their operations and phrases, by method and number of parts.

    The first change calls this on the event loop, where compiling a pattern for each of them would take too long.
    """
    from pulsarbox.server.http.admin_endpoints import endpoints

    pulsars = [(each.method, each.path, each.operation, PHRASES.get(each.operation, "")) for each in endpoints()]
    found: dict[tuple[str, int], list[tuple[list[str], str, str]]] = {}
    for method, path, operation, phrase in (*pulsars, *((method, path, "", phrase) for method, path, phrase in OWN)):
        template = path.split("/")
        found.setdefault((method, len(template)), []).append((template, operation, phrase))
    return found


def _in_words(operation: str, subject: str) -> str:
    """Return an operation in words: ``deleteCluster`` of ``cluster other`` is ``cluster other deleted``."""
    verb, _, what = _spaced(operation).partition(" ")
    participle, _ = VERBS.get(verb, ("", ""))
    if not participle:
        return f"{_spaced(operation)} of {subject} requested"
    if subject.startswith(f"{what} "):
        return f"{subject} {participle}"
    if what in _KINDS:
        return f"{what} {subject} {participle}"
    for kind in _KINDS:
        what = what.removeprefix(f"{kind} ")
    return f"{what} of {subject} {participle}"


_KINDS: Final = ("cluster", "namespace", "topic")
"""Kinds of objects in the names of operations, redundant beside the name of the object."""


def _fits(template: str, part: str) -> bool:
    if template == "{domain}":
        return part in _DOMAINS
    return bool(part) if template.startswith("{") else part == template


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


def _skip(change: ChangeRequest) -> str:
    """Return the request in entries, which it counts: a batch is one. There may be fewer."""
    count = change["count"][:VALUE_MAX]
    return f"up to {count} {'entry' if count == '1' else 'entries'} of {change.subscription} skipped"


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
    return (text or "none") if len(text) <= VALUE_MAX else f"{text[:VALUE_MAX]}..."


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
        (f"{_SUBSCRIPTION}/skip/{{count}}", _skip),
        (
            f"{_SUBSCRIPTION}/expireMessages/{{seconds}}",
            lambda change: f"messages of {change.subscription} older than {change['seconds']} s expired",
        ),
        (
            "/admin/v2/brokers/configuration/{setting}/{value}",
            lambda change: f"setting {change['setting']} set to {change['value'][:VALUE_MAX]}",
        ),
        ("/admin/v2/brokers/configuration/{setting}", lambda change: f"setting {change['setting']} reset"),
    )
]
