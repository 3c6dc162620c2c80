"""``produce -i ndjson --preserve``: store envelopes as their original entries.

Messages of a batch form a batch again. Each message keeps its partition, producer name, sequence ID, times, codec,
schema and encryption. A message with a repeated ID, which a consumer received twice, is skipped. The target's
deduplication sees the import's own increasing sequence IDs, so it drops nothing.
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
"""How long the input may pause within a batch before the incomplete batch is stored."""
_BATCH_MAX: Final = 1 << 20
"""Maximum size of a batch whose envelopes do not contain its size."""


class Restoration:
    """Import of envelopes into a topic."""

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
        """``fill`` completes messages from the command line, ``codec`` overrides that of the envelopes, and ``tokens``
        returns the tokens to report with the receipts of messages."""
        self.repeated = 0
        """Number of messages skipped for a repeated ID."""
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
        """Target schema version of each source version, by topic."""
        self._is_rerouted = False

    def add(self, line: bytes) -> None:
        """Add an envelope. Raises ValueError for one that cannot be stored, and the broker's errors."""
        self._idle_since = None
        stored = read(line)
        if stored.schema is not None and stored.schema_version is not None:
            self._register(stored.base_topic, stored.schema_version, stored.schema)
        if stored.id is not None:
            if stored.id.batch_index >= (stored.batch or _BATCH_MAX):
                raise ValueError(f"id {stored.id}: the batch index is not below {stored.batch or _BATCH_MAX}")
            if not self._seen.add(stored.topic, stored.id, stored.batch):
                self.repeated += 1
                return
        if self._group and not stored.is_in_same_batch(self._group[0]):
            self.flush()
        self._group.append(stored._replace(message=self._fill(stored.message)))
        is_one_of_several = stored.id is not None and stored.id.batch_index >= 0
        if not is_one_of_several or len(self._group) == stored.batch:
            self.flush()

    def idle(self) -> None:
        """Note that no input is ready. After IDLE_SECONDS without any, send the incomplete batch.

        Callers also wait for sockets, so the number of calls does not measure time.
        """
        now = time.monotonic()
        if self._idle_since is None:
            self._idle_since = now
        elif now - self._idle_since >= IDLE_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Send the incomplete batch. Raises as ``take``."""
        group, self._group = self._group, []
        if not group:
            return
        first = group[0]
        version = None if first.schema_version is None else self._version(first)
        partition = -1 if first.id is None else first.id.partition
        if partition >= self._producer.partitions and not self._is_rerouted and partition >= 0:
            self._is_rerouted = True
            count = self._producer.partitions or "no"
            self._tell(f"{self._topic} has {count} partitions: messages of partition {partition} are routed again")
        entry = entry_of(group, self._codec or first.codec, version)
        if self._producer.send_stored(entry, partition, self._tokens(entry.messages)):
            return
        for each in group:  # the batch exceeds the broker's maximum size
            alone = entry_of([each._replace(id=None)], self._codec or first.codec, version)
            self._producer.send_stored(alone, partition, self._tokens(1))

    def _register(self, topic: str, version: bytes, schema: Schema) -> None:
        if (topic, version) not in self._schemas:
            self._schemas[topic, version] = self._client.register_schema(self._topic, schema)

    def _version(self, stored: StoredMessage) -> bytes:
        """Return the target's schema version for that of the input. Raises ValueError if it is undefined."""
        version = stored.schema_version
        assert version is not None, "only messages with a schema version get here"
        place = stored.base_topic, version
        if place not in self._schemas:
            number = int.from_bytes(version, "big")
            try:
                self._client.schema(self._topic, version)
            except (NotFound, TopicNotFound):
                raise ValueError(
                    f"message {stored.id}: schema version {number} is defined neither by the input nor by"
                    f" {self._topic}: import the complete output of `consume -o ndjson`"
                ) from None
            self._tell(f"the input does not define schema version {number}: assuming that of {self._topic}")
            self._schemas[place] = version
        return self._schemas[place]
