"""Execution of scenarios, and results without values that differ between any two brokers or runs."""

import contextlib
import json
import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.differences.themes.management.admin import complaint, plain, printed
from tests.java_tools.scripts import Script, split
from tests.java_tools.tools import Result, Tools
from tests.tools.box import admin

CLUSTER: Final = "standalone"
SECONDS: Final = 10.0
"""Time limit of a request before and after a scenario."""
_TENANT: Final = re.compile(r"@(?=[/\-\"' ;]|$)")
_ESCAPE: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
_HEX_BYTES: Final = re.compile(r"[0-9a-f]{2}(?: [0-9a-f]{2})+")
_FRACTION: Final = re.compile(r"(?<![\d.])\d+\.\d+(?:E-?\d+)?(?![\d.])")
_ENDS: Final = re.compile(r'"remote": ?"[^"]*", ?"local": ?"[^"]*"')
_ONE_PART: Final = re.compile(r"(tenants|properties|clusters|resourcegroups) list$|ns-isolation-policy list ")
_OF_PROCESS: Final = re.compile(
    r"brokers (get-internal-config|list-dynamic-config|get-all-dynamic-config|get-runtime-config)|broker-stats "
)
"""Commands whose output describes the process and all topics of a broker: compared by exit code only."""
_COUNTED: Final = re.compile(r"(leastSigBits|lowWaterMark|ongoingTxnSize)=\d+")
_SIZES: Final = {
    *("storageSize", "backlogSize", "bytesInCounter", "averageMsgSize"),
    *("leastSigBits", "lowWaterMark", "ongoingTxnSize"),
}
_COMMON: Final = ("@", "public", "pulsar", CLUSTER)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[ T][\d:.,]+(Z|[+-]\d\d:?\d\d)?")
_LOGGED: Final = re.compile(r"[A-Z][a-z]{2} \d{1,2}, \d{4} .*|(INFO|WARNING|SEVERE): .*")
"""Lines of java.util.logging, which depend on the machine."""
_KEPT_OF_PERF: Final = re.compile(r"(ERROR|WARN) |.*Aggregated throughput|.*wrong number|Usage|  [^\s\"]")
_COUNTS: Final = re.compile(r"\b\d+(?= (records|transaction))")
"""pulsar-perf ends after its number of messages, not with it."""


@dataclass(frozen=True)
class Target:
    """A broker, and the Java tools that are configured for it."""

    web_url: str
    tools: Tools
    files: Path
    secure: Tools | None = None
    """The same broker over TLS and with a token, if it has both."""


Seen = dict[str, dict[str, Any]]
"""Results by command line: exit code, output, and first line of the errors."""


def play(script: Script, target: Target, patience: float = 1.0) -> Seen:
    """Run a scenario in its own tenant and return the results. ``patience`` multiplies the pauses of `wait`."""
    seen: Seen = {}
    with _tenant(target.web_url, script.name) as tenant:
        for line in script.lines:
            if line.startswith("wait "):
                time.sleep(float(line.removeprefix("wait ")) * patience)
                continue
            seen[_numbered(line, seen)] = _ask(line, tenant, target)
    return seen


def _numbered(line: str, seen: Seen) -> str:
    name, count = line, 2
    while name in seen:
        name, count = f"{line} ({count})", count + 1
    return name


def _ask(line: str, tenant: str, target: Target) -> dict[str, Any]:
    tools, asked = target.tools, line
    if line.startswith("secure-"):
        assert target.secure is not None, "only boxes have secure tools"
        tools, asked = target.secure, line.replace("secure-", "pulsar-", 1)
    places = {"FILES": str(target.files), "HOME": str(tools.home)}
    asked = _TENANT.sub(tenant, asked)
    for name, place in places.items():
        asked = asked.replace(name, place)
    tool, words, given = split(asked)
    result = tools.run(tool, words, given)
    out, err = result.out.replace(tenant, "@"), result.err.replace(tenant, "@")
    for name, place in places.items():
        out, err = out.replace(place, name), err.replace(place, name)
    return observed(Result(result.exit, out, err), tool, words)


