"""Intended differences between the answers of a box and of Pulsar; docs/COMPATIBILITY.md has this table.

A difference that is not in the table fails the comparison, as does a row of the table that matches no difference.
"""

import re
from functools import cache
from typing import Final, NamedTuple

from tests.endpoints.steps import Step


class Known(NamedTuple):
    """An intended difference. The first five fields are regular expressions, the others the row of the document."""

    requests: str
    """Method and path."""
    states: str
    part: str
    box: str
    """The answer of the box, or the value of its field."""
    pulsar: str
    what: str
    of_pulsar: str
    of_box: str
    why: str


PASSING: Final = (r"\.progress",)
"""Parts that an answer has only for a moment, so that their rows may match nothing."""

_REASON: Final = 'application/json "a reason"'
_PARSED: Final = "clients parse errors as JSON"
_FAILURE: Final = "500 means a failure of the server"
_TYPO: Final = "a typo must not unset a policy"
_V3: Final = "(GET|POST) /v3/transactions/.*"

TABLE: Final = (
    Known(
        ".*", "missing domain", "type", f"404 {_REASON}", "404( text/html.*)?",
        "an unknown domain in a path", "404 with an HTML page or without a body", "404 with a reason", _PARSED,
    ),
    Known(
        ".*", r"malformed \w+", "type", f"404 {_REASON}", "404 text/html.*",
        "a word in place of a number", "404 with an HTML page", "404 with a reason", _PARSED,
    ),
    Known(
        ".*", "broken JSON|another type", "type", f"400 {_REASON}", "400 text/plain.*",
        "a malformed body", "400 with plain text", "400 with a reason", _PARSED,
    ),
    Known(
        ".*", "no body", "body", '"a reason"', '"text"',
        "a missing body", "400 with plain text", "400 with a reason", _PARSED,
    ),
    Known(
        ".*", "no body", "status", f"400 {_REASON}", "500 .*",
        "a missing body", "500", "400 with a reason", _FAILURE,
    ),
    Known(
        "PUT .*Strategy|POST .*subscriptionAuthMode", "another type", "status", f"400 {_REASON}", "204",
        "an unknown strategy or mode", "204, treated as no value", "400 with the valid words", _TYPO,
    ),
    Known(
        "DELETE .*", "broken JSON|another type", "status", "204", "400 text/plain.*",
        "a body of DELETE", "400 if it is malformed", "ignored", "it has no meaning",
    ),
    Known(
        _V3, "malformed .*|missing subscription|written.*", "status", f"404 {_REASON}", "500 .*",
        "`/v3/transactions/...` of a missing subscription or transaction, or with a malformed ID", "500", "404",
        _FAILURE,
    ),
    Known(
        "POST /v2/namespaces/{tenant}/{namespace}(/{bundle})?/clearBacklog/{subscription}", ".*", "status",
        f"404 {_REASON}|204", "(500|204).*",
        "`clearBacklog` of a subscription that exists on no topic", "500; 204 if no topic is loaded",
        "404; 204 if there are no topics", _FAILURE,
    ),
    Known(
        "POST /v2/namespaces/{tenant}/{namespace}/permissions/subscription/{subscription}", "missing .*", "status",
        f"404 {_REASON}", "500 .*",
        "permission on a subscription in a missing namespace", "500", "404", _FAILURE,
    ),
    Known(
        "DELETE /v2/namespaces/{tenant}/{namespace}/permissions/{subscription}/{role}", "before|removed again",
        "status", "204", "500 .*",
        "removal of a permission on a subscription that was never granted", "500", "204", _FAILURE,
    ),
    Known(
        "DELETE /v2/resourcegroups/{resourcegroup}", "before|removed again", "status", f"404 {_REASON}", "500 .*",
        "deletion of a missing resource group", "500", "404", _FAILURE,
    ),
    Known(
        "GET /v2/schemas/.*/schema/{version}", "malformed version", "status", f"400 {_REASON}", "500 .*",
        "a schema version that is not a number", "500", "400", _FAILURE,
    ),
    Known(
        "GET /v2/schemas/.*/(schema/{version}|metadata)", "missing topic|before|written", "status|type", "200.*",
        "(404|200).*",
        "deletion of a schema that does not exist", "takes a version number", "changes nothing",
        "the first schema is version 0",
    ),
    Known(
        "GET .*/backlogQuotaMap\\?applied=true", "written", r"\.message_age", ".*", "absent",
        "one type of backlog quota of a topic, `applied=true`", "hides the default of the other type",
        "both types are shown", "both are in effect",
    ),
    Known(
        "GET .*/compaction", "written", r"\.progress", ".*", "absent",
        "status of a compaction", "no progress", "with its progress", "an operator sees how long it takes",
    ),
    Known(
        "GET .*/getMessageIdByIndex.*", "malformed query", "status", f"412 {_REASON}", "404 text/html.*",
        "`getMessageIdByIndex` with a word as index", "404 with an HTML page", "412, as for every index",
        "it is not supported without broker entry metadata",
    ),
    Known(
        "GET .*/internal-info", "missing topic", "status", f"404 {_REASON}", "500 .*",
        "`internal-info` of a missing topic", "500", "404", _FAILURE,
    ),
    Known(
        "(PUT|DELETE) .*/properties.*", "missing .*", "type", f"404 {_REASON}", "404",
        "properties of a missing topic", "404 without a body", "404 with a reason", _PARSED,
    ),
    Known(
        "GET .*/{topic}/subscriptionTypesEnabled", "before", "status", r"200 application/json \[\]", "204",
        "subscription types of a topic without any policies", "204", "200 with an empty list",
        "as for a topic with other policies",
    ),
    Known(
        "GET .*/{topic}/stats", ".*", r"\.subscriptions\.s\.(backlogMessages|secondsToDrain|why)", ".*", "absent",
        "statistics of a subscription", "without `backlogMessages`, `secondsToDrain` and `why`", "with them",
        "they explain a backlog",
    ),
    Known(
        "[A-Z]+ /v2/(namespaces/.*/(migration|antiAffinity|entryFilters|offloadPolicies|removeOffloadPolicies|"
        "scanOffloadedLedgers|topicHashPositions)|resource-quotas/.*)",
        "missing (tenant|namespace)", "status", f"404 {_REASON}", "(200|204|400|409|412|500).*",
        "some policies and quotas of a missing namespace", "200, 204, 400, 409, 412 or 500", "404", "it does not exist",
    ),
    Known(
        "GET /v2/namespaces/.*/scanOffloadedLedgers", "before", "status", "200.*", "500 .*",
        "`scanOffloadedLedgers` without an offloader", "500", "200 with an empty result", _FAILURE,
    ),
    Known(
        "GET .*/{topic}/offload", "written", r"\.lastError", ".*", ".*",
        "status of an offload without an offloader", "a Java exception", "the reason", "the class does not exist here",
    ),
    Known(
        "GET .*/persistence/bookieAffinity|DELETE /v2/namespaces/.*/antiAffinity", "before", "status", "20[04].*",
        f"404 {_REASON}",
        "the bookie affinity group of a namespace without one; removal of an anti-affinity group that is not set",
        "404 until a topic of the namespace is loaded", "200 without a body; 204", "loading a topic changes no policy",
    ),
    Known(
        "GET .*/topicHashPositions", "before", "status", "200.*", f"412 {_REASON}",
        "`topicHashPositions` of a bundle without loaded topics", "412", "200 without positions",
        "a box owns all bundles",
    ),
    Known(
        "POST .*/migration", "written( again)?", "status", f"501 {_REASON}", "204",
        "migration of a namespace", "clients are redirected to another cluster", "501",
        "a box cannot redirect the clients of a namespace",
    ),
    Known(
        "GET /v3/transactions/coordinatorInternalStats/.*", "before", r"\.transactionLogStats\..*", "absent", ".*",
        "internal statistics of transaction logs", "a cursor, properties and creation times",
        "an empty managed ledger", "transactions are stored in the common log",
    ),
    Known(
        "GET /v3/transactions/pendingAckInternalStats/.*", "before", "status", "200.*", f"503 {_REASON}",
        "`pendingAckInternalStats` of a subscription that no transaction has used", "503",
        "200, an empty managed ledger", "transactions are stored in the common log",
    ),
    Known(
        "GET /v3/transactions/transactionBufferInternalStats/.*", "before", "status", f"404 {_REASON}", "200.*",
        "`transactionBufferInternalStats`", "the ledger of its snapshots", "404",
        "transactions are stored in the common log",
    ),
    Known(
        "GET /v2/broker-stats/destinations", "before", "status", "200.*", "404.*",
        "`broker-stats/destinations`", "documented, and 404", "as `topics`", "it is documented",
    ),
    Known(
        "GET /v[23]/functions/download", "before", "status", f"412 {_REASON}", "500 .*",
        "`functions/download` without a path", "500 with an HTML page", "412", _FAILURE,
    ),
    Known(
        "GET /v[23]/functions/.*/state/{key}", "missing .*|before", "status", f"404 {_REASON}", "503 .*",
        "the state of a missing function", "503 without a state store", "404", "the function does not exist",
    ),
    Known(
        "GET /v2/worker/cluster.*", "before", "body", ".*", ".*",
        "the workers that run functions", "the workers and their leader", "none", "a box runs no functions",
    ),
    Known(
        "GET /v2/worker/(leader/)?drain", "before", "status", "200.*", "500 .*",
        "status of a drain that was never started", "500 with an HTML page", "200 `NOT_RUN`", _FAILURE,
    ),
    Known(
        "GET /v3/(sinks?|sources?)/.*/configdefinition", "missing name|before", "status", f"404 {_REASON}", "500 .*",
        "the configuration of a missing connector", "500 with an HTML page", "404", _FAILURE,
    ),
    Known(
        "[A-Z]+ /v3/packages/.*", "missing .*|malformed .*|before|removed.*", "status", f"4(04|12) {_REASON}",
        "(415|500) .*",
        "packages that do not exist, or of a missing type, tenant or namespace", "500, or an HTML page", "404 or 412",
        _FAILURE,
    ),
    Known(
        "POST /v3/packages/.*", "malformed version|written.*", "type", f"415 {_REASON}", "415 text/html.*",
        "an upload of a package in another form than multipart", "415 with an HTML page", "415 with a reason", _PARSED,
    ),
    Known(
        "GET /v3/packages/.*", "before|written.*|removed.*", "body", r"\[\]", ".*",
        "lists of packages after requests that failed", "also packages that do not exist", "the packages that exist",
        "a failed request creates nothing",
    ),
)  # fmt: skip
"""The first match applies. A row about endpoints that a box does not support yet need not match."""


def known_for(step: Step, part: str, box: str, pulsar: str) -> Known | None:
    """Return the row for a difference; None if it is not intended."""
    return next((row for row in TABLE if _matches(row, step, part, box, pulsar)), None)


def is_about(row: Known, step: Step) -> bool:
    """Return whether a row may describe a difference in the answer to a request."""
    return bool(_pattern(row.requests).fullmatch(step.name) and _pattern(row.states).fullmatch(step.state))


def _matches(row: Known, step: Step, part: str, box: str, pulsar: str) -> bool:
    """Return whether the patterns of a row, in order, match a difference."""
    texts = (step.name, step.state, part, box, pulsar)
    return all(_pattern(pattern).fullmatch(text) for pattern, text in zip(row, texts, strict=False))


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.DOTALL)
