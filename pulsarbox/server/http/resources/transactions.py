"""Transactions, as in Pulsar's admin tools: the coordinator, slow transactions, transaction buffers and pending acks.

There is a single coordinator, 0, without a separate log, so Pulsar's statistics of such logs are missing.
"""

from typing import Any

from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.broker.transactions.transaction import ABORTED, OpenTransaction
from pulsarbox.errors import BadRequest, NotAcceptable, NotAllowed, NotFound, PulsarBoxError, TransactionNotFound
from pulsarbox.server.http.framework.request import DONE, DeferredAnswer, HttpRequest, HttpResponse, answer, long_of
from pulsarbox.server.http.framework.resource_lookup import stored_topic, subscription_of
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.storage.catalog import Catalog
from pulsarbox.storage.record import Position
from pulsarbox.storage.transactions import TxnId, aborted_of

SCALED = "A box has exactly one transaction coordinator, which handles every transaction"


def coordinators(call: HttpRequest) -> HttpResponse:
    """Return the only coordinator with its URL."""
    _check(call)
    return answer([{"id": 0, "brokerServiceUrl": call.broker.endpoints.broker_url}])


def coordinator_stats(call: HttpRequest) -> HttpResponse:
    """Return coordinator statistics: of one if ``coordinatorId`` is given, otherwise of each by number."""
    _check(call)
    transactions = call.broker.transactions
    stats = {
        "state": "Ready",
        "leastSigBits": transactions.last_id,
        "lowWaterMark": min((txn.id.least for txn in transactions), default=transactions.last_id + 1) - 1,
        "ongoingTxnSize": len(transactions.open),
        "recoverStartTime": call.broker.started,
        "recoverEndTime": call.broker.started,
    }
    return answer(stats if "coordinatorId" in call.query else {"0": stats})


def metadata(call: HttpRequest) -> HttpResponse:
    """Return one open or recently ended transaction."""
    _check(call)
    return answer(_shown(call, _transaction(call)))


def slow(call: HttpRequest) -> HttpResponse:
    """Return the transactions open for longer than ``timeout`` milliseconds, by id."""
    _check(call)
    before = call.now.wall - call.number("timeout")
    found = [txn for txn in call.broker.transactions if txn.opened <= before]
    return answer({str(txn.id): _shown(call, txn) for txn in found})


def abort(call: HttpRequest) -> DeferredAnswer:
    """Abort a transaction of any owner."""
    _check(call)
    later = DeferredAnswer()

    def ended(error: PulsarBoxError | None, now: Any) -> None:
        if error is None:
            later.complete(DONE)
        else:
            later.failed(error)

    call.broker.coordinator.end(_id_of(call), ABORTED, Superuser(), ended, call.now)
    return later


class Superuser:
    """An actor that may end any transaction: the route has checked the permission."""

    principal = None


def scale(call: HttpRequest) -> HttpResponse:
    """Accept one coordinator, which changes nothing; refuse other numbers."""
    _check(call)
    wanted = call.json()
    if not isinstance(wanted, int) or isinstance(wanted, bool):
        raise BadRequest("The body must be a number of coordinators")
    if wanted < 1:
        raise NotAcceptable("Number of transaction coordinators should be more than 0")
    if wanted != 1:
        raise NotAllowed(SCALED)
    return DONE


def in_buffer(call: HttpRequest) -> HttpResponse:
    """Return the position of a transaction's first message on a topic."""
    _check(call)
    topic, txn_id = stored_topic_of(call), _id_of(call)
    ended = call.broker.transactions.recent(txn_id)
    aborted = ended is not None and ended.state == ABORTED and str(topic.name) in ended.topics
    return answer(_in_buffer(topic, txn_id, aborted))


def in_pending_ack(call: HttpRequest) -> HttpResponse:
    """Return the position of a transaction's cumulative acknowledgement on a subscription."""
    _check(call)
    topic = stored_topic_of(call)
    subscription_of(topic, call.path["subscription"])
    return answer(_in_pending_ack(topic, call.path["subscription"], _id_of(call)))


def buffer(call: HttpRequest) -> HttpResponse:
    """Return the transaction buffer statistics of a topic."""
    _check(call)
    topic = stored_topic_of(call)
    stored = topic.stored
    found: dict[str, Any] = {
        "state": "Ready" if stored.open or stored.has_aborted else "NoSnapshot",
        "maxReadPosition": _text(topic.ledger.read_end),
        "lastSnapshotTimestamps": 0,
        "ongoingTxnSize": len(list(stored.open)),
        "recoverStartTime": call.broker.started,
        "recoverEndTime": call.broker.started,
        "totalAbortedTransactions": _aborted(topic, call.broker.catalog),
        "snapshotType": "Single",
    }
    return answer(found | ({"lowWaterMarks": {}} if call.flag("lowWaterMarks") else {}))


def pending_acks(call: HttpRequest) -> HttpResponse:
    """Return the pending ack statistics of a subscription."""
    _check(call)
    topic = stored_topic_of(call)
    subscription = subscription_of(topic, call.path["subscription"])
    on = call.broker.transactions.acks_on(topic.stored.topic_id, subscription.cursor.cursor_id)
    found: dict[str, Any] = {
        "state": "Ready" if on else "None",
        "ongoingTxnSize": len(on),
        "recoverStartTime": call.broker.started,
        "recoverEndTime": call.broker.started,
    }
    return answer(found | ({"lowWaterMarks": {}} if call.flag("lowWaterMarks") else {}))


