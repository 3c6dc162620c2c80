"""The error table: every failure that the box can report, with its wire code and HTTP status.

::

    PulsarBoxError                      UnknownError, 500
    ├── MetadataError                   wrong state of metadata, 500
    ├── PersistenceError                the store failed to write or read an entry, 500
        │   ├── SubscriptionFenced          the cursor is being reset
        │   ├── StoreFull                   no room left for entries
        │   ├── NotEnoughBookies            too few data directories are writable for the copies asked for
        │   ├── TooFewCopies                a batch is stored with fewer copies than its highest ack quorum
        │   └── EntryDamaged                the stored bytes differ from those that were sent
    ├── AuthenticationError             401
    ├── AuthorizationError              403
    ├── ConsumerBusy                    409
    ├── ServiceNotReady                 503: retry
    ├── ChecksumError                   400
    ├── UnsupportedVersion              400
    ├── TopicNotFound                   404
    │   └── NamespaceNotFound           404: the tenant or namespace is missing
    ├── SubscriptionNotFound            404
    ├── ConsumerNotFound                404
    ├── TooManyRequests                 429
    ├── TopicTerminated                 409
    ├── ProducerBusy                    409
    │   └── NamingError                 412: an invalid name; Pulsar uses the code of ProducerBusy
    ├── InvalidTopicName                412
    ├── IncompatibleSchema              409
    ├── ConsumerAssignError             409
    ├── TransactionCoordinatorNotFound  404
    ├── InvalidTxnStatus                409
    ├── TransactionConflict             409
    ├── TransactionNotFound             404
    ├── NotAllowed                      405
    │   ├── NotSupported                501: not supported by this version
    │   ├── TransactionsDisabled        transactionCoordinatorEnabled is false
    │   └── TransactionTimeoutTooLong   longer than transactionMaxTimeoutSeconds
    ├── ProducerFenced                  409
    ├── Conflict                        409: the object already exists or is in use
    │   ├── EpochBehind                 the sink has committed a later epoch
    │   ├── SinkOfAnotherWriter         another writer has begun the sink
    │   ├── SinkTakenOver               another writer has taken over the sink
    │   └── RunReplaced                 a later run of the writer has begun
    ├── NotFound                        404: a tenant, namespace or other object of the Admin API does not exist
    │   └── SinkUnused                  the sink has committed no epoch
    ├── PreconditionFailed              412: an invalid name or value in an Admin API request
    ├── BadRequest                      400: a malformed Admin API request
    ├── NotAcceptable                   406: an invalid number of partitions
    ├── PayloadTooLarge                 413: an upload exceeds a limit
    └── Unprocessable                   422: a well-formed value that makes no sense

The wire codes are those of ServerError in the Pulsar protocol. The mapping of exceptions to codes follows Pulsar's
broker (protocol reference, "Exception -> ServerError map").
"""

from typing import ClassVar, Final

CODE_HEADER: Final = "X-Pulsarbox-Error"
"""Header of an answer of the Admin API with the error's ``PulsarBoxError.error_code``."""

WARNING_HEADER: Final = "X-Pulsarbox-Warning"
"""Header of an answer of the Admin API to a change that is stored but has no effect in a box: the reason."""

GRANT_HINT: Final = ": admins of the tenant can grant it"
"""End of the text of an authorization error, for clients that have no advice of their own."""


class PulsarBoxError(Exception):
    """Base of all errors reported to clients. ``server_error`` is the wire code, ``http_status`` the REST status."""

    server_error: ClassVar[int] = 0
    http_status: ClassVar[int] = 500
    error_code: ClassVar[str] = ""
    """Name of the error in the header X-Pulsarbox-Error of the Admin API; empty if no client distinguishes it."""
    in_vain: ClassVar[bool] = False
    """Whether a retry cannot succeed; some clients would retry anyway, see ``protocol.features.client_error_code``."""


class MetadataError(PulsarBoxError):
    """Metadata is missing, or its state does not allow the request."""

    server_error = 1


class PersistenceError(PulsarBoxError):
    """The store failed to write or read an entry."""

    server_error = 2


class SubscriptionFenced(PersistenceError):
    """The cursor of the subscription is being reset."""


class StoreFull(PersistenceError):
    """The store is out of space: nothing of the batch is stored. A batch without entries may still be accepted."""


class NotEnoughBookies(PersistenceError):
    """Fewer data directories are writable than the persistence policy asks for; code UnknownError, as in Pulsar."""

    server_error = 0


class TooFewCopies(PersistenceError):
    """A batch is stored in ``copies`` data directories: at least the lowest ack quorum in it, not the highest."""

    def __init__(self, copies: int, reason: str) -> None:
        super().__init__(reason)
        self.copies = copies


class EntryDamaged(PersistenceError):
    """Entries ``first`` to ``last`` of a ledger are lost: their bytes are corrupt or unreadable.

    ``body`` holds the surviving bytes of the first entry, and is empty if none survived. ``counts`` holds its messages,
    its bytes, and the topic's running totals of both up to it, if known.
    """

    def __init__(
        self,
        ledger_id: int,
        first: int,
        last: int,
        reason: str,
        body: bytes = b"",
        counts: tuple[int, int, int, int] | None = None,
    ) -> None:
        what = f"entry {ledger_id}:{first}" if first == last else f"entries {ledger_id}:{first} to {last}"
        super().__init__(f"cannot read {what}: {reason}")
        self.ledger_id = ledger_id
        self.first = first
        self.last = last
        self.reason = reason
        self.body = body
        self.counts = counts


class AuthenticationError(PulsarBoxError):
    """The client failed to authenticate."""

    server_error = 3
    http_status = 401


class AuthorizationError(PulsarBoxError):
    """The client is not authorized for the operation."""

    server_error = 4
    http_status = 403


