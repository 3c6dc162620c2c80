"""Internal statistics of the logs in which Pulsar stores transactions.

A box has no such logs: transactions are records of the common journal. Statistics of a log are therefore those of a
managed ledger without entries that was never opened, under the name that it has in Pulsar.
"""

from typing import Any, Final

from pulsarbox.errors import NotFound
from pulsarbox.server.http.framework.request import HttpRequest, HttpResponse, answer
from pulsarbox.server.http.framework.resource_lookup import subscription_of
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.http.resources.transactions import stored_topic_of

_NO_LOG: Final[dict[str, Any]] = {
    "entriesAddedCounter": 0,
    "numberOfEntries": 0,
    "totalSize": 0,
    "currentLedgerEntries": 0,
    "currentLedgerSize": 0,
    "waitingCursorsCount": 0,
    "pendingAddEntriesCount": 0,
    "lastConfirmedEntry": "-1:-1",
    "state": "None",
    "ledgers": [],
    "cursors": {},
    "properties": {},
}


def coordinator(call: HttpRequest) -> HttpResponse:
    """Return the statistics of the coordinator's log."""
    number = call.number("coordinatorId")
    transactions = call.broker.transactions
    transactions.check_coordinator(0)
    if number != 0:
        raise NotFound(f"Transaction coordinator not found! coordinator id : {number}")
    return answer({"transactionLogStats": _log("pulsar/system/persistent/__transaction_log_0")})


def pending_ack(call: HttpRequest) -> HttpResponse:
    """Return the statistics of the log of pending acknowledgements of a subscription."""
    call.broker.transactions.check_coordinator(0)
    name = stored_topic_of(call).name
    subscription = call.path["subscription"]
    subscription_of(stored_topic_of(call), subscription)
    path = f"{name.namespace}/persistent/{name.local}-{subscription}__transaction_pending_ack"
    return answer({"pendingAckLogStats": _log(path)})


def buffer(call: HttpRequest) -> HttpResponse:
    """Refuse: a transaction buffer of a box has no snapshot. Pulsar answers so for buffers without one."""
    stored_topic_of(call)
    raise NotFound("Transaction buffer Snapshot for the topic does not exist")


def _log(name: str) -> dict[str, Any]:
    return {"managedLedgerName": name, "managedLedgerInternalStats": _NO_LOG}


_V3: Final = "/admin/v3/transactions"
_TOPIC: Final = "{tenant}/{namespace}/{topic}"

# As in Pulsar, any authenticated client may read them.
ROUTES = (
    HttpRoute("GET", f"{_V3}/coordinatorInternalStats/{{coordinatorId}}", Permission.NAMED, coordinator),
    HttpRoute("GET", f"{_V3}/pendingAckInternalStats/{_TOPIC}/{{subscription}}", Permission.NAMED, pending_ack),
    HttpRoute("GET", f"{_V3}/transactionBufferInternalStats/{_TOPIC}", Permission.NAMED, buffer),
)
