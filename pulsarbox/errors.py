"""The error table: every failure the box can report, with its wire code and its HTTP status.

::

    PulsarBoxError                      UnknownError, 500
    ├── MetadataError                   wrong state of metadata, 500
    ├── PersistenceError                the store could not take or give an entry, 500
    │   ├── StoreFull                   it has no room for entries
    │   └── EntryDamaged                what is stored is not what was sent
    ├── AuthenticationError             401
    ├── AuthorizationError              403
    ├── ConsumerBusy                    409
    ├── ServiceNotReady                 503: try again
    ├── ChecksumError                   400
    ├── UnsupportedVersion              400
    ├── TopicNotFound                   404
    │   └── NamespaceNotFound           404: the tenant or namespace is missing
    ├── SubscriptionNotFound            404
    ├── ConsumerNotFound                404
    ├── TooManyRequests                 429
    ├── TopicTerminated                 409
    ├── ProducerBusy                    409
    │   └── NamingError                 412: Pulsar reports bad names under the code of ProducerBusy
    ├── InvalidTopicName                412
    ├── IncompatibleSchema              409
    ├── ConsumerAssignError             409
    ├── TransactionCoordinatorNotFound  404
    ├── InvalidTxnStatus                409
    ├── TransactionConflict             409
    ├── TransactionNotFound             404
    ├── NotAllowed                      405
    │   └── NotSupported                501: a thing this version does not do
    ├── ProducerFenced                  409
    ├── Conflict                        409: exists already, or is still in use
    ├── NotFound                        404: a tenant, namespace or other named thing of the Admin API
    ├── PreconditionFailed              412: a bad name or value in a request of the Admin API
    ├── BadRequest                      400: a request of the Admin API that cannot be read
    ├── NotAcceptable                   406: a number of partitions that no topic can have
    └── Unprocessable                   422: a value that can be read and makes no sense

The wire codes are those of ServerError in the Pulsar protocol; the mapping from exception to code is the broker's
(protocol reference, "Exception -> ServerError map").
"""

from typing import ClassVar


class PulsarBoxError(Exception):
    """Root of all errors that are told to a client. ``server_error`` is the wire code, ``http_status`` the REST one."""

    server_error: ClassVar[int] = 0
    http_status: ClassVar[int] = 500
    in_vain: ClassVar[bool] = False
    """There is no use in trying again, and some clients would: see ``protocol.features.told_code``."""


class MetadataError(PulsarBoxError):
    """Metadata is missing or in a state that forbids the request."""

    server_error = 1


class PersistenceError(PulsarBoxError):
    """The store could not take or give an entry."""

    server_error = 2


class StoreFull(PersistenceError):
    """The store has no room for entries: nothing of the batch is stored. One without entries may still be taken."""


class EntryDamaged(PersistenceError):
    """Entries ``first`` to ``last`` of a ledger are lost: their bytes are not what was sent, or cannot be read at all.

    ``body`` is what there is of the first one, empty where there is nothing. ``counts`` are its messages, its bytes,
    and the topic's totals of both up to it, where they are known.
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
        super().__init__(f"{what} cannot be served: {reason}")
        self.ledger_id = ledger_id
        self.first = first
        self.last = last
        self.reason = reason
        self.body = body
        self.counts = counts


class AuthenticationError(PulsarBoxError):
    """The client did not prove who it is."""

    server_error = 3
    http_status = 401


class AuthorizationError(PulsarBoxError):
    """The client may not do this."""

    server_error = 4
    http_status = 403


class ConsumerBusy(PulsarBoxError):
    """The subscription cannot take this consumer beside those it has."""

    server_error = 5
    http_status = 409


class ServiceNotReady(PulsarBoxError):
    """Not now; clients try again with back-off."""

    server_error = 6
    http_status = 503


class UnknownListener(ServiceNotReady):
    """A client names a listener that the box does not have. C++ clients recognise the text and report ConnectError."""


class ChecksumError(PulsarBoxError):
    """The checksum that came with a message does not match its bytes."""

    server_error = 9
    http_status = 400


class UnsupportedVersion(PulsarBoxError):
    """The client's protocol version cannot do what it asks for."""

    server_error = 10
    http_status = 400


