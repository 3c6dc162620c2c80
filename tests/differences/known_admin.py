"""Known differences of `pulsarbox admin` between a box and Pulsar; docs/COMPATIBILITY.md has this table.

`python -m tests.tools.generate_known` writes it there; a test verifies that the document is up to date.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from pulsarbox.server.http.admin_endpoints import endpoints


@dataclass(frozen=True)
class Known:
    """An intended difference."""

    steps: str
    """Regular expression of the commands, and of the differing field, if any."""
    what: str
    pulsar: str
    box: str
    why: str


TABLE: Final = (
    Known(
        r".*: stderr",
        "texts of errors",
        "name the general problem, or are empty",
        "continue with the specific problem and valid values",
        "users need to know how to fix it",
    ),
    Known(
        r"namespaces unload \S+ -b 0x1_0x2: stderr",
        "`namespaces unload` of an invalid bundle",
        "bundle not in the list",
        "describes the expected form",
        "shows the mistake",
    ),
    Known(
        r"namespaces clear-backlog \S+ --force -s none",
        "`namespaces clear-backlog -s` of a subscription that exists on no topic",
        '500 "Cursor not found"; nothing if no topic is loaded',
        "404, exit code 3; nothing if there are no topics",
        "500 means a failure of the server",
    ),
    Known(
        r"resourcegroups delete .*",
        "`resourcegroups delete` of a resource group that does not exist",
        "500",
        "404, exit code 3",
        "500 means a failure of the server",
    ),
    Known(
        r"topics info-internal \S+: version",
        "`topics info-internal`: `version`",
        "version of the metadata, incremented with each change",
        "1",
        "a box stores no separate topic metadata",
    ),
    Known(
        r"topics info-internal \S+",
        "`topics info-internal` of a topic that does not exist",
        "500",
        "404, exit code 3",
        "500 means a failure of the server",
    ),
    Known(
        r"topics get-message-id \S+ .*",
        "`topics get-message-id` of an empty topic",
        "`entryId` 0 of its ledger, or -1",
        "-1",
        "message 0 does not exist",
    ),
    Known(
        r"topics stats .* -sbs: subscriptions\.\w+\.backlogSize",
        "`topics stats -sbs`, which omits backlog sizes",
        "-1",
        "the size",
        "the size is known",
    ),
    Known(
        r"brokers update-dynamic-config .*",
        "`brokers update-dynamic-config` with an invalid value",
        "accepted and stored",
        "412, exit code 2",
        "reported values are in effect",
    ),
    Known(
        r"clusters get standalone: (migrated|brokerClient\w+)",
        "`clusters get`: connections between brokers",
        "key stores, a Java class",
        "omitted",
        "a box has no other brokers",
    ),
    Known(
        r"transactions transaction-metadata .*: stderr",
        "`transactions transaction-metadata` of a missing transaction",
        "not found",
        "reports that it has ended or never existed",
        "explains the possible causes",
    ),
    Known(
        r"transactions transaction-buffer-stats .*: stderr",
        "`transactions transaction-buffer-stats` of a missing topic",
        '"Topic not found NAME"',
        '"Topic NAME not found"',
        "as in other commands",
    ),
    Known(
        r"transactions pending-ack-stats .* none",
        "`transactions pending-ack-stats` of a missing subscription",
        "500",
        "404, exit code 3",
        "500 means a failure of the server",
    ),
    Known(
        r"transactions abort-transaction .*",
        "`transactions abort-transaction` of a missing transaction",
        "500",
        "404, exit code 3",
        "500 means a failure of the server",
    ),
    Known(
        r"transactions scale-transactionCoordinators .*",
        "`transactions scale-transactionCoordinators`",
        "rejects numbers that are not an increase",
        "accepts 1, the current number; rejects others",
        "a box has one coordinator",
    ),
    *(
        Known(
            rf"{group} .*",
            f"`{group}`, compared with a broker without a functions worker",
            "409",
            "empty lists; 404, exit code 3, for a name",
            "a box has none of them, and tools can list them",
        )
        for group in ("functions", "functions-worker", "sinks", "sources")
    ),
    Known(
        r"packages .*",
        "`packages`, compared with a broker without package management",
        "503",
        "packages are stored",
        "no service to enable",
    ),
    *(
        Known(
            rf"transactions {log}-internal-stats .*",
            f"`transactions {log}-internal-stats`",
            "the ledger of the log",
            without,
            "transactions are stored in the common log",
        )
        for log, without in (
            ("coordinator", "no ledgers"),
            ("pending-ack", "no ledgers"),
            ("buffer-snapshot", "404, exit code 3"),
        )
    ),
    Known(
        r"namespaces get-topic-positions .*",
        "`namespaces get-topic-positions` of a bundle without loaded topics",
        "412",
        "no positions",
        "a box owns all bundles",
    ),
    Known(
        r"resource-quotas get -n @/none .*",
        "`resource-quotas get` of a missing namespace",
        "412, about a bundle",
        "404, exit code 3",
        "it does not exist",
    ),
    Known(
        r"bookies list-bookies: bookies",
        "`bookies list-bookies`",
        "the bookies",
        "none",
        "a box stores ledgers itself",
    ),
)
"""The first match applies. Endpoints that the endpoint table rejects need no row."""

_REFUSALS: Final = frozenset(row.refusal for row in endpoints() if row.refusal)

_NOT_DELETED: Final = "exit 0: ['Failed to delete topic: "
"""Output of pulsar-admin itself; see docs/pulsar-admin.md."""


def reason_of(step: str, seen: tuple[Any, Any]) -> str:
    """Return the reason for a difference; empty if it is unknown."""
    refused = str(seen[0]).removeprefix("exit 1: ")
    if refused in _REFUSALS:
        return refused
    if step.startswith("topics delete ") and str(seen[1]).startswith(_NOT_DELETED) and "exit 0" not in str(seen[0]):
        return "a failed deletion is an error"
    for known in TABLE:
        if re.fullmatch(known.steps, re.sub(r" \(\d+\)(?=$|:)", "", step)):
            if known is TABLE[0] and not _goes_on(*seen):
                continue
            return known.why
    return ""


def _goes_on(a: Any, b: Any) -> bool:
    """Return whether the first text extends the second."""
    return isinstance(a, str) and isinstance(b, str) and (a.startswith(b) or b.startswith("HTTP "))
