"""In what `pulsarbox admin` shows of a box otherwise than of a Pulsar: docs/COMPATIBILITY.md has this table.

`python -m tests.tools.generate_known` writes it there; a test holds that the document is current.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from pulsarbox.server.http.admin_endpoints import endpoints


@dataclass(frozen=True)
class Known:
    """A difference that is wanted."""

    steps: str
    """A regular expression of the commands, and of the field where it is one that differs."""
    what: str
    pulsar: str
    box: str
    why: str


TABLE: Final = (
    Known(
        r".*: stderr",
        "texts of errors",
        "name what is wrong in general, or say nothing",
        "go on: with what is wrong with this name, and what there is",
        "who reads them has to mend it",
    ),
    Known(
        r"namespaces unload \S+ -b 0x1_0x2: stderr",
        "`namespaces unload` of a bundle that is none",
        "not in the list",
        "says what one looks like",
        "it was misspelt",
    ),
    Known(
        r"namespaces clear-backlog \S+ --force -s none",
        "`namespaces clear-backlog -s` of a subscription that no topic has",
        '500 "Cursor not found"; nothing where no topic is loaded',
        "404, exit code 3",
        "500 is no answer",
    ),
    Known(
        r"topics info-internal \S+: version",
        "`topics info-internal`: `version`",
        "of the metadata, counted up with each change",
        "1",
        "the metadata of a topic is not kept by itself",
    ),
    Known(
        r"topics info-internal \S+",
        "`topics info-internal` of a topic that does not exist",
        "500",
        "404, exit code 3",
        "500 is no answer",
    ),
    Known(
        r"topics get-message-id \S+ .*",
        "`topics get-message-id` of a topic in which nothing is",
        "`entryId` 0 of its ledger, or -1",
        "-1",
        "there is no message 0",
    ),
    Known(
        r"topics stats .* -sbs: subscriptions\.\w+\.backlogSize",
        "`topics stats -sbs`, which turns the sizes of backlogs off",
        "-1",
        "the size",
        "it is known",
    ),
    Known(
        r"brokers update-dynamic-config .*",
        "`brokers update-dynamic-config` with a value that the setting cannot have",
        "taken, and kept",
        "412, exit code 2",
        "what is said to be in force is in force",
    ),
    Known(
        r"clusters get standalone: (migrated|brokerClient\w+)",
        "`clusters get`: how brokers talk to each other",
        "key stores, a Java class",
        "left out",
        "nobody else is there to be talked to",
    ),
    Known(
        r"transactions transaction-metadata .*: stderr",
        "`transactions transaction-metadata` of one that is not there",
        "not found",
        "that it has ended, or was never begun",
        "who reads that knows what may have happened",
    ),
    Known(
        r"transactions transaction-buffer-stats .*: stderr",
        "`transactions transaction-buffer-stats` of a topic that is not there",
        '"Topic not found NAME"',
        '"Topic NAME not found"',
        "as of every other topic",
    ),
    Known(
        r"transactions pending-ack-stats .* none",
        "`transactions pending-ack-stats` of a subscription that is not there",
        "500",
        "404, exit code 3",
        "500 is no answer",
    ),
    Known(
        r"transactions abort-transaction .*",
        "`transactions abort-transaction` of one that is not there",
        "500",
        "404, exit code 3",
        "500 is no answer",
    ),
    Known(
        r"transactions scale-transactionCoordinators .*",
        "`transactions scale-transactionCoordinators`",
        "refuses what is not more than there are",
        "takes 1, which is what there is; refuses the rest",
        "a box has one coordinator",
    ),
)
"""The first that fits counts. What a box refuses as its table of endpoints says needs no row."""

_REFUSALS: Final = frozenset(row.refusal for row in endpoints() if row.refusal)

_NOT_DELETED: Final = "exit 0: ['Failed to delete topic: "
"""What pulsar-admin itself makes of it: docs/pulsar-admin.md has that."""


def reason_of(step: str, seen: tuple[Any, Any]) -> str:
    """Why a difference is wanted; empty if it is not known."""
    refused = str(seen[0]).removeprefix("exit 1: ")
    if refused in _REFUSALS:
        return refused
    if step.startswith("topics delete ") and str(seen[1]).startswith(_NOT_DELETED) and "exit 0" not in str(seen[0]):
        return "that a topic could not be deleted is an error"
    for known in TABLE:
        if re.fullmatch(known.steps, re.sub(r" \(\d+\)(?=$|:)", "", step)):
            if known is TABLE[0] and not _goes_on(*seen):
                continue
            return known.why
    return ""


def _goes_on(a: Any, b: Any) -> bool:
    """Whether the first says all that the second does, and more."""
    return isinstance(a, str) and isinstance(b, str) and (a.startswith(b) or b.startswith("HTTP "))
