"""The client: which broker serves a topic, the connections to brokers, and what lives on them."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from pulsarbox.client.connection import Address, Connection, connect, wire_of
from pulsarbox.client.credentials import NOBODY, Credentials
from pulsarbox.client.errors import NotConnected, told
from pulsarbox.client.loop import Loop
from pulsarbox.client.places import TIMEOUT_SECONDS
from pulsarbox.client.reconnect import Comeback
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
"""Requests that are not waited for one by one."""
_REDIRECTS_MAX: Final = 20
_CLOSE_SECONDS: Final = 2.0


class Client:
    """Connections to the brokers of one service URL. Producers and consumers are made with it; ``close`` ends all."""

    def __init__(
        self,
        hosts: Sequence[Address],
        timeout: float = TIMEOUT_SECONDS,
        *,
        secure: bool = False,
        credentials: Credentials = NOBODY,
    ) -> None:
        """``hosts``: those of the service URL, tried in turn. ``timeout``: seconds for any answer, and for coming back.
        ``secure``: over TLS.

        Nothing is connected yet. Raises NotConnected for certificates that cannot be used.
        """
        self._wire = wire_of(credentials, secure)
        self.timeout = timeout
        self.loop = Loop()
        self.numbers = itertools.count(1)
        """Of requests, producers and consumers."""
        self.comebacks: list[Comeback] = []
        """Whatever has lost its connection."""
        self.tell: Callable[[str], None] = lambda text: None
        """Called with a text when a connection is lost and cannot be made again at once, or the broker holds a producer
        back, and when that is over."""
        self._away: type[PulsarBoxError] | None = None
        """Why something cannot go on, as ``tell`` was told: ProducerHeld, or NotConnected for everything else."""
        self._hosts = list(hosts)
        self._connections: dict[tuple[Address, str], Connection] = {}
        self._coordinators: Coordinators | None = None

    def turn(self, seconds: float = 0.0) -> bool:
        """Wait up to so long for something to happen; whether something did. Lost connections are made again here.

        Raises what ended a producer or consumer for good.
        """
        happened = self.loop.turn(0.0 if self.comebacks else seconds)
        if self.comebacks:
            self._come_back(seconds)
            return True
        return happened

    def _come_back(self, seconds: float) -> None:
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
        """Tell why something cannot go on, or that all can, where that is news."""
        away = None if reason is None else ProducerHeld if isinstance(reason, ProducerHeld) else NotConnected
        before, self._away = self._away, away
        if away is before:
            return
        if away is ProducerHeld:
            self.tell(f"the broker holds the producer back ({reason}): waiting, for {self.timeout:g} s")
        elif away is not None:
            self.tell(f"the connection is lost ({reason}): trying again, for {self.timeout:g} s")
        else:
            self.tell("the broker takes messages again" if before is ProducerHeld else "connected again")

    # Brokers ---------------------------------------------------------------------------------------------------------

    def service(self) -> Connection:
        """A connection to the first host that can be reached. Raises NotConnected."""
        problem = NotConnected("the URL names no host")
        for address in list(self._hosts):
            try:
                return self.to(address)
            except NotConnected as error:
                problem = error
                self._hosts.append(self._hosts.pop(0))  # the next one first, from now on
        raise problem

    def to(self, address: Address, proxy_to: str = "") -> Connection:
        """The connection to an address, made where there is none. Raises NotConnected."""
        found = self._connections.get((address, proxy_to))
        if found is None or found.closed:
            found = self._connections[address, proxy_to] = connect(self.loop, address, self._wire, proxy_to)
        return found

    def ask(self, connection: Connection, command: BaseCommand, request_id: int) -> BaseCommand:
        """The answer to a request."""
        return connection.ask(command, request_id, self.timeout)

    def broker_of(self, topic: str) -> Connection:
        """A connection to the broker that serves a topic. Raises what the broker tells."""
        connection, authoritative = self.service(), False
        for _ in range(_REDIRECTS_MAX):
            request_id = next(self.numbers)
            lookup = CommandLookupTopic(topic=topic, request_id=request_id, authoritative=authoritative)
            command = BaseCommand(type=BaseCommand.LOOKUP, lookupTopic=lookup)
            answer = self.ask(connection, command, request_id).lookupTopicResponse
            if answer.response == CommandLookupTopicResponse.Failed:
                raise told(answer.error, answer.message)
            if answer.response == CommandLookupTopicResponse.Connect:
                return self._named(connection, answer)
            connection, authoritative = self.to(self._address_of(answer)), answer.authoritative
        raise NotConnected(f"{topic} cannot be found: brokers point to each other")

    def _named(self, connection: Connection, answer: CommandLookupTopicResponse) -> Connection:
        """A connection to the broker that an answer names, by way of who gave it where it says so."""
        broker = self._address_of(answer)
        if answer.proxy_through_service_url:
            return self.to(connection.address, f"{broker[0]}:{broker[1]}")
        return self.to(broker)

    def _address_of(self, answer: CommandLookupTopicResponse) -> Address:
        return _address(answer.brokerServiceUrlTls if self._wire.tls is not None else answer.brokerServiceUrl)

    def partitions(self, topic: str, create: bool) -> int:
        """How many partitions a topic has, 0 where it is not partitioned or not there yet.

        ``create``: make it where it does not exist, if the broker does that by itself.
        """
        request_id = next(self.numbers)
        question = CommandPartitionedTopicMetadata(
            topic=topic, request_id=request_id, metadata_auto_creation_enabled=create
        )
        command = BaseCommand(type=BaseCommand.PARTITIONED_METADATA, partitionMetadata=question)
        answer = self.ask(self.service(), command, request_id).partitionMetadataResponse
        if answer.response == CommandPartitionedTopicMetadataResponse.Failed:
            raise told(answer.error, answer.message)
        return answer.partitions

    def topics(self, namespace: str, known: str = "") -> tuple[list[str], str] | None:
        """The topics of a namespace, of both domains, partitions one by one; and their hash.

        ``known``: the hash of those that are known already. None where it is still that.
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
        """The schema of a topic in one of its versions, empty for the latest. Raises what the broker tells."""
        question = CommandGetSchema(topic=topic)
        if version:  # Apache Pulsar refuses an empty one
            question.schema_version = version
        answer = self._ask_schema(question)
        if answer.HasField("error_code"):
            raise told(answer.error_code, answer.error_message)
        return answer.schema

    def latest_schema(self, topic: str) -> tuple[Schema, bytes] | None:
        """The latest schema of a topic and its version; None where it has none. Raises what the broker tells."""
        answer = self._ask_schema(CommandGetSchema(topic=topic))
        if answer.HasField("error_code"):
            error = told(answer.error_code, answer.error_message)
            if isinstance(error, TopicNotFound):  # so brokers say as well that there is no schema
                return None
            raise error
        return answer.schema, answer.schema_version

    def latest_schemas(self, topics: Sequence[str]) -> list[Schema | None]:
        """The latest schema of each topic, as ``latest_schema`` has it: a hundred are asked for at once."""
        found: list[Schema | None] = []
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
                    found.append(answer.schema)
                    continue
                error = told(answer.error_code, answer.error_message)
                if not isinstance(error, TopicNotFound):
                    raise error
                found.append(None)
        return found

    def _brokers_of(self, topics: Sequence[str]) -> list[tuple[str, Connection]]:
        """Who serves each: all are looked up at once, those that are elsewhere once more and one by one."""
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
        """The version of a schema of a topic, given to it where it has none such. Raises what the broker tells."""
        request_id = next(self.numbers)
        question = CommandGetOrCreateSchema(request_id=request_id, topic=topic, schema=schema)
        command = BaseCommand(type=BaseCommand.GET_OR_CREATE_SCHEMA, getOrCreateSchema=question)
        answer = self.ask(self.broker_of(topic), command, request_id).getOrCreateSchemaResponse
        if answer.HasField("error_code"):
            raise told(answer.error_code, answer.error_message)
        return answer.schema_version

    # Transactions ----------------------------------------------------------------------------------------------------

    def transaction(self, timeout: float) -> Transaction:
        """Begin a transaction. After so many seconds the broker aborts it, if nobody has ended it.

        Raises NotAllowed where there are none, or none so long; what the coordinator tells; NotConnected, NoAnswer.
        """
        from pulsarbox.client.transaction import Transaction
        from pulsarbox.client.transaction_coordinators import Coordinators  # few of our commands need them

        if self._coordinators is None:
            self._coordinators = Coordinators(self)
        most, least = self._coordinators.begin(timeout)
        return Transaction(self, self._coordinators, most, least)

    # Ending ----------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Send what is still to be sent, for two seconds at most, and end all connections. Raises nothing."""
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
    """Host and port of what a lookup answers: ``pulsar://host:port``, or ``pulsar+ssl://``."""
    host, _, port = url.partition("://")[2].rstrip("/").rpartition(":")
    if not host or not port.isdigit():
        raise NotConnected(f"the broker names a service URL that cannot be used: {url!r}")
    return host.strip("[]"), int(port)
