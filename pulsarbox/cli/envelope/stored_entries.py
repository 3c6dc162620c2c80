"""``produce -i ndjson --preserve``: envelopes stored again as the entries that they were read from.

Messages of one batch are one batch again, each message goes to the partition that it was in, and keeps the name of its
producer, its sequence id, its times, codec, schema and encryption. A message whose id has come before is left out: a
consumer was given it twice. The target's deduplication sees the sequence ids of the import itself, which grow, so it
drops nothing.
"""

import time
from collections.abc import Callable, Sequence
from typing import Final

from pulsarbox.cli.envelope.seen_ids import SeenIds
from pulsarbox.cli.envelope.stored_message import StoredMessage, entry_of, read
from pulsarbox.client.client import Client
from pulsarbox.client.producer import Producer
from pulsarbox.errors import NotFound, TopicNotFound
from pulsarbox.protocol.message_encoder import Outgoing
from pulsarbox.protocol.PulsarApi_pb2 import Schema

IDLE_SECONDS: Final = 5.0
"""How long the input may pause within a batch before its messages are stored without the rest."""
_BATCH_MAX: Final = 1 << 20
"""Messages of a batch whose envelopes do not say how many it has."""


class Restoration:
    """Envelopes on their way into a topic."""

    def __init__(
        self,
        client: Client,
        topic: str,
        producer: Producer,
        fill: Callable[[Outgoing], Outgoing],
        tell: Callable[[str], None],
        *,
        codec: int = 0,
        tokens: Callable[[int], Sequence[int]] = lambda count: (),
    ) -> None:
        """``fill`` adds what the command line gives to every message, ``codec`` replaces that of the envelopes, and
        ``tokens`` makes what is told of each message once it is stored."""
        self.repeated = 0
        """Messages that were left out because their ids had come before."""
        self._client = client
        self._topic = topic
        self._producer = producer
        self._fill = fill
        self._tell = tell
        self._codec = codec
        self._tokens = tokens
        self._seen = SeenIds()
        self._group: list[StoredMessage] = []
        self._idle_since: float | None = None
        self._schemas: dict[tuple[str, bytes], bytes] = {}
        """The version here of each version there, by topic."""
        self._is_rerouted = False

    def take(self, line: bytes) -> None:
        """Take an envelope. Raises ValueError for one that cannot be stored, and what the broker tells."""
        self._idle_since = None
        stored = read(line)
        if stored.schema is not None and stored.schema_version is not None:
            self._register(stored.base_topic, stored.schema_version, stored.schema)
        if stored.id is not None:
            if stored.id.batch_index >= (stored.batch or _BATCH_MAX):
                raise ValueError(f"id {stored.id}: a batch of {stored.batch or _BATCH_MAX} has no such message")
            if not self._seen.add(stored.topic, stored.id, stored.batch):
                self.repeated += 1
                return
        if self._group and not stored.is_beside(self._group[0]):
            self.flush()
        self._group.append(stored._replace(message=self._fill(stored.message)))
        is_one_of_several = stored.id is not None and stored.id.batch_index >= 0
        if not is_one_of_several or len(self._group) == stored.batch:
            self.flush()

    def idle(self) -> None:
        """Note that no input is ready. After IDLE_SECONDS without any, send the messages that wait for their batch.

        Callers wait for sockets as well as for input, so the number of calls says nothing about the time.
        """
        now = time.monotonic()
        if self._idle_since is None:
            self._idle_since = now
        elif now - self._idle_since >= IDLE_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Send the messages that wait for others of their batch. Raises as ``take``."""
        group, self._group = self._group, []
        if not group:
            return
        first = group[0]
        version = None if first.schema_version is None else self._version(first)
        partition = -1 if first.id is None else first.id.partition
        if partition >= self._producer.partitions and not self._is_rerouted and partition >= 0:
            self._is_rerouted = True
            count = self._producer.partitions or "no"
            self._tell(f"{self._topic} has {count} partitions: messages of partition {partition} are routed anew")
        entry = entry_of(group, self._codec or first.codec, version)
        if self._producer.send_stored(entry, partition, self._tokens(entry.messages)):
            return
        for each in group:  # the batch is larger than this broker takes
            alone = entry_of([each._replace(id=None)], self._codec or first.codec, version)
            self._producer.send_stored(alone, partition, self._tokens(1))

    def _register(self, topic: str, version: bytes, schema: Schema) -> None:
        if (topic, version) not in self._schemas:
            self._schemas[topic, version] = self._client.register_schema(self._topic, schema)

    def _version(self, stored: StoredMessage) -> bytes:
        """What a schema version of the input is here. Raises ValueError where nobody knows what it means."""
        version = stored.schema_version
        assert version is not None, "asked of messages that have one"
        place = stored.base_topic, version
        if place not in self._schemas:
            number = int.from_bytes(version, "big")
            try:
                self._client.schema(self._topic, version)
            except (NotFound, TopicNotFound):
                raise ValueError(
                    f"message {stored.id}: the input does not define schema version {number}, and {self._topic} has "
                    "none such: import what `consume -o ndjson` wrote from its first line on"
                ) from None
            self._tell(f"the input does not define schema version {number}: taken for that of {self._topic}")
            self._schemas[place] = version
        return self._schemas[place]
