"""The client: topic lookup, connections to brokers, and their producers and consumers."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from pulsarbox.client.credentials import NOBODY, Credentials
from pulsarbox.client.errors import NotConnected, error_for
from pulsarbox.client.places import TIMEOUT_SECONDS
from pulsarbox.client.transport.connection import Address, ClientConnection, connect, wire_of
from pulsarbox.client.transport.loop import Loop
from pulsarbox.client.transport.reconnect import Reconnect
from pulsarbox.errors import ProducerHeld, PulsarBoxError, TopicNotFound
from pulsarbox.protocol.PulsarApi_pb2 import (
    BaseCommand,
    CommandGetOrCreateSchema,
    CommandGetSchema,
    CommandGetSchemaResponse,
    CommandGetTopicsOfNamespace,
    CommandLookupTopic,
    CommandLookupTopicResponse,
    CommandPartitionedTopicMetadata,
    CommandPartitionedTopicMetadataResponse,
    Schema,
)

if TYPE_CHECKING:
    from pulsarbox.client.transaction import Transaction
    from pulsarbox.client.transaction_coordinators import Coordinators

_AT_ONCE: Final = 100
"""Maximum number of pipelined requests."""
_REDIRECTS_MAX: Final = 20
_CLOSE_SECONDS: Final = 2.0


class Client:
    """Connections to the brokers of one service URL, for producers and consumers; ``close`` ends them all."""

    def __init__(
        self,
        hosts: Sequence[Address],
        timeout: float = TIMEOUT_SECONDS,
        *,
        secure: bool = False,
        credentials: Credentials = NOBODY,
    ) -> None:
        """``hosts``: addresses of the service URL, tried in turn. ``timeout``: seconds for a response or a
        reconnection. ``secure``: use TLS.

        Does not connect yet. Raises NotConnected for unusable certificates.
        """
        self._wire = wire_of(credentials, secure)
        self.timeout = timeout
        self.loop = Loop()
        self.numbers = itertools.count(1)
        """IDs of requests, producers and consumers."""
        self.comebacks: list[Reconnect] = []
        """Producers and consumers to reconnect."""
        self.warn: Callable[[str], None] = lambda text: None
        """Called with a message when a connection is lost and cannot be restored at once, when the broker holds a
        producer, and when either is over."""
        self._away: type[PulsarBoxError] | None = None
        """The last reported interruption: ProducerHeld, or NotConnected for anything else."""
        self._hosts = list(hosts)
        self._connections: dict[tuple[Address, str], ClientConnection] = {}
        self._coordinators: Coordinators | None = None

    def turn(self, seconds: float = 0.0) -> bool:
        """Wait up to ``seconds`` for events and handle them; return whether there were any.

        Restores lost connections, and always returns True while one is lost.
        Raises the error that ended a producer or consumer permanently.
        """
        happened = self.loop.turn(0.0 if self.comebacks else seconds)
        if self.comebacks:
            self._schedule_reconnect(seconds)
            return True
        return happened

    def _schedule_reconnect(self, seconds: float) -> None:
        now = time.monotonic()
        for each in list(self.comebacks):
            if each.due <= now:
                self.comebacks.remove(each)
                if not each.try_again():
                    self.comebacks.append(each)
                    self._now_away(each.reason)
        if not self.comebacks:
            self._now_away(None)
        else:
            first = min(each.due for each in self.comebacks)
            self.loop.turn(min(seconds, max(0.0, first - time.monotonic())))

    def _now_away(self, reason: PulsarBoxError | None) -> None:
        """Report an interruption or its end if the state changed."""
        away = None if reason is None else ProducerHeld if isinstance(reason, ProducerHeld) else NotConnected
        before, self._away = self._away, away
        if away is before:
            return
        if away is ProducerHeld:
            self.warn(f"the broker blocks the producer ({reason}): waiting for up to {self.timeout:g} s")
        elif away is not None:
            self.warn(f"connection lost ({reason}): retrying for up to {self.timeout:g} s")
        else:
            self.warn("the broker accepts messages again" if before is ProducerHeld else "reconnected")

    # Brokers ---------------------------------------------------------------------------------------------------------

    def service(self) -> ClientConnection:
        """Return a connection to the first reachable host. Raises NotConnected."""
        problem = NotConnected("the URL has no host")
        for address in list(self._hosts):
            try:
                return self.to(address)
            except NotConnected as error:
                problem = error
                self._hosts.append(self._hosts.pop(0))  # start with the next host from now on
        raise problem

    def to(self, address: Address, proxy_to: str = "") -> ClientConnection:
        """Return the connection to an address, opened if necessary. Raises NotConnected."""
        found = self._connections.get((address, proxy_to))
        if found is None or found.closed:
            found = self._connections[address, proxy_to] = connect(self.loop, address, self._wire, proxy_to)
        return found

    def ask(self, connection: ClientConnection, command: BaseCommand, request_id: int) -> BaseCommand:
        """Send a request and return its response."""
        return connection.ask(command, request_id, self.timeout)

    def broker_of(self, topic: str) -> ClientConnection:
        """Return a connection to the broker that owns a topic. Raises the broker's error."""
        connection, authoritative = self.service(), False
        for _ in range(_REDIRECTS_MAX):
            request_id = next(self.numbers)
            lookup = CommandLookupTopic(topic=topic, request_id=request_id, authoritative=authoritative)
            command = BaseCommand(type=BaseCommand.LOOKUP, lookupTopic=lookup)
            answer = self.ask(connection, command, request_id).lookupTopicResponse
            if answer.response == CommandLookupTopicResponse.Failed:
                raise error_for(answer.error, answer.message)
            if answer.response == CommandLookupTopicResponse.Connect:
                return self._named(connection, answer)
            connection, authoritative = self.to(self._address_of(answer)), answer.authoritative
        raise NotConnected(f"cannot look up {topic}: brokers redirect to each other")

    def _named(self, connection: ClientConnection, answer: CommandLookupTopicResponse) -> ClientConnection:
        """Return a connection to the broker in a lookup response, through the responder if it requests that."""
        broker = self._address_of(answer)
        if answer.proxy_through_service_url:
            return self.to(connection.address, f"{broker[0]}:{broker[1]}")
        return self.to(broker)

    def _address_of(self, answer: CommandLookupTopicResponse) -> Address:
        return _address(answer.brokerServiceUrlTls if self._wire.tls is not None else answer.brokerServiceUrl)

    def partitions(self, topic: str, create: bool) -> int:
        """Return a topic's number of partitions; 0 if it is not partitioned or does not exist.

        ``create``: create a missing topic if the broker allows automatic creation.
        """
        request_id = next(self.numbers)
        question = CommandPartitionedTopicMetadata(
            topic=topic, request_id=request_id, metadata_auto_creation_enabled=create
        )
        command = BaseCommand(type=BaseCommand.PARTITIONED_METADATA, partitionMetadata=question)
        answer = self.ask(self.service(), command, request_id).partitionMetadataResponse
        if answer.response == CommandPartitionedTopicMetadataResponse.Failed:
            raise error_for(answer.error, answer.message)
        return answer.partitions

    def topics(self, namespace: str, known: str = "") -> tuple[list[str], str] | None:
        """Return the topics of a namespace in both domains, with each partition, and their hash.

        ``known``: the hash of the caller's list. None if it is unchanged.
        """
        request_id = next(self.numbers)
        question = CommandGetTopicsOfNamespace(
            request_id=request_id, namespace=namespace, mode=CommandGetTopicsOfNamespace.ALL
        )
        if known:
            question.topics_hash = known
        command = BaseCommand(type=BaseCommand.GET_TOPICS_OF_NAMESPACE, getTopicsOfNamespace=question)
        answer = self.ask(self.service(), command, request_id).getTopicsOfNamespaceResponse
        return (list(answer.topics), answer.topics_hash) if answer.changed else None

    def schema(self, topic: str, version: bytes) -> Schema:
        """Return a version of a topic's schema, the latest if ``version`` is empty. Raises the broker's error."""
        question = CommandGetSchema(topic=topic)
        if version:  # Apache Pulsar rejects an empty version
            question.schema_version = version
        answer = self._ask_schema(question)
        if answer.HasField("error_code"):
            raise error_for(answer.error_code, answer.error_message)
        return answer.schema

    def latest_schema(self, topic: str) -> tuple[Schema, bytes] | None:
        """Return a topic's latest schema and its version, or None if it has none. Raises the broker's error."""
        answer = self._ask_schema(CommandGetSchema(topic=topic))
        if answer.HasField("error_code"):
            error = error_for(answer.error_code, answer.error_message)
            if isinstance(error, TopicNotFound):  # also the brokers' response for a topic without a schema
                return None
            raise error
        return answer.schema, answer.schema_version

    def latest_schemas(self, topics: Sequence[str]) -> list[tuple[Schema, bytes] | None]:
        """Return ``latest_schema`` of each topic; requests are pipelined, a hundred at a time."""
        found: list[tuple[Schema, bytes] | None] = []
        for at in range(0, len(topics), _AT_ONCE):
            asked = []
            for topic, connection in self._brokers_of(topics[at : at + _AT_ONCE]):
                request_id = next(self.numbers)
                question = CommandGetSchema(topic=topic, request_id=request_id)
                connection.ask_later(BaseCommand(type=BaseCommand.GET_SCHEMA, getSchema=question), request_id)
                asked.append((connection, request_id))
            for connection, request_id in asked:
                answer = connection.answer(request_id, self.timeout, "GET_SCHEMA").getSchemaResponse
                if not answer.HasField("error_code"):
                    found.append((answer.schema, answer.schema_version))
                    continue
                error = error_for(answer.error_code, answer.error_message)
                if not isinstance(error, TopicNotFound):
                    raise error
                found.append(None)
        return found

    def _brokers_of(self, topics: Sequence[str]) -> list[tuple[str, ClientConnection]]:
        """Return the owner of each topic; lookups are pipelined, and redirected ones repeated one by one."""
        connection, asked = self.service(), []
        for topic in topics:
            request_id = next(self.numbers)
            lookup = CommandLookupTopic(topic=topic, request_id=request_id)
            connection.ask_later(BaseCommand(type=BaseCommand.LOOKUP, lookupTopic=lookup), request_id)
            asked.append(request_id)
        found = []
        for topic, request_id in zip(topics, asked, strict=True):
            answer = connection.answer(request_id, self.timeout, "LOOKUP").lookupTopicResponse
            is_known = answer.response == CommandLookupTopicResponse.Connect
            found.append((topic, self._named(connection, answer) if is_known else self.broker_of(topic)))
        return found

    def _ask_schema(self, question: CommandGetSchema) -> CommandGetSchemaResponse:
        question.request_id = next(self.numbers)
        command = BaseCommand(type=BaseCommand.GET_SCHEMA, getSchema=question)
        return self.ask(self.broker_of(question.topic), command, question.request_id).getSchemaResponse

    def register_schema(self, topic: str, schema: Schema) -> bytes:
        """Return the version of a topic's schema, registering it if it is new. Raises the broker's error."""
        request_id = next(self.numbers)
        question = CommandGetOrCreateSchema(request_id=request_id, topic=topic, schema=schema)
        command = BaseCommand(type=BaseCommand.GET_OR_CREATE_SCHEMA, getOrCreateSchema=question)
        answer = self.ask(self.broker_of(topic), command, request_id).getOrCreateSchemaResponse
        if answer.HasField("error_code"):
            raise error_for(answer.error_code, answer.error_message)
        return answer.schema_version

    # Transactions ----------------------------------------------------------------------------------------------------

    def transaction(self, timeout: float) -> Transaction:
        """Begin a transaction. The broker aborts it after ``timeout`` seconds.

        Raises NotAllowed if transactions are disabled or the timeout is too long, the coordinator's errors,
        NotConnected, NoAnswer.
        """
        from pulsarbox.client.transaction import Transaction
        from pulsarbox.client.transaction_coordinators import Coordinators  # deferred: few commands use transactions

        if self._coordinators is None:
            self._coordinators = Coordinators(self)
        most, least = self._coordinators.begin(timeout)
        return Transaction(self, self._coordinators, most, least)

    # Ending ----------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Flush pending output for at most two seconds, then close all connections. Never raises."""
        open_ones = [each for each in self._connections.values() if not each.closed]
        deadline = time.monotonic() + _CLOSE_SECONDS
        with contextlib.suppress(PulsarBoxError, OSError):
            for each in open_ones:
                each.flush()
            while any(each.waiting and not each.closed for each in open_ones) and time.monotonic() < deadline:
                self.loop.turn(0.1)
        self.comebacks.clear()
        for each in open_ones:
            each.producers.clear()
            each.consumers.clear()
            each.close()
        self.loop.close()


def _address(url: str) -> Address:
    """Return host and port of a lookup response's URL: ``pulsar://host:port`` or ``pulsar+ssl://host:port``."""
    host, _, port = url.partition("://")[2].rstrip("/").rpartition(":")
    if not host or not port.isdigit():
        raise NotConnected(f"the broker returned an invalid service URL: {url!r}")
    return host.strip("[]"), int(port)
