"""Partition routing of messages that the box publishes itself: HTTP produce, dead letters, replays.

The topic properties ``routing``, ``routingHashing`` and ``routingOptions`` override the settings of these names. To
routers the box is a single producer per topic, so round-robin routing continues across requests.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from pulsarbox.broker.plugins import Plugins
from pulsarbox.broker.topic.registry import Topics
from pulsarbox.broker.topic.topic import PersistentTopic
from pulsarbox.clock import BEGINNING, Now
from pulsarbox.config import Settings
from pulsarbox.names import TopicName
from pulsarbox.plugins.contracts import Choose, Producing, Unrouted
from pulsarbox.plugins.opening import INSTEAD
from pulsarbox.plugins.registry import PluginError
from pulsarbox.protocol.metadata import key_values
from pulsarbox.protocol.PulsarApi_pb2 import MessageMetadata

_TOPICS_MAX: Final = 1000
"""Topics whose routing state is kept, least recently used evicted first."""
_BACKLOGS_SECONDS: Final = 1.0
_AGAIN_SECONDS: Final = 0.1
_JAVA: Final = "java"

How = tuple[str, str, str]
"""Router name, hash name and options."""


class _Routed:
    """Routing state of one topic."""

    def __init__(self, how: How) -> None:
        self.how = how
        self.choose: Choose | None = None
        """None until its plugin is loaded; ``instead`` chooses until then, or if the plugin is not available."""
        self.instead: Choose | None = None
        self.again = 0.0
        """When to request the plugin again (monotonic seconds)."""
        self.sequence = 0


class PartitionRouting:
    """Chooses the partition of each message."""

    def __init__(self, settings: Settings, plugins: Plugins, topics: Topics) -> None:
        self._settings = settings
        self._plugins = plugins
        self._topics = topics
        self._routed: dict[str, _Routed] = {}
        self._now = BEGINNING
        """Time of the last message."""

    def route(self, name: TopicName, metadata: MessageMetadata, size: int, partitions: int, now: Now) -> int:
        """Return the partition, from 0, for a message of ``size`` bytes; never raises.

        A message without a partition key is routed by its ordering key. Clients would choose any partition, but
        messages moved from one topic to another should keep their order.
        """
        self._now = now
        routed = self._of(name)
        key: str | bytes | None = None
        if metadata.HasField("partition_key"):
            key = metadata.partition_key
        elif metadata.HasField("ordering_key"):
            key = metadata.ordering_key
        if isinstance(key, str):
            key = key.encode()
        sequence = routed.sequence
        routed.sequence += 1
        message = Unrouted(key, key_values(metadata.properties), size, sequence, sequence)
        return self._chooser(name, routed)(message, partitions)

    def _of(self, name: TopicName) -> _Routed:
        settings, own = self._settings, self._topics.partitioned_properties(name)
        how = (
            own.get("routing") or settings.routing,
            own.get("routingHashing") or settings.routingHashing,
            own.get("routingOptions") or settings.routingOptions,
        )
        found = self._routed.pop(str(name), None)
        if found is None or found.how != how:
            found = _Routed(how)
        self._routed[str(name)] = found  # most recently used
        if len(self._routed) > _TOPICS_MAX:
            del self._routed[next(iter(self._routed))]
        return found

    def _chooser(self, name: TopicName, routed: _Routed) -> Choose:
        if routed.choose is not None:
            return routed.choose
        if routed.instead is not None and self._now.monotonic < routed.again:
            return routed.instead
        routed.again = self._now.monotonic + _AGAIN_SECONDS
        router, hashing, options = routed.how
        try:
            routed.choose = self._made(name, router, hashing, options)
            return routed.choose
        except PluginError:  # loading, or unavailable, which has been reported
            routed.instead = routed.instead or self._made(name, INSTEAD, _JAVA, "")
            return routed.instead

    def _made(self, name: TopicName, router: str, hashing: str, options: str) -> Choose:
        told = dict(named_values(options))
        waiting = _Waiting(self._topics, name, lambda: self._now)
        return self._plugins.router(router, hashing, lambda hash32: Producing(str(name), hash32, waiting, told))


class _Waiting:
    """Backlog of each partition over all subscriptions, for routers; see Backlogs."""

    def __init__(self, topics: Topics, name: TopicName, clock: Callable[[], Now]) -> None:
        self._topics = topics
        self._name = name
        self._clock = clock
        self._known: Sequence[int] = ()
        self._next = float("-inf")

    def __call__(self) -> Sequence[int]:
        now = self._clock()
        if now.monotonic >= self._next:
            self._next = now.monotonic + _BACKLOGS_SECONDS
            count = self._topics.partitions(self._name)
            self._known = [self._in(self._name.partition(i), now) for i in range(count)]
        return self._known

    def _in(self, part: TopicName, now: Now) -> int:
        topic = self._topics.find(part, now)
        if not isinstance(topic, PersistentTopic):
            return 0
        return sum(each.cursor.backlog_messages for each in topic.subscriptions.values())


def named_values(text: str) -> Iterator[tuple[str, str]]:
    """Parse ``a=b,c=d`` into pairs; an item without ``=`` has an empty value."""
    for each in text.split(","):
        name, _, value = each.strip().partition("=")
        if name:
            yield name, value
