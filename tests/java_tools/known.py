"""Known differences between a box and Pulsar in the results of the Java tools, with their reasons."""

import re
from dataclasses import dataclass
from typing import Any, Final

from pulsarbox.server.http.admin_endpoints import endpoints
from tests.differences import known_admin


@dataclass(frozen=True)
class Known:
    """A known difference."""

    steps: str
    """Regular expression of the command line, and of the differing field, if any."""
    why: str


TEXT: Final = "texts of errors continue with the specific problem and valid values"

TABLE: Final = (
    Known(
        r"admin topicPolicies get-subscription-types-enabled .*: stdout",
        "an empty list, also before the first policy of a topic is set",
    ),
    Known(
        r"admin topicPolicies get-backlog-quota .* -ap: stdout",
        "the quotas in effect, each type separately",
    ),
    Known(
        r"admin namespaces policies .*: dispatcherPauseOnAckStatePersistentEnabled",
        "a policy that was removed is not shown",
    ),
    Known(
        r"admin namespaces policies .*: clusterDispatchRate.*",
        "an old name of topicDispatchRate, which is shown",
    ),
    Known(
        r"admin topics stats-internal .* -m: ledgers", "a box has no BookKeeper, and its ledgers have no metadata there"
    ),
    Known(r"admin topics get-backlog-size .*: stdout", "the size of stored entries, whose metadata differ"),
    Known(r"admin topics list .*: stdout", "partitions of non-persistent topics exist before their first client"),
    Known(
        r"admin topics stats .*: subscriptions\.\w+\.(isR|r)eplicated", "a single cluster replicates no subscriptions"
    ),
    Known(
        r"admin topics expire-messages-all-subscriptions .*: stderr",
        "the subscriptions that could not be expired are named in another order",
    ),
    Known(r"admin brokers namespaces .*: stderr", TEXT),
    Known(r"client produce @/n/avro .*: stdout", TEXT),
    Known(r"(pulsar-)?(client|perf) \w+ @/none/t .*: stdout", TEXT),
    Known(
        r"admin namespaces policies .*: (replicatorDispatchRate|offload_policies).*",
        "policies for other clusters and for offloading are refused",
    ),
    Known(r"admin namespaces get-dispatcher-pause-on-ack-state-persistent .*: stderr", TEXT),
    Known(r"admin topics stats .*msgOutCounter", "clients prefetch more or fewer messages before they leave"),
    Known(r"admin topicPolicies get-dispatcher-pause.*: \w+", "pulsar-admin 4.0.8 prints the state of a Java future"),
    Known(
        r"admin topics stats .*: oldestBacklogMessage(AgeSeconds|SubscriptionName)",
        "shown once the backlog has been checked, at times of each broker's own",
    ),
    Known(r"admin topics stats .*: msgChunkPublished", "the statistics count chunks, also of producers that left"),
    Known(r"admin schemas metadata .*: (index|info.*)", "a box stores schemas as rows, which have no entry IDs"),
    Known(r"admin schemas compatibility .*", "an incompatible schema is a result, not a failure of the server"),
    Known(
        r"admin (functions|functions-worker|sources|sinks|packages) .*",
        "Pulsar ran without a function worker and package management; a box has no functions, and stores packages",
    ),
    Known(r"admin namespaces split-bundle .* -b LARGEST", "no bundle is the largest of a namespace without topics"),
    Known(r"admin namespaces get-topic-positions .*", "a box owns all bundles, also those without loaded topics"),
    Known(r"admin namespaces update-migration-state .* --migrated", "a box cannot redirect the clients of a namespace"),
    Known(
        r"admin namespaces get-bookie-affinity-group @/n.*",
        "a namespace without local policies has no group either: loading a topic changes no policy",
    ),
    Known(r"admin namespaces get-anti-affinity-group @/none.*", "the namespace does not exist"),
    Known(r"admin bookies list-bookies: bookies", "a box has no bookies"),
    Known(
        r"admin transactions (coordinator|pending-ack|buffer-snapshot)-internal-stats .*",
        "transactions are stored in the common log",
    ),
    Known(
        r"admin topics stats-internal .*\.properties\.pulsar\.replicated\.subscription",
        "the flag of a replicated subscription is shown from its creation",
    ),
)

_UNSPECIFIC: Final = re.compile(r"HTTP \d{3} \{|--- An unexpected error occurred in the server ---")
"""Errors of Pulsar that do not name the problem."""

_REFUSALS: Final = frozenset(row.refusal for row in endpoints() if row.refusal)


def reason_of(step: str, seen: tuple[Any, Any]) -> str:
    """Return the reason for a difference; empty if it is unknown."""
    refused = str(seen[0]).removeprefix("exit 1: ")
    if refused in _REFUSALS:
        return refused
    if step.endswith((": stderr", ": stdout")) and _continues(*map(str, seen)):
        return TEXT
    if step.endswith(": stderr") and _UNSPECIFIC.match(str(seen[1])):
        return TEXT
    plain = step.removeprefix("admin ").replace(" (2)", "")
    known = [*((row.steps, row.why) for row in TABLE), *((row.steps, row.why) for row in known_admin.TABLE[1:])]
    return next((why for steps, why in known if re.fullmatch(steps, step) or re.fullmatch(steps, plain)), "")


def _continues(a: str, b: str) -> bool:
    """Return whether the first text extends the second: `Clusters do not exist: ...`."""
    return bool(b) and a.startswith(b)