class TopicNotFound(PulsarBoxError):
    """The topic does not exist and may not be created."""

    server_error = 11
    http_status = 404


class NamespaceNotFound(TopicNotFound):
    """The tenant or the namespace of a topic does not exist."""


class SubscriptionNotFound(PulsarBoxError):
    """The subscription does not exist and may not be created."""

    server_error = 12
    http_status = 404
    in_vain = True


class ConsumerNotFound(PulsarBoxError):
    """No consumer of that id on this connection."""

    server_error = 13
    http_status = 404


class TooManyRequests(PulsarBoxError):
    """A limit on concurrent requests is reached."""

    server_error = 14
    http_status = 429


class TopicTerminated(PulsarBoxError):
    """The topic takes no more messages."""

    server_error = 15
    http_status = 409


class ProducerBusy(PulsarBoxError):
    """The name or the right to produce is taken."""

    server_error = 16
    http_status = 409


class ProducerHeld(PulsarBoxError):
    """The topic's backlog has reached its quota: producers are to wait until it is smaller, and try again."""

    server_error = 7
    http_status = 409


class ProducerQuotaExceeded(PulsarBoxError):
    """The topic's backlog has reached its quota: nothing is taken, and what waits to be sent has failed."""

    server_error = 8
    http_status = 409


class NamingError(ProducerBusy):
    """A name is empty, reserved or malformed; Pulsar reports it under the code of ProducerBusy."""

    http_status = 412


class InvalidTopicName(PulsarBoxError):
    """The topic name does not have the form domain://tenant/namespace/topic."""

    server_error = 17
    http_status = 412
    in_vain = True


class IncompatibleSchema(PulsarBoxError):
    """The schema cannot be used on this topic."""

    server_error = 18
    http_status = 409


class InvalidSchema(IncompatibleSchema):
    """A schema is no schema of its type."""

    http_status = 422


class ConsumerAssignError(PulsarBoxError):
    """The hash ranges that a consumer asks for cannot be given."""

    server_error = 19
    http_status = 409


class TransactionCoordinatorNotFound(PulsarBoxError):
    """There is no such transaction coordinator."""

    server_error = 20
    http_status = 404


class InvalidTxnStatus(PulsarBoxError):
    """The transaction has ended, or is about to."""

    server_error = 21
    http_status = 409


class TransactionConflict(PulsarBoxError):
    """What is to be acknowledged in a transaction is acknowledged already, or in another open transaction."""

    server_error = 23
    http_status = 409


class TransactionNotFound(PulsarBoxError):
    """There is no such transaction: it was never begun, or ended long ago."""

    server_error = 24
    http_status = 404


class NotAllowed(PulsarBoxError):
    """The request is understood and refused."""

    server_error = 22
    http_status = 405


class NotSupported(NotAllowed):
    """A thing that this version of the box does not do."""

    http_status = 501


class ProducerFenced(PulsarBoxError):
    """Another producer holds the topic exclusively."""

    server_error = 25
    http_status = 409


class Conflict(PulsarBoxError):
    """The thing exists already, or is still in use."""

    server_error = 1
    http_status = 409


class NotFound(PulsarBoxError):
    """A named thing of the Admin API does not exist."""

    server_error = 1
    http_status = 404


class PreconditionFailed(PulsarBoxError):
    """A name or a value in a request of the Admin API is not acceptable."""

    server_error = 1
    http_status = 412


class BadRequest(PulsarBoxError):
    """A request of the Admin API cannot be read: it is not JSON, or JSON of another form."""

    server_error = 1
    http_status = 400


class NotAcceptable(PulsarBoxError):
    """A number of partitions that no topic can have."""

    server_error = 1
    http_status = 406


class Unprocessable(PulsarBoxError):
    """A value in a request of the Admin API can be read and makes no sense."""

    server_error = 1
    http_status = 422
