"""Known and intended differences; docs/COMPATIBILITY.md gives the reasons."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from tests.differences import known_admin
from tests.differences.broker import NO_STATS

_STATS = "stats of topics are not in this version"
_ADMIN = "this part of the Admin API is not in this version"
_COUNTS = "redelivery counts are kept with the cursor"
_LOST = "what a lost connection held counts as redelivered"
_WAITING = "a producer that waits for its topic and goes leaves the queue, and uses up no epoch"
_PASSED = "a producer with an epoch that has passed stays fenced out"
_TEXT = "the text names what is missing"
_ANSWER = "an answer in place of silence or of a closed connection"
_ENDS = "the end of a topic is told once to each consumer, whenever it comes to it"
_DRAINING = "keys that wait for their former consumer are not counted in this version"
_GROWS = "the ledger that grows goes too when nobody needs it"
_UNSUBSCRIBED = "messages that no subscription has covered are kept"
_AT_ONCE = "it can never work, and the client says so instead of trying again for half a minute"
_ONCE = "what an open transaction has acknowledged no other one may"
_NEVER = "a transaction that was never begun would hold up the topic's readers for good"
_ENDED = "who asks for one that has ended not long ago is told how"
_EVERYWHERE = "a transaction ends everywhere at once"
_NO_LOGS = "there are no markers, no low water marks, and no log of pending acknowledgements"
_STATUS = "the status says what is wrong"
_STANDBY = "at a seek the consumers that wait are closed too"


def _steps(scenario: str, reason: str, *steps: str) -> Iterator[tuple[str, str]]:
    return ((f"{scenario}: {step}", reason) for step in steps)


KNOWN: Final[dict[str, str]] = dict(
    (
        *_steps(
            "access.the_waiting_take_turns",
            "the request of a producer that is closed while it waits is answered",
            "one closes while it waits",
        ),
        *_steps(
            "access.the_waiting_take_turns", _WAITING, "the next holder's connection ends", "then an Exclusive one"
        ),
        *_steps("access.names_while_one_waits", _WAITING, "the holder goes", "and the next"),
        *_steps(
            "access.one_waits_and_is_fenced",
            _PASSED,
            "a waiting one comes back with the old epoch",
            "the one that fenced goes",
        ),
        *_steps("access.topic_stats", _STATS, "waitingPublishers, topicEpoch"),
        *_steps("keyshared.a_key_that_is_not_base64", "a key that is not base64 is taken as it stands", "two messages"),
        *_steps("keyshared.drains_in_order", _DRAINING, "draining", "draining hashes", "draining (2)"),
        *_steps("keyshared.drains_out_of_order", _DRAINING, "draining hashes"),
        *_steps("keyshared.one_leaves_with_unacked", _LOST, "beta's connection ends"),
        *_steps(
            "exclusive.names",
            "a topic is served without a lookup before, and the text says why not",
            "no such namespace",
            "no such domain",
        ),
        *_steps("exclusive.commands_of_unknown_consumers", _ANSWER, "stats"),
        ("failover.the_ring", _STATS),
        *_steps("shared.leaves_with_unacked", _LOST, "the connection ends"),
        *_steps(
            "limits.unacked_messages_of_a_subscription",
            "a subscription goes on at half of its limit, as a consumer does",
            "m4 is acknowledged",
            "m5 is acknowledged",
        ),
        *_steps("policies.topics_that_clients_make", _TEXT, "a producer where that is off"),
        *_steps("policies.subscriptions_that_clients_make", _TEXT, "a new one"),
        *_steps("policies.encryption", _AT_ONCE, "a producer that does not encrypt", "and sends something plain"),
        *_steps("bounds.encryption", _AT_ONCE, "a plain producer"),
        *_steps("bounds.creation", _AT_ONCE, "a subscription"),
        *_steps(
            "cluster.bookies",
            _TEXT,
            'POST bookies/racks-info/differences-1:3181?group=differences-2 {"rack": "r/s"}',
        ),
        *_steps(
            "cluster.bookies",
            "Pulsar has local policies of a namespace only once they were written or its bundles were looked up",
            "GET namespaces/differences-tenant/n/persistence/bookieAffinity",
        ),
        ("cluster.isolation_policies", "the text names the invalid member; Pulsar repeats the whole policy"),
        *_steps(
            "cluster.resource_quotas",
            _TEXT,
            *(f"{method} resource-quotas/differences-tenant/n/0x0_0x1" for method in ("GET", "POST", "DELETE")),
        ),
        *_steps(
            "cluster.bundles",
            "Pulsar lists an algorithm that fails with 500 in requests",
            "PUT namespaces/differences-tenant/n/0x80000000_0xc0000000/split?splitAlgorithmName=none",
        ),
        *_steps(
            "cluster.broker_internals",
            _TEXT,
            "GET broker-stats/broker-resource-availability/differences-tenant/n",
            "POST metadata/migration/start?target=zk:none",
        ),
        *_steps(
            "policies.namespaces_that_bring_theirs",
            "the text of the policy's own endpoint",
            'PUT namespaces/differences-tenant/m {"message_ttl_in_seconds": -7}',
        ),
        *_steps(
            "storedpolicies.offloads_of_topics",
            "the text says why",
            "GET persistent/differences-tenant/n/t/offload (2)",
            "GET persistent/differences-tenant/n/p-partition-0/offload (2)",
        ),
        *_steps(
            "storedpolicies.offloads_of_topics",
            "nothing is offloaded, and 500 means a failure of the server",
            "GET namespaces/differences-tenant/n/scanOffloadedLedgers",
        ),
        *_steps(
            "storedpolicies.replicated_subscriptions",
            _TEXT,
            "POST persistent/differences-tenant/n/p/subscription/none/replicatedSubscriptionStatus true",
        ),
        *_steps(
            "storedpolicies.namespaces_created_with_them",
            "the status says what is wrong",
            "DELETE namespaces/differences-tenant/m/removeOffloadPolicies (10)",
            "DELETE namespaces/differences-tenant/m/removeOffloadPolicies (11)",
        ),
        *_steps("producers.topics", _TEXT, "no such namespace", "no such tenant", "no such domain"),
        *_steps(
            "producers.lookups",
            _TEXT,
            "no such namespace",
            "no such tenant",
            "no such domain",
            "no name at all",
            "a partition that is not there",
        ),
        *_steps(
            "producers.refused_messages",
            _ADMIN,
            "after the topic was terminated",
            "a producer after that",
            "a consumer after that",
            "it has acknowledged everything",
        ),
        *_steps("positions.seeks_of_several", _STANDBY, "Failover: one of two seeks", "Failover: the other comes back"),
        *_steps("positions.last_message_ids", "the error says what is wrong", "a non-persistent topic"),
        *_steps(
            "redelivery.asked_for",
            "what is asked for goes out at once, so the second request finds it held again",
            "Shared: one twice in a row",
            "Key_Shared: one twice in a row",
        ),
        *_steps(
            "redelivery.disconnects",
            _COUNTS,
            "Shared: closed and back",
            "Shared: connection ended and back",
            "Key_Shared: closed and back",
            "Key_Shared: connection ended and back",
        ),
        *_steps(
            "batches.indexes",
            _COUNTS,
            "Shared: one left, after a close",
            "Shared: again (2)",
            "Key_Shared: one left, after a close",
            "Key_Shared: again (2)",
        ),
        ("batches.after_an_unload", _ADMIN),
        *_steps("batches.of_the_official_client", _STATS, "half of a batch is acknowledged"),
        *_steps("nonpersistent.names", "names are the same for topics of both kinds", "''", "' '", "'pulsar.dedup'"),
        *_steps("nonpersistent.durability", _STATS, "stats"),
        *_steps(
            "rest.subscriptions",
            "what the binary protocol refuses is refused here too",
            "PUT persistent/differences-tenant/n/t/subscription/%20",
            "GET persistent/differences-tenant/n/t/subscriptions",
        ),
        *_steps(
            "rest.subscriptions",
            "Pulsar answers 500, with a stack trace",
            *(f"POST persistent/differences-tenant/n/t/subscription/{name}/resetcursor" for name in ("s", "none")),
            *(f"GET persistent/differences-tenant/n/t/subscription/{name}/position/0" for name in ("s", "none")),
        ),
        *_steps(
            "rest.subscriptions",
            "Pulsar makes the subscription that is peeked at",
            "GET persistent/differences-tenant/n/t/subscriptions (2)",
        ),
        *_steps(
            "rest.partitioned_topics",
            "Pulsar makes it on some partitions and answers 500 where nobody has used the others yet",
            "PUT persistent/differences-tenant/n/p/subscription/s",
            "GET persistent/differences-tenant/n/p/partitioned-stats?perPartition=true",
        ),
        *_steps(
            "terminated.producers",
            "those that wait for a topic leave it when it ends",
            "a new producer",
            "an exclusive one",
            "one that waits",
            "one that fences",
        ),
        *((f"terminated.{kind}", _ENDS) for kind in ("exclusive", "failover", "shared", "key_shared")),
        *_steps("retention.without_a_subscription", _GROWS, "none"),
        *_steps("retention.without_a_subscription", _UNSUBSCRIBED, "as the broker has it: a time and no size"),
        *_steps("retention.all_acknowledged", _GROWS, "none", "none: a new subscription"),
        *_steps("inactive.partitions", "topics that are not in memory are deleted too", "left"),
        *_steps("inactive.messages_that_no_subscription_has_covered", _UNSUBSCRIBED, "left"),
        *_steps("expiry.delayed_ones", "what has expired is not delayed any more", "both have expired"),
        *_steps(
            "throttle.entries_or_messages",
            "it is precise from the first batch on",
            "preciseDispatcherFlowControl: messages",
        ),
        *_steps("throttle.resource_groups", "the dispatch rates of a resource group hold", "messages wait"),
        *_steps("terminated.caught_up", _ENDS, "skipped", "terminated again"),
        *_steps("terminated.an_empty_one", _ENDS, "permits"),
        *_steps("transactions.the_coordinator", _AT_ONCE, "a coordinator that is not there"),
        *(
            (f"transactions.acknowledged_up_to: {kind}: {step}", _ONCE)
            for kind in ("Exclusive", "Failover")
            for step in ("another m0", "the same up to m3", "one more up to m4, beside one of m2")
        ),
        *_steps(
            "transactions.what_was_never_begun", _NEVER, "an acknowledgement", "a message", "and one outside of any"
        ),
        *_steps("transactions.one_that_times_out", _ENDED, "publishing in it", "committing it", "aborting it"),
        *_steps("transactions.ended_on_topics", _EVERYWHERE, "abort: on the topic", "abort: on the subscription"),
        *_steps("transactions.shown_while_open", _ENDED, "aborted: transactionMetadata/ID", "abort it once more"),
        *(
            (f"transactions.shown_while_open: {when}: {what}", _NO_LOGS)
            for when in ("aborted", "up to m1")
            for what in (
                "transactionBufferStats/TOPIC",
                "transactionBufferStats/TOPIC?lowWaterMarks=true&segmentStats=true",
                "pendingAckStats/TOPIC/s",
                "pendingAckStats/TOPIC/s?lowWaterMarks=true",
            )
        ),
        *_steps(
            "transactions.shown_of_what_is_not_there",
            _STATUS,
            "transactionInPendingAckStats/TOPIC/none/NEVER",
            "pendingAckStats/TOPIC/none",
            "abort NEVER",
            "abort one of no coordinator",
        ),
        *_steps(
            "transactions.shown_of_what_is_not_there",
            "a topic that is gone is left out, not a reason to fail",
            "slow ones",
        ),
        *_steps("websocket.commands", _ANSWER, "nojson", "[]", '{"type":"permit"}'),
        *_steps(
            "websocket.handshakes",
            _STATUS,
            "producer?encryptionKeys=abc",
            "reader?receiverQueueSize=x",
            "v2/producer/persistent/public/default",
            "v2/producer/foo/public/default/a",
            "v3/consumer/s",
        ),
    )
)
"""Reasons by ``theme.scenario`` or ``theme.scenario: step``. A repeated step has its number appended."""

NOT_IMPLEMENTED: Final = 501
"""Status of the Admin API for endpoints that a version lacks."""
_LACKING: Final = json.dumps({NO_STATS: NOT_IMPLEMENTED})[1:-1]

_REASON: Final = "the reason goes on to say what is wrong, in JSON"
_PARSER: Final = "the words of another JSON parser"
_ACK_ANSWER: Final = re.compile(r"ACK \d+: (no answer|ACK_RESPONSE MetadataError 'Consumer not found')")


_WORDS: Final = re.compile(r"""(_RESPONSE \w+) (?:'[^']*'|\\"[^"]*\\")""")


