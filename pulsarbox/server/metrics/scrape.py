"""One scrape: samples the values of all loaded topics, then formats them, over many turns of the loop.

All values are sampled before the first line, because the format requires all lines of a metric together. Measured:
10,000 topics of one subscription each give some 650,000 lines.
"""

from collections.abc import Iterator
from itertools import islice

from pulsarbox.broker.broker import Broker
from pulsarbox.broker.topic.topic import PersistentTopic, Topic
from pulsarbox.clock import Now
from pulsarbox.names import TopicName
from pulsarbox.server.metrics import box, compression, pipelines, plugins, table
from pulsarbox.server.metrics.compaction import COMPACTION, CompactionRow
from pulsarbox.server.metrics.exposition import Metric, Rows, labels, text_of
from pulsarbox.server.metrics.rows import ConsumerRow, ProducerRow, SubscriptionRow, TopicRow, look

TOPICS_AT_ONCE = 20
"""Topics sampled per turn of the loop."""

Told = tuple[Metric, Rows]


def scrape(broker: Broker, now: Now) -> Iterator[bytes]:
    """Yield the text in pieces, each of little work. Empty pieces are samples of some topics."""
    return _Scrape(broker, now).pieces()


class _Scrape:
    """The values sampled so far by one scrape."""

    def __init__(self, broker: Broker, now: Now) -> None:
        self._broker = broker
        self._settings = broker.settings
        self._now = now
        self._cluster = labels(cluster=self._settings.clusterName)
        self._latencies = broker.commits.times.last_minute(now)
        self._topics: list[tuple[str, TopicRow]] = []
        self._namespaces: dict[str, TopicRow] = {}
        self._counts: dict[str, int] = {}
        """Number of topics per namespace."""
        self._compactions: list[tuple[str, CompactionRow]] = []
        self._subscriptions: list[tuple[str, SubscriptionRow]] = []
        self._producers: list[tuple[str, ProducerRow]] = []
        self._consumers: list[tuple[str, ConsumerRow]] = []

    def pieces(self) -> Iterator[bytes]:
        left = iter(list(self._broker.topics))
        while some := list(islice(left, TOPICS_AT_ONCE)):
            for topic in some:
                self._sample(topic)
            yield b""
        by_topic = self._settings.exposeTopicLevelMetricsInPrometheus
        yield from text_of(self._by_topic() if by_topic else self._by_namespace())
        for piece in text_of(self._box()):  # with many topics, each of these sums takes a turn
            yield b""
            yield piece

    def _sample(self, topic: Topic) -> None:
        settings = self._settings
        found = look(topic, self._latencies, self._now)
        namespace = topic.name.namespace
        self._counts[namespace] = self._counts.get(namespace, 0) + 1
        if not settings.exposeTopicLevelMetricsInPrometheus:
            before = self._namespaces.get(namespace)
            self._namespaces[namespace] = found.topic if before is None else before.plus(found.topic)
            return
        of = self._labels(topic.name)
        self._topics.append((of, found.topic))
        compaction = CompactionRow.of(topic, self._now) if isinstance(topic, PersistentTopic) else None
        if compaction is not None:
            self._compactions.append((of, compaction))
        if settings.exposeProducerLevelMetricsInPrometheus:
            for producer, row in found.producers:
                more = labels(producer_name=producer.name, producer_id=str(producer.producer_id))
                self._producers.append((f"{of},{more}", row))
        for subscription, all_together, rows in found.subscriptions:
            of_it = f"{of},{labels(subscription=subscription.name)}"
            self._subscriptions.append((of_it, all_together))
            if settings.exposeConsumerLevelMetricsInPrometheus:
                for consumer, each in zip(subscription.consumers, rows, strict=True):
                    more = labels(consumer_name=consumer.name, consumer_id=str(consumer.consumer_id))
                    self._consumers.append((f"{of_it},{more}", each))

    def _labels(self, name: TopicName) -> str:
        if not self._settings.splitTopicAndPartitionLabelInPrometheus:
            return f"{self._cluster},{labels(namespace=name.namespace, topic=str(name))}"
        more = labels(namespace=name.namespace, topic=str(name.base), partition=str(name.partition_index))
        return f"{self._cluster},{more}"

    def _by_topic(self) -> Iterator[Told]:
        counts = [(self._of_namespace(name), count) for name, count in self._counts.items()]
        yield table.TOPICS_COUNT._replace(value=box.itself), counts
        for metric in table.TOPIC:
            yield metric, self._topics
        for metric in COMPACTION:
            yield metric, self._compactions
        for metric in table.OUT:
            yield metric, self._subscriptions
            yield metric, self._consumers
        for metric in table.SUBSCRIPTION:
            yield metric, self._subscriptions
        throttled = [
            (f'{of},reason="{counted[0]}"', counted) for of, row in self._subscriptions for counted in row.throttled
        ]
        for metric in table.THROTTLED:
            yield metric, throttled
        standing = [(f'{of},reason="{row.standstill}"', row) for of, row in self._subscriptions if row.standstill]
        yield table.STANDSTILL, standing
        for metric in table.PRODUCER:
            yield metric, self._producers
        for metric in table.CONSUMER:
            yield metric, self._consumers

    def _by_namespace(self) -> Iterator[Told]:
        rows = [(self._of_namespace(name), row) for name, row in self._namespaces.items()]
        for metric in table.NAMESPACE:
            yield metric, rows

    def _of_namespace(self, name: str) -> str:
        return f"{self._cluster},{labels(namespace=name)}"

    def _box(self) -> Iterator[Told]:
        rows = [row for _, row in self._topics] or list(self._namespaces.values())
        yield from box.sums(rows, self._cluster)
        yield from box.commits(self._broker.commits.times, self._latencies, self._cluster)
        yield from box.cache(self._broker, rows, self._cluster, self._now)
        yield from box.store(self._broker, self._cluster)
        yield from box.around(self._broker, self._cluster)
        yield from box.authentication(self._broker, self._cluster)
        yield from box.transactions(self._broker, self._cluster)
        yield from box.process_of(self._broker, self._cluster)
        yield from plugins.costs(self._broker.plugins, self._cluster)
        yield from pipelines.reported(self._broker.pipelines, self._cluster, self._now)
        yield from compression.compressed(self._broker.store.compressed(), self._cluster)
        yield from compression.unpacked(self._broker.store.unpacked(), self._cluster)
        watched = self._broker.host.ensemble
        if watched is not None:
            from pulsarbox.server.metrics.ensemble import ensemble

            yield from ensemble(watched.status(), watched.progress, self._cluster)
