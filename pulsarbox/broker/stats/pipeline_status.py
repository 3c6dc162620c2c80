"""Status of pipelines as reported by their runners: state, progress and last error. Kept in memory only.

A pipeline is a separate process with Spark. Its runner reports to the box every 2 seconds, and counts as gone after 10
seconds without a report.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final

from pulsarbox.clock import Now
from pulsarbox.errors import BadRequest, InvalidTopicName
from pulsarbox.names import parse_topic

GONE_SECONDS: Final = 10.0
"""Time without a report after which a running pipeline counts as gone."""
KEPT_SECONDS: Final = 3600.0
"""How long a pipeline is listed after its last report."""
PIPELINES_MAX: Final = 500
QUERIES_MAX: Final = 200
TEXTS_MAX: Final = 16 << 20
"""Approximate limit of the characters in all reports, to bound the memory."""
TEXT_MAX: Final = 1000
NAME_MAX: Final = 100
INPUTS_MAX: Final = 100
STAGES_MAX: Final = 20
"""Maximum number of stages of a micro-batch."""

STARTING: Final = "starting"
RUNNING: Final = "running"
STOPPED: Final = "stopped"
FAILED: Final = "failed"
GONE: Final = "gone"
TOLD_STATES: Final = (STARTING, RUNNING, STOPPED, FAILED)
_ALIVE: Final = (STARTING, RUNNING)

_OF_A_QUERY: Final[dict[str, type | tuple[type, ...]]] = {
    "query": str,
    "state": str,
    "inputs": list,
    "output": str,
    "lag": int,
    "rows": int,
    "rowsPerSecond": (int, float),
    "batch": int,
    "lastBatchMs": int,
    "stages": dict,
    "watermark": int,
    "stateRows": int,
    "stateBytes": int,
    "deadLetters": int,
    "lastError": str,
}
_OF_A_RUNNER: Final[dict[str, type | tuple[type, ...]]] = {
    "master": str,
    "host": str,
    "pid": int,
    "startedAt": int,
    "ui": str,
}
_NEEDED: Final = ("query", "state", "inputs", "output")
REGEX: Final = "regex:"


@dataclass(slots=True)
class QueryStatus:
    """One query of a pipeline, as last reported."""

    row: dict[str, Any]
    """The query as in the Admin API, without ``state``."""
    state: str
    at: float
    """When it was reported (monotonic seconds)."""

    def state_at(self, now: Now) -> str:
        """Return its state; GONE if a live query has not been reported for GONE_SECONDS."""
        return GONE if self.state in _ALIVE and now.monotonic - self.at > GONE_SECONDS else self.state

    def as_json(self, now: Now) -> dict[str, Any]:
        """Return the query for the Admin API."""
        return {**self.row, "state": self.state_at(now)}

    @property
    def namespaces(self) -> Iterator[str]:
        """Yield ``tenant/namespace`` of each input topic or pattern, and of the output if that is a topic."""
        for each in self.row["inputs"]:
            yield _namespace(each)
        if "://" in self.row["output"]:
            yield _namespace(self.row["output"])


def _namespace(text: str) -> str:
    if text.startswith(REGEX):
        parts = text.removeprefix(REGEX).split("/")
        return "/".join(parts[:2]) if len(parts) > 2 else "public/default"
    try:
        return parse_topic(text).namespace
    except InvalidTopicName:
        return ""


class PipelineStatuses:
    """All reported pipelines, by the reporting role and the pipeline's name."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], list[QueryStatus]] = {}
        """Least recently reported first."""
        self._sizes: dict[tuple[str, str], int] = {}
        """Approximate characters per report."""

    def report(self, role: str, name: str, body: dict[str, Any], now: Now) -> None:
        """Store a runner's report on all queries of its pipeline. ``role``: the runner's role. Raises BadRequest."""
        if not name.strip() or len(name) > NAME_MAX:
            raise BadRequest(f"The name of a pipeline must have 1 to {NAME_MAX} characters")
        queries = body.get("queries")
        if not isinstance(queries, list) or len(queries) > QUERIES_MAX:
            raise BadRequest(f"queries must be a list of at most {QUERIES_MAX} items")
        runner = _checked(body, _OF_A_RUNNER)
        told = []
        for each in queries:
            if not isinstance(each, dict):
                raise BadRequest("Each item of queries must be a JSON object")
            row = _query(each)
            state = row.pop("state")
            told.append(
                QueryStatus(
                    {"pipeline": name, **row, **runner, "reportedAt": now.wall, "by": role}, state, now.monotonic
                )
            )
        self._drop((role, name))
        self._told[role, name] = told
        self._sizes[role, name] = sum(len(str(each.row)) for each in told)
        self._forget(now)

    def forget(self, role: str, name: str) -> None:
        """Remove a pipeline from the list."""
        self._drop((role, name))

    def _drop(self, key: tuple[str, str]) -> None:
        self._told.pop(key, None)
        self._sizes.pop(key, None)

    def all(self, now: Now) -> Iterator[QueryStatus]:
        """Yield all queries that are listed."""
        self._forget(now)
        for queries in list(self._told.values()):
            yield from queries

    def _forget(self, now: Now) -> None:
        """Remove old pipelines; above the limits, also the oldest ones of the role with the largest reports."""
        for key, queries in list(self._told.items()):
            if not all(now.monotonic - each.at > KEPT_SECONDS for each in queries):
                break
            self._drop(key)
        while len(self._told) > PIPELINES_MAX or sum(self._sizes.values()) > TEXTS_MAX:
            by_role: Counter[str] = Counter()
            for (role, _), size in self._sizes.items():
                by_role[role] += size
            most = max(by_role, key=lambda role: by_role[role])
            self._drop(next(key for key in self._told if key[0] == most))