def _same_refusal(a: Any, b: Any) -> bool:
    """Return whether two responses differ only in the text of an error, on a connection or in the Admin API."""
    if isinstance(a, dict) and isinstance(b, dict):
        one, other = (_WORDS.sub(r"\1", json.dumps(each)) for each in (a, b))
        return one == other
    return isinstance(a, list) and isinstance(b, list) and a[0] == b[0] >= 400


def _goes_on(a: Any, b: Any) -> bool:
    """Return whether two Admin API errors have the same status, and the first text extends the second."""
    if not (isinstance(a, list) and isinstance(b, list) and len(a) == len(b) == 2 and a[0] == b[0] >= 400):
        return False
    return b[1] in ("", "a page") or (isinstance(a[1], str) and a[1].startswith(str(b[1])))


def reason_of(scenario: str, step: str, seen: tuple[Any, Any]) -> str:
    """Return the reason for a difference; empty if it is unknown."""
    if scenario.startswith("admin."):
        return known_admin.reason_of(step, seen)
    if any(_LACKING in json.dumps(each) for each in seen):
        return _STATS
    if NOT_IMPLEMENTED in seen:
        return _ADMIN
    if scenario.startswith(("rest.", "cluster.", "storedpolicies.")) and _goes_on(*seen):
        return _REASON
    of_policies = scenario.startswith(("policies.", "storedpolicies."))
    if of_policies and all(isinstance(each, list) and each[0] == 400 for each in seen):
        if str(seen[1][1]).startswith(("Cannot deserialize", "Cannot construct")):
            return _PARSER
    if scenario.startswith("transactions.") and _same_refusal(*seen):
        return _TEXT
    a, b = (_ACK_ANSWER.sub("ACK: no answer", json.dumps(each)) for each in seen)
    if a == b:
        return _ANSWER
    return KNOWN.get(f"{scenario}: {step}") or KNOWN.get(scenario, "")
