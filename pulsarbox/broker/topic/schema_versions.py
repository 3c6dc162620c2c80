"""The versions of topics' schemas, in memory: enough of each to recognise it."""

from collections import OrderedDict
from hashlib import sha256
from typing import Final, NamedTuple

from pulsarbox.errors import IncompatibleSchema
from pulsarbox.protocol.PulsarApi_pb2 import Schema

VERSIONS_MAX: Final = 20_000
"""Versions that are kept in memory, of all topics together; each takes some 300 bytes."""
VERDICTS_MAX: Final = 64
"""Refused or accepted schemas that are remembered for a topic."""

Digest = tuple[int, bytes]
"""A type of schema, and a digest of its definition or of what it means."""


def digest_of(schema: Schema) -> Digest:
    """The digest by which a definition is recognised."""
    return schema.type, sha256(schema.schema_data).digest()


class Verdict(NamedTuple):
    """Which schema was checked, and by which strategy."""

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
        """How many versions were looked at for their meaning."""
        self.unknown: OrderedDict[Digest, None] = OrderedDict()
        """Definitions that mean the same as no version; it holds until a version is added."""
        self.verdicts: OrderedDict[Verdict, tuple[type[IncompatibleSchema], str] | None] = OrderedDict()
        """The errors of schemas that cannot be the next version, None for those that can."""

    def add(self, number: int, schema: Schema) -> None:
        """Append a version."""
        self.numbers.append(number)
        self.types.append(schema.type)
        self.by_digest.setdefault(digest_of(schema), number)
        self.unknown.clear()
        self.verdicts.clear()

    def recognise(self, digest: Digest, number: int | None) -> None:
        """Remember that a definition means the same as a version, or as none."""
        if number is None:
            self.unknown[digest] = None
            if len(self.unknown) > VERDICTS_MAX:
                self.unknown.popitem(last=False)
        elif len(self.by_digest) < len(self.numbers) + VERDICTS_MAX:
            self.by_digest[digest] = number

    def judge(self, verdict: Verdict, error: IncompatibleSchema | None) -> None:
        """Remember what came of a check; it holds until a version is added."""
        self.verdicts[verdict] = None if error is None else (type(error), str(error))
        if len(self.verdicts) > VERDICTS_MAX:
            self.verdicts.popitem(last=False)

    def tell(self, verdict: Verdict) -> None:
        """Raise the error that came of a check, if one did."""
        found = self.verdicts[verdict]
        if found is not None:
            kind, text = found
            raise kind(text)


class VersionCache:
    """The versions of the topics whose schemas were asked for last."""

    def __init__(self) -> None:
        self._topics: OrderedDict[str, TopicVersions] = OrderedDict()
        self._count = 0

    def get(self, topic: str) -> TopicVersions | None:
        """The versions of a topic, None where they are not in memory."""
        found = self._topics.get(topic)
        if found is not None:
            self._topics.move_to_end(topic)
        return found

    def put(self, topic: str, versions: TopicVersions) -> None:
        """Keep the versions of a topic, and forget those of others where there are too many."""
        self.forget(topic)
        self._topics[topic] = versions
        self._count += len(versions.numbers) + 1
        while self._count > VERSIONS_MAX and len(self._topics) > 1:
            self.forget(next(iter(self._topics)))

    def added(self, topic: str, number: int, schema: Schema) -> None:
        """A version is stored."""
        found = self._topics.get(topic)
        if found is not None:
            found.add(number, schema)
            self._count += 1

    def forget(self, topic: str) -> None:
        """The versions of a topic are deleted, or not wanted in memory."""
        found = self._topics.pop(topic, None)
        if found is not None:
            self._count -= len(found.numbers) + 1
