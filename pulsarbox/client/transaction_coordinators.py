"""Transaction coordinators: selection and requests.

The owner of partition N of a system topic runs coordinator N. Source: PIP-31.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from pulsarbox.client.errors import error_for, passes
from pulsarbox.errors import NotAllowed, PulsarBoxError, TransactionCoordinatorNotFound
from pulsarbox.protocol.PulsarApi_pb2 import (
    BaseCommand,
    CommandAddPartitionToTxn,
    CommandAddSubscriptionToTxn,
    CommandEndTxn,
    CommandNewTxn,
    CommandTcClientConnectRequest,
)

if TYPE_CHECKING:
    from pulsarbox.client.client import Client
    from pulsarbox.client.transport.connection import ClientConnection

_TOPIC: Final = "persistent://pulsar/system/transaction_coordinator_assign"
_PAUSE_SECONDS: Final = 0.1

Request = (
    CommandTcClientConnectRequest
    | CommandNewTxn
    | CommandAddPartitionToTxn
    | CommandAddSubscriptionToTxn
    | CommandEndTxn
)
_KINDS: Final[dict[type[Request], tuple[BaseCommand.Type, str, str]]] = {
    CommandTcClientConnectRequest: (
        BaseCommand.TC_CLIENT_CONNECT_REQUEST,
        "tcClientConnectRequest",
        "tcClientConnectResponse",
    ),
    CommandNewTxn: (BaseCommand.NEW_TXN, "newTxn", "newTxnResponse"),
    CommandAddPartitionToTxn: (
        BaseCommand.ADD_PARTITION_TO_TXN,
        "addPartitionToTxn",
        "addPartitionToTxnResponse",
    ),
    CommandAddSubscriptionToTxn: (
        BaseCommand.ADD_SUBSCRIPTION_TO_TXN,
        "addSubscriptionToTxn",
        "addSubscriptionToTxnResponse",
    ),
    CommandEndTxn: (BaseCommand.END_TXN, "endTxn", "endTxnResponse"),
}
"""Command type, request field and response field of each request."""


class Coordinators:
    """All coordinators by number, connected on demand."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._count = 0
        self._begun = 0
        self._connected: dict[int, ClientConnection] = {}

    def begin(self, timeout: float) -> tuple[int, int]:
        """Begin a transaction on the next coordinator and return the two halves of its ID. ``timeout`` is in
        seconds."""
        if not self._count:
            self._count = self._client.partitions(_TOPIC, create=False)
        if not self._count:
            raise NotAllowed("Transactions are disabled on the broker: enable transactionCoordinatorEnabled")
        number = self._begun % self._count
        self._begun += 1
        # Despite its name, the field is in milliseconds.
        answer = self.ask(number, CommandNewTxn(txn_ttl_seconds=max(1, round(timeout * 1000)), tc_id=number))
        return answer.txnid_most_bits, answer.txnid_least_bits

    def ask(self, number: int, request: Request) -> Any:
        """Send a request to a coordinator and return its response; retry while it is unavailable, up to the client's
        timeout.

        Raises the coordinator's error, NotConnected, NoAnswer.
        """
        deadline = time.monotonic() + self._client.timeout
        while True:
            try:
                return self._once(self._connection_of(number), request)
            except PulsarBoxError as error:
                goes_by = passes(error) or isinstance(error, TransactionCoordinatorNotFound)
                if not goes_by or time.monotonic() + _PAUSE_SECONDS > deadline:
                    raise
                self._connected.pop(number, None)
            self._pause()

    def _connection_of(self, number: int) -> ClientConnection:
        found = self._connected.get(number)
        if found is None or found.closed:
            found = self._client.broker_of(f"{_TOPIC}-partition-{number}")
            self._once(found, CommandTcClientConnectRequest(tc_id=number))
            self._connected[number] = found
        return found

    def _once(self, connection: ClientConnection, request: Request) -> Any:
        kind, field, answer_field = _KINDS[type(request)]
        request.request_id = next(self._client.numbers)
        command = BaseCommand(type=kind, **{field: request})  # type: ignore[arg-type]
        answer = getattr(self._client.ask(connection, command, request.request_id), answer_field)
        if answer.HasField("error"):
            raise error_for(answer.error, answer.message)
        return answer

    def _pause(self) -> None:
        due = time.monotonic() + _PAUSE_SECONDS
        while (left := due - time.monotonic()) > 0:
            self._client.turn(left)
