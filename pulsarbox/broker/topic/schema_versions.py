"""In-memory cache of schema versions: digests that identify each version."""

from collections import OrderedDict
from hashlib import sha256
from typing import Final, NamedTuple

from pulsarbox.errors import IncompatibleSchema
from pulsarbox.protocol.PulsarApi_pb2 import Schema

VERSIONS_MAX: Final = 20_000
"""Versions cached for all topics together; each takes about 300 bytes."""
VERDICTS_MAX: Final = 64
"""Accepted and rejected schemas cached per topic."""

Digest = tuple[int, bytes]
"""Schema type, and a digest of the definition or of its meaning."""


def digest_of(schema: Schema) -> Digest:
    """Return the digest that identifies a definition."""
    return schema.type, sha256(schema.schema_data).digest()


class Verdict(NamedTuple):
    """Key of a cached check: the schema and the strategy it was checked by."""

    digest: Digest
    strategy: str


class TopicVersions:
    """The versions of one topic's schema, oldest first."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.types: list[Schema.Type] = []
        self.by_digest: dict[Digest, int] = {}
        """The first version with each definition."""
        self.by_meaning: dict[Digest, int] = {}
        """The first version with each meaning, of the versions up to ``understood``."""
        self.understood = 0
        """Number of versions whose meaning is in ``by_meaning``."""
        self.unknown: OrderedDict[Digest, None] = OrderedDict()
        """Definitions that mean the same as no version; cleared when a version is added."""
        self.verdicts: OrderedDict[Verdict, tuple[type[IncompatibleSchema], str] | None] = OrderedDict()
        """Results of checks: None for a schema that can be the next version, else its error; cleared likewise."""

    def add(self, number: int, schema: Schema) -> None:
        """Append a version."""
        self.numbers.append(number)
        self.types.append(schema.type)
        self.by_digest.setdefault(digest_of(schema), number)
        self.unknown.clear()
        self.verdicts.clear()

    def recognise(self, digest: Digest, number: int | None) -> None:
        """Cache that a definition means the same as a version, or as none."""
        if number is None:
            self.unknown[digest] = None
            if len(self.unknown) > VERDICTS_MAX:
                self.unknown.popitem(last=False)
        elif len(self.by_digest) < len(self.numbers) + VERDICTS_MAX:
            self.by_digest[digest] = number

    def judge(self, verdict: Verdict, error: IncompatibleSchema | None) -> None:
        """Cache the result of a check until a version is added."""
        self.verdicts[verdict] = None if error is None else (type(error), str(error))
        if len(self.verdicts) > VERDICTS_MAX:
            self.verdicts.popitem(last=False)

    def raise_cached_error(self, verdict: Verdict) -> None:
        """Raise the cached error of a check, if it failed."""
        found = self.verdicts[verdict]
        if found is not None:
            kind, text = found
            raise kind(text)


class VersionCache:
    """LRU cache of topics' schema versions."""

    def __init__(self) -> None:
        self._topics: OrderedDict[str, TopicVersions] = OrderedDict()
        self._count = 0

    def get(self, topic: str) -> TopicVersions | None:
        """Return the versions of a topic, None if they are not cached."""
        found = self._topics.get(topic)
        if found is not None:
            self._topics.move_to_end(topic)
        return found

    def put(self, topic: str, versions: TopicVersions) -> None:
        """Cache the versions of a topic, and evict other topics above VERSIONS_MAX."""
        self.forget(topic)
        self._topics[topic] = versions
        self._count += len(versions.numbers) + 1
        while self._count > VERSIONS_MAX and len(self._topics) > 1:
            self.forget(next(iter(self._topics)))

    def added(self, topic: str, number: int, schema: Schema) -> None:
        """Add a stored version to a cached topic."""
        found = self._topics.get(topic)
        if found is not None:
            found.add(number, schema)
            self._count += 1

    def forget(self, topic: str) -> None:
        """Remove a topic from the cache."""
        found = self._topics.pop(topic, None)
        if found is not None:
            self._count -= len(found.numbers) + 1