def _query(given: dict[str, Any]) -> dict[str, Any]:
    lacking = [name for name in _NEEDED if given.get(name) is None]
    if lacking:
        raise BadRequest(f"Missing fields of a query: {', '.join(lacking)}")
    row = _checked(given, _OF_A_QUERY)
    if row["state"] not in TOLD_STATES:
        raise BadRequest(f"state must be one of {', '.join(TOLD_STATES)}, not {row['state'][:40]!r}")
    inputs = row["inputs"]
    if len(inputs) > INPUTS_MAX or not all(isinstance(each, str) and len(each) <= TEXT_MAX for each in inputs):
        raise BadRequest(f"inputs must be at most {INPUTS_MAX} strings of at most {TEXT_MAX} characters")
    row["deadLetters"] = row["deadLetters"] or 0
    _check_stages(row["stages"])
    return row


def _check_stages(stages: dict[str, Any] | None) -> None:
    """Check the milliseconds of each stage of a micro-batch. Raises BadRequest."""
    if stages is None:
        return
    if len(stages) > STAGES_MAX or any(len(name) > NAME_MAX for name in stages):
        raise BadRequest(f"stages must be at most {STAGES_MAX}, with names of at most {NAME_MAX} characters")
    _checked(stages, dict.fromkeys(stages, int))


def _checked(given: dict[str, Any], fields: dict[str, type | tuple[type, ...]]) -> dict[str, Any]:
    """Return the known fields, null if missing, with texts cut to TEXT_MAX. Raises BadRequest."""
    found: dict[str, Any] = {}
    for name, kind in fields.items():
        value = given.get(name)
        is_wrong = value is not None and (not isinstance(value, kind) or isinstance(value, bool))
        if (
            is_wrong
            or (isinstance(value, float) and not isfinite(value))
            or (isinstance(value, int) and value >= 1 << 63)
        ):
            raise BadRequest(f"Invalid value of {name}: {str(value)[:40]!r}")
        found[name] = value[:TEXT_MAX] if isinstance(value, str) else value
    return found