class ConsumerBusy(PulsarBoxError):
    """The subscription does not accept this consumer beside its current ones."""

    server_error = 5
    http_status = 409


class ServiceNotReady(PulsarBoxError):
    """The broker cannot serve the request now; clients retry with backoff."""

    server_error = 6
    http_status = 503


class UnknownListener(ServiceNotReady):
    """A client requested a listener that is not configured. C++ clients recognise the text and report ConnectError."""


class ChecksumError(PulsarBoxError):
    """The checksum of a message does not match its bytes."""

    server_error = 9
    http_status = 400


class UnsupportedVersion(PulsarBoxError):
    """The client's protocol version does not support the request."""

    server_error = 10
    http_status = 400


class TopicNotFound(PulsarBoxError):
    """The topic does not exist and is not created automatically."""

    server_error = 11
    http_status = 404


class NamespaceNotFound(TopicNotFound):
    """The tenant or namespace of a topic does not exist."""

    error_code = "NamespaceNotFound"


class SubscriptionNotFound(PulsarBoxError):
    """The subscription does not exist and is not created automatically."""

    server_error = 12
    http_status = 404
    in_vain = True


class ConsumerNotFound(PulsarBoxError):
    """The connection has no consumer with that ID."""

    server_error = 13
    http_status = 404


class TooManyRequests(PulsarBoxError):
    """Too many concurrent requests."""

    server_error = 14
    http_status = 429


class TopicTerminated(PulsarBoxError):
    """The topic is terminated and accepts no more messages."""

    server_error = 15
    http_status = 409


class ProducerBusy(PulsarBoxError):
    """The producer name is in use, or another producer has exclusive access."""

    server_error = 16
    http_status = 409


class ProducerHeld(PulsarBoxError):
    """The topic's backlog quota is exceeded: producers wait until the backlog shrinks, then retry."""

    server_error = 7
    http_status = 409


class ProducerQuotaExceeded(PulsarBoxError):
    """The topic's backlog quota is exceeded: the producer is rejected, and its pending messages fail."""

    server_error = 8
    http_status = 409


class NamingError(ProducerBusy):
    """A name is empty, reserved or malformed; Pulsar reports it with the code of ProducerBusy."""

    http_status = 412


class InvalidTopicName(PulsarBoxError):
    """The topic name does not have the form domain://tenant/namespace/topic."""

    server_error = 17
    http_status = 412
    in_vain = True


class IncompatibleSchema(PulsarBoxError):
    """The schema is not compatible with the topic."""

    server_error = 18
    http_status = 409


class InvalidSchema(IncompatibleSchema):
    """A schema definition is not valid for its type."""

    http_status = 422


class ConsumerAssignError(PulsarBoxError):
    """The hash ranges that a consumer requests cannot be assigned."""

    server_error = 19
    http_status = 409


class TransactionCoordinatorNotFound(PulsarBoxError):
    """The transaction coordinator does not exist."""

    server_error = 20
    http_status = 404


class InvalidTxnStatus(PulsarBoxError):
    """The transaction has ended or is ending."""

    error_code = "InvalidTxnStatus"
    server_error = 21
    http_status = 409


class TransactionConflict(PulsarBoxError):
    """A message is already acknowledged, or acknowledged in another open transaction."""

    server_error = 23
    http_status = 409


class TransactionNotFound(PulsarBoxError):
    """The transaction was never begun, or ended long ago."""

    error_code = "TransactionNotFound"
    server_error = 24
    http_status = 404


class NotAllowed(PulsarBoxError):
    """The request is valid but not allowed."""

    server_error = 22
    http_status = 405


class TransactionsDisabled(NotAllowed):
    """The broker has no transaction coordinator."""

    error_code = "TransactionsDisabled"


class TransactionTimeoutTooLong(NotAllowed):
    """The timeout of a transaction exceeds the maximum."""

    error_code = "TransactionTimeoutTooLong"


class NotSupported(NotAllowed):
    """The operation is not supported by this version of the box."""

    http_status = 501


class ProducerFenced(PulsarBoxError):
    """Another producer has exclusive access to the topic."""

    server_error = 25
    http_status = 409


class Conflict(PulsarBoxError):
    """The object already exists or is still in use."""

    server_error = 1
    http_status = 409


class EpochBehind(Conflict):
    """The sink has committed a later epoch."""

    error_code = "EpochBehind"


class SinkOfAnotherWriter(Conflict):
    """Another writer has begun the sink."""

    error_code = "SinkOfAnotherWriter"


class SinkTakenOver(Conflict):
    """Another writer has taken over the sink of this one."""

    error_code = "SinkTakenOver"


class RunReplaced(Conflict):
    """A later run of the same writer has begun."""

    error_code = "RunReplaced"


class NotFound(PulsarBoxError):
    """An object of the Admin API does not exist."""

    server_error = 1
    http_status = 404


class SinkUnused(NotFound):
    """The sink has committed no epoch."""

    error_code = "SinkUnused"


class PreconditionFailed(PulsarBoxError):
    """A name or a value in an Admin API request is not acceptable."""

    server_error = 1
    http_status = 412


class BadRequest(PulsarBoxError):
    """An Admin API request is not valid JSON, or not of the expected form."""

    server_error = 1
    http_status = 400


class NotAcceptable(PulsarBoxError):
    """The number of partitions is invalid."""

    server_error = 1
    http_status = 406


class PayloadTooLarge(PulsarBoxError):
    """An upload exceeds a limit of its size, or of the size of all uploads together."""

    server_error = 1
    http_status = 413


class Unprocessable(PulsarBoxError):
    """A value in an Admin API request is well-formed but makes no sense."""

    server_error = 1
    http_status = 422
