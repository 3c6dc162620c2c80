"""Routing of messages to partitions by plugins, in this client and in the official Python client."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pulsarbox.plugins.contracts import Backlogs, Choose, Producing, Unrouted
from pulsarbox.plugins.guard import Guard, Tell, Trouble
from pulsarbox.plugins.opening import INSTEAD, opened
from pulsarbox.plugins.registry import built_in, get

ROUTE: Final = INSTEAD
HASHING: Final = "java"
"""The default of Java clients."""

_BY_BATCH: Final = frozenset(("round-robin", "single", "key", "consistent"))
"""Built-in routes that send all messages of a batch to one partition if they have neither key nor properties."""

log = logging.getLogger(__name__)


def _none_known() -> Sequence[int]:
    return ()


def _logged(trouble: Trouble) -> None:
    log.warning("%s%s", trouble, f"\n{trouble.trace}" if trouble.trace else "")


@dataclass(frozen=True, slots=True)
class PartitionRouter:
    """Routing options of a producer."""

    name: str = ROUTE
    options: Mapping[str, str] = field(default_factory=dict)
    hashing: str = HASHING
    directory: Path | None = None
    """Directory of plugin files."""
    backlogs: Backlogs = _none_known
    warn: Tell = _logged
    """Called when a plugin fails."""

    @property
    def by_batch(self) -> bool:
        """Whether a batch of messages without attributes can be routed as one."""
        return self.name in _BY_BATCH

    def open(self, topic: str) -> Choose:
        """Open the router for a producer of that topic. Raises PluginError for an invalid plugin or option."""
        producing = Producing(topic, self._hash32(), self.backlogs, self.options)
        guard = None
        if self.name not in built_in("routing"):
            guard = Guard("routing", self.name, time.perf_counter_ns, self.warn)
        return opened(get("routing", self.name, self.directory), producing, guard)

    def _hash32(self) -> Callable[[bytes], int]:
        hash32: Callable[[bytes], int] = get("hashing", self.hashing, self.directory).hash32
        if self.hashing in built_in("hashing"):
            return hash32
        murmur3 = get("hashing", "murmur3").hash32
        return Guard("hashing", self.hashing, time.perf_counter_ns, self.warn).hashing(hash32, murmur3)


def made_router(
    name: str,
    topic: str,
    hashing: str,
    options: Mapping[str, str],
    directory: Path | None,
    admin_url: str,
    batch_messages: int,
) -> Callable[[Any, int], int]:
    """See ``pulsarbox.client.router``."""
    if batch_messages < 1:
        raise ValueError(f"batch_messages must be at least 1, not {batch_messages}")
    if admin_url and not topic:
        raise ValueError("admin_url requires topic=, the topic whose backlogs are read")
    backlogs = _backlogs(admin_url, topic) if admin_url else _none_known
    return message_router(PartitionRouter(name, options, hashing, directory, backlogs), topic, batch_messages)


def _backlogs(admin_url: str, topic: str) -> Backlogs:
    from urllib.parse import urlsplit

    from pulsarbox.client.admin import Admin
    from pulsarbox.client.backlogs import ANSWER_SECONDS, PartitionBacklogs

    parts = urlsplit(admin_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"invalid admin_url {admin_url!r}: expected a URL such as http://localhost:8080")
    secure = parts.scheme == "https"
    address = (parts.hostname, parts.port or (443 if secure else 80))
    return PartitionBacklogs(lambda: Admin([address], ANSWER_SECONDS, secure=secure), topic, log.warning)


def message_router(route: PartitionRouter, topic: str, batch_messages: int) -> Callable[[Any, int], int]:
    """Wrap ``route`` as a ``message_router`` of the official Python client."""
    choose = route.open(topic)
    numbers = itertools.count()  # next() is atomic: several threads may publish

    def chosen(message: Any, partitions: int) -> int:
        number = next(numbers)
        key = message.partition_key().encode() or None  # the client does not distinguish no key from an empty one
        data = message.data()
        return choose(Unrouted(key, message.properties(), len(data), number, number // batch_messages), partitions)

    return chosen