def position(call: HttpRequest) -> HttpResponse:
    """Return whether an open transaction has acknowledged an entry, or its message ``batchIndex``."""
    _check(call)
    topic = stored_topic_of(call)
    cursor = subscription_of(topic, call.path["subscription"]).cursor
    at = Position(call.number("ledgerId"), call.number("entryId"))
    if at <= cursor.mark_delete:
        return answer({"state": "MarkDelete"})
    claims = cursor.claims
    if claims is not None:
        claim, through = claims.entries.get(at), claims.through
        index = long_of(call.query.get("batchIndex", ""))
        held = 0 if claim is None else claim.bits
        if index is not None and index >= 0:
            held = held >> index & 1  # not 1 << index: the client's number could make the integer fill the memory
        if held or (through is not None and at <= through[1]):
            return answer({"state": "PendingAck"})
    return answer({"state": "NotInPendingAck"})


# Helpers


def _check(call: HttpRequest) -> None:
    call.broker.transactions.check_coordinator(0)
    text = call.query.get("coordinatorId", call.path.get("mostSigBits", "0"))
    if not text.removeprefix("-").isdigit() or long_of(text) != 0:
        raise NotFound(f"Transaction coordinator not found! coordinator id : {text[:40]}")


def stored_topic_of(call: HttpRequest) -> PersistentTopic:
    """Return the topic of the path, which is persistent since the path has no domain. Raises NotFound, NotAllowed."""
    return stored_topic(call, "Transaction stats", "persistent")


def _id_of(call: HttpRequest) -> TxnId:
    return TxnId(call.number("mostSigBits"), call.number("leastSigBits"))


def _transaction(call: HttpRequest) -> OpenTransaction:
    txn_id, transactions = _id_of(call), call.broker.transactions
    found = transactions.open.get(txn_id) or transactions.recent(txn_id)
    if found is None:
        raise TransactionNotFound(f"Transaction {txn_id} not found: it has ended, or was never begun")
    return found


def _shown(call: HttpRequest, txn: OpenTransaction) -> dict[str, Any]:
    acked: dict[str, dict[str, Any]] = {}
    for (name, subscription), shown in txn.subscriptions.items():
        acked.setdefault(shown, {})[subscription] = _in_pending_ack(_topic(call, name), subscription, txn.id)
    return {
        "txnId": str(txn.id),
        "status": txn.state,
        "openTimestamp": txn.opened,
        "timeoutAt": txn.timeout,
        "producedPartitions": {
            shown: _in_buffer(_topic(call, name), txn.id, txn.state == ABORTED) for name, shown in txn.topics.items()
        },
        "ackedPartitions": acked,
    } | ({} if txn.owner is None else {"owner": txn.owner})


def _topic(call: HttpRequest, name: str) -> PersistentTopic | None:
    return call.topics.persistent(name, call.now)


def _in_buffer(topic: PersistentTopic | None, txn_id: TxnId, aborted: bool) -> dict[str, Any]:
    runs = () if topic is None else topic.stored.open.runs(txn_id)
    return ({"startPosition": _text(Position(*runs[0][:2]))} if runs else {}) | {"aborted": aborted}


def _in_pending_ack(topic: PersistentTopic | None, subscription: str, txn_id: TxnId) -> dict[str, Any]:
    found = None if topic is None else topic.subscriptions.get(subscription)
    claims = None if found is None else found.cursor.claims
    through = None if claims is None else claims.through
    if through is None or through[0] != txn_id:
        return {}
    return {"cumulativeAckPosition": _text(through[1])}


def _aborted(topic: PersistentTopic, catalog: Catalog) -> int:
    """Return the number of runs of aborted entries that are still stored."""
    if not topic.stored.has_aborted:
        return 0
    return sum(1 for _ in aborted_of(catalog, topic.stored.topic_id))


def _text(at: Position) -> str:
    return f"{at.ledger_id}:{at.entry_id}"


_V3 = "/admin/v3/transactions"
_TOPIC = "{tenant}/{namespace}/{topic}"
_SUBSCRIPTION = _TOPIC + "/{subscription}"
_TXN = "{mostSigBits}/{leastSigBits}"

# As in Pulsar, any authenticated client may read statistics: clients check their own transactions.
ROUTES = (
    HttpRoute("GET", f"{_V3}/coordinators", Permission.NAMED, coordinators),
    HttpRoute("GET", f"{_V3}/coordinatorStats", Permission.NAMED, coordinator_stats),
    HttpRoute("GET", f"{_V3}/transactionMetadata/{_TXN}", Permission.NAMED, metadata),
    HttpRoute("GET", f"{_V3}/slowTransactions/{{timeout}}", Permission.NAMED, slow),
    HttpRoute("POST", f"{_V3}/abortTransaction/{_TXN}", Permission.SUPERUSER, abort),
    HttpRoute("POST", f"{_V3}/transactionCoordinator/replicas", Permission.SUPERUSER, scale),
    HttpRoute("GET", f"{_V3}/transactionInBufferStats/{_TOPIC}/{_TXN}", Permission.NAMED, in_buffer),
    HttpRoute("GET", f"{_V3}/transactionInPendingAckStats/{_SUBSCRIPTION}/{_TXN}", Permission.NAMED, in_pending_ack),
    HttpRoute("GET", f"{_V3}/transactionBufferStats/{_TOPIC}", Permission.NAMED, buffer),
    HttpRoute("GET", f"{_V3}/pendingAckStats/{_SUBSCRIPTION}", Permission.NAMED, pending_acks),
    HttpRoute(
        "GET",
        f"{_V3}/positionStatsInPendingAck/{_SUBSCRIPTION}/{{ledgerId}}/{{entryId}}",
        Permission.NAMED,
        position,
    ),
)