def observed(result: Result, tool: str, words: list[str]) -> dict[str, Any]:
    """Return a result in comparable form."""
    if tool == "admin" or tool == "pulsar-admin":
        return {"exit": result.exit, "out": _admin_output(result.out, words), "err": complaint(result.err)}
    lines = [_plain(each) for each in _ESCAPE.sub("", result.out).splitlines() if each.strip()]
    if tool == "pulsar-perf":
        lines = [_COUNTS.sub("number", each) for each in lines if _KEPT_OF_PERF.match(each)]
    errors = [each for each in _ESCAPE.sub("", result.err).splitlines() if not _LOGGED.match(each)]
    return {"exit": result.exit, "out": lines, "err": _plain(complaint("\n".join(errors)))}


def _admin_output(text: str, words: list[str]) -> Any:
    if _OF_PROCESS.match(" ".join(words)):
        return "output" if text.strip() else "no output"
    told = _without_sizes(printed(text, words))
    if not isinstance(told, list) or not all(isinstance(each, str) for each in told):
        return told
    lines = [_plain(each) for each in told]
    if _ONE_PART.match(" ".join(words)):  # a shared broker has objects of others
        return [each for each in lines if each.startswith(_COMMON)]
    return lines


def _without_sizes(told: Any) -> Any:
    """Return JSON without sizes and counters: two brokers give an entry different metadata, and have other clients."""
    if isinstance(told, dict):
        return {name: "number" if name in _SIZES else _without_sizes(each) for name, each in told.items()}
    return [_without_sizes(each) for each in told] if isinstance(told, list) else told


def _plain(line: str) -> str:
    """Return a line without addresses, times, rates and generated IDs."""
    line = _FRACTION.sub("rate", _COUNTED.sub(r"\1=number", line))
    return plain(_TIME.sub("time", _ENDS.sub("addresses", line)))


@contextlib.contextmanager
def _tenant(web_url: str, scenario: str) -> Iterator[str]:
    """Create a tenant and its namespace ``n``, and return the name; on exit, delete the tenant and all in it.

    The name is unique: Pulsar cannot always delete a namespace at once.
    """
    name = f"java-tools-{re.sub('[._]', '-', scenario)}-{''.join(random.choices('bcdfghjkmnpqrstvwxz', k=6))}"
    info = {"adminRoles": ["me"], "allowedClusters": [CLUSTER]}
    admin(web_url, "PUT", f"tenants/{name}", json.dumps(info), SECONDS)
    admin(web_url, "PUT", f"namespaces/{name}/n", seconds=SECONDS)
    try:
        yield name
    finally:
        _delete(web_url, name)


def _delete(web_url: str, name: str) -> None:
    for namespace in _listed(web_url, f"namespaces/{name}"):
        for topic in [
            each for kind in ("", "non-") for each in _listed(web_url, f"{kind}persistent/{namespace}/partitioned")
        ]:
            _tried(web_url, f"{topic.replace('://', '/')}/partitions?force=true")
        # Without mode=PERSISTENT, Pulsar sometimes does not respond.
        for topic in _listed(web_url, f"namespaces/{namespace}/topics?mode=PERSISTENT"):
            _tried(web_url, f"{topic.replace('://', '/')}?force=true")
        _tried(web_url, f"namespaces/{namespace}")
    _tried(web_url, f"tenants/{name}")


def _listed(web_url: str, path: str) -> list[str]:
    try:
        names: list[str] = json.loads(admin(web_url, "GET", path, seconds=SECONDS))
    except (OSError, ValueError):
        return []
    return names


def _tried(web_url: str, path: str) -> None:
    with contextlib.suppress(OSError):
        admin(web_url, "DELETE", path, seconds=SECONDS)
