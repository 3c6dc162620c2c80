"""Answers of the Admin API as facts: status, content type and shape of the body, without values of a single run."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

REASON: Final = "a reason"
"""Shape of the JSON object with which Pulsar refuses a request."""
_MEASURED: Final = re.compile(
    r"(?i).*(stats|load-report|message-?id|internal|backlogsize|backlog$|runtime|metrics|/terminate|leaderBroker"
    r"|/coordinators|schema|schemas|/\{version\}|topicHashPositions|bookies/all|examinemessage|/compaction$|analyzeBacklog"
    r"|broker-resource|slowTransactions|ownedNamespaces|/configuration$).*"
)
"""Paths whose answers are measurements: only the types of their values are compared."""
_LISTS: Final = re.compile(
    r"/admin/v2/(tenants|clusters|resourcegroups|brokers/configuration/values|namespaces/\{tenant\})"
)
"""Paths that list objects of several groups: only those of the group count."""
_OF_GROUP: Final = re.compile(r".*made|brokerShutdownTimeoutMs")
_KEYS: Final = re.compile(r".*(://|/|^0x).*|\d+|\(\d+,\d+\)")
"""Keys of JSON objects that are names of topics, namespaces or bundles, or numbers."""
ANY_LIST: Final = "a list"
"""Shape of an empty list of measurements, which equals that of any other list."""
NO_ANSWER: Final = "no answer"
"""Media type of a request that was not answered in time; its status is 0."""
_ADDRESS: Final = re.compile(r"(?:(?:pulsar|http)://)?\b(?:localhost|127\.0\.0\.1)(?::\d+)?\b")
_STATISTICS: Final = re.compile(r"/admin/v2/broker-stats/(topics|metrics|load-report)")
"""Statistics of all topics and of the process: what they contain depends on the other users of the broker. Their fields
are compared with recordings elsewhere.
"""
_SETTINGS: Final = "/admin/v2/brokers/configuration/runtime"
"""The settings of a box are not those of Pulsar; only their form is compared."""
_OWN: Final = "OWN"


class Answer(NamedTuple):
    """An answer, reduced to the parts that clients depend on."""

    status: int
    type: str
    """Media type; empty without one."""
    shape: Any
    """JSON value with types in place of measurements, or ``a page``, ``text``, ``bytes``, ``REASON`` or ''."""
    headers: tuple[str, ...] = ()
    """Names of the headers that lead elsewhere or ask for credentials."""

    def __str__(self) -> str:
        shape = json.dumps(self.shape, ensure_ascii=False, sort_keys=True)
        return " ".join(filter(None, (str(self.status), self.type, *self.headers, "" if self.shape == "" else shape)))


def answer_of(status: int, headers: Mapping[str, str], body: bytes, path: str, own: str) -> Answer:
    """Return an answer as facts. ``path`` is the template of the endpoint, ``own`` the tenant of the comparison."""
    media = headers.get("content-type", "").partition(";")[0].strip().lower()
    leading = tuple(name for name in ("location", "www-authenticate", "allow") if name in headers)
    return Answer(status, media, _shape(status, media, body, path, own), leading)


def _shape(status: int, media: str, body: bytes, path: str, own: str) -> Any:
    if not body:
        return ""
    if media == "text/html":
        return "a page"
    if media == "application/octet-stream":
        return "bytes"
    text = body.decode(errors="replace").replace(own, _OWN)
    try:
        value = json.loads(text)
    except ValueError:
        return "text" if status >= 400 or _MEASURED.fullmatch(path) else _ADDRESS.sub("url", text)
    if isinstance(value, dict) and set(value) == {"reason"}:
        return REASON
    if _LISTS.fullmatch(path):
        value = _of_group(value)
    if _STATISTICS.fullmatch(path):
        return "statistics"
    if path == _SETTINGS:
        value = {str(number): each for number, each in enumerate(value.values())}
    return measured(value) if _MEASURED.fullmatch(path) else plain(value)


def _of_group(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: each for key, each in value.items() if _OF_GROUP.fullmatch(key)}
    return [each for each in value if _OF_GROUP.fullmatch(str(each))]


def plain(value: Any) -> Any:
    """Return a value of the configuration: lists of names in order, addresses alike."""
    if isinstance(value, dict):
        return {_ADDRESS.sub("url", key): plain(each) for key, each in sorted(value.items())}
    if isinstance(value, list):
        return sorted((plain(each) for each in value), key=json.dumps)
    return _ADDRESS.sub("url", value) if isinstance(value, str) else value


def measured(value: Any) -> Any:
    """Return the types of a measurement; of a list those that occur."""
    if isinstance(value, dict):
        named = {key: measured(each) for key, each in sorted(value.items()) if not _KEYS.fullmatch(key)}
        other = [json.loads(each) for each in _kinds(value[key] for key in value.keys() - named)]
        return named | {"any": other} if other else named
    if isinstance(value, list):
        return [json.loads(each) for each in _kinds(value)] or ANY_LIST
    if value is None or isinstance(value, bool):
        return value if value is None else "bool"
    return "number" if isinstance(value, int | float) else "text"


def _kinds(values: Iterable[Any]) -> list[str]:
    return sorted({json.dumps(measured(each), sort_keys=True) for each in values})
