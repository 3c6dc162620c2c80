"""Replay of dead letters by a Spark job: staged, published to their origin, and acknowledged, each once."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pulsarbox.client.multi_topic_consumer import MultiTopicConsumer
from pulsarbox.client.partition_consumer import Subscribing
from pulsarbox.errors import PulsarBoxError
from pulsarbox.protocol.PulsarApi_pb2 import MessageIdData
from pulsarbox.spark.connect.connections import client_of
from pulsarbox.spark.pipelines.shipped.publish_job import NUMBER, PublishJob
from pulsarbox.spark.pipelines.shipped.publishing import Publishing, publish, put_aside, remove
from pulsarbox.spark.pipelines.shipped.triage import OURS, Triage, in_order, looked_at, ways
from pulsarbox.spark.spark_naming import unglobbed
from pulsarbox.spark.topic_segments import Reach

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SENT: Final = ("value", "__key", "__orderingKey", "__eventTime", "__messageProperties", "__topic")
"""Columns of a replayed message."""
PORTION: Final = 10_000
"""Entries per acknowledgement."""


@dataclass(frozen=True)
class Replayed:
    """Result of a job."""

    ways: list[dict[str, Any]]
    """Message counts by ``target``, and by ``refused``, the reason for not replaying."""
    acknowledged: int
    """Number of messages; 0 without a subscription."""

    @property
    def put_back(self) -> int:
        """The number of replayed messages."""
        return sum(way["messages"] for way in self.ways if not way["refused"])

    @property
    def refused(self) -> int:
        """The number of messages not replayed."""
        return sum(way["messages"] for way in self.ways if way["refused"])


def replay(spark: "SparkSession", job: PublishJob, triage: Triage, how: Publishing, parquet: str = "") -> Replayed:
    """Run the remaining steps of a job. Raises PulsarBoxError and Spark's errors."""
    progress = job.progress
    job.claim(how.box, how.namespace)
    put_aside(job, lambda: _chosen(spark, job, triage), how.size)
    publish(spark, job, [*SENT], how)
    if parquet:
        _letters(spark, job).drop(*OURS).write.mode("overwrite").parquet(f"{parquet.rstrip('/')}/job={job.name}")
    if triage.subscription and progress.rows:
        rows = spark.read.parquet(unglobbed(job.rows_at)).orderBy(NUMBER).select("sampleTopic", "messageId")
        progress.acknowledged = acknowledge(triage.reach, triage.subscription, _ids(rows))
    return ended(job)


def ended(job: PublishJob) -> Replayed:
    """End a job, possibly again, and return its result."""
    job.end(remove)
    remove(_letters_at(job))
    return Replayed(job.progress.note, job.progress.acknowledged)


def _letters_at(job: PublishJob) -> Path:
    return job.directory / "letters"


def _letters(spark: "SparkSession", job: PublishJob) -> "DataFrame":
    return spark.read.parquet(unglobbed(_letters_at(job)))


def _chosen(spark: "SparkSession", job: PublishJob, triage: Triage) -> "DataFrame":
    """Return the letters to replay, in order. All matches are stored first, so that the counts agree."""
    looked_at(spark, triage).write.mode("overwrite").parquet(str(_letters_at(job)))
    letters = _letters(spark, job)
    job.progress.note = [row.asDict() for row in ways(letters).collect()]
    return in_order(letters.where("whyNot = ''"))


def _ids(rows: "DataFrame") -> Iterator[tuple[str, bytes]]:
    for row in rows.toLocalIterator():
        yield row["sampleTopic"], bytes(row["messageId"])


def acknowledge(to: Reach, subscription: str, ids: Iterable[tuple[str, bytes]]) -> int:
    """Acknowledge messages, given by topic and ID and grouped by topic; return their number. Idempotent.

    Raises PulsarBoxError if the subscription has another consumer.
    """
    count = 0
    client = client_of(to)
    try:
        for topic, of_topic in groupby(ids, key=itemgetter(0)):
            consumer = MultiTopicConsumer(client, Subscribing(subscription, create=False, queue=1))
            parts = consumer.add(topic)
            for messages, places in in_portions(told for _, told in of_topic):
                count += messages
                for part in parts:
                    part.acknowledge_places(places)
                    part.settle()
            consumer.close()
    except PulsarBoxError as error:
        raise PulsarBoxError(f"replayed, but not acknowledged on {subscription}: {error}; run it again") from error
    finally:
        client.close()
    return count


def in_portions(ids: Iterable[bytes]) -> Iterator[tuple[int, list[MessageIdData]]]:
    """Yield the messages of a topic by entry: the number of messages, and at most PORTION entries. Each entry is listed
    once if its messages are adjacent."""
    entries = groupby(map(MessageIdData.FromString, ids), key=lambda each: (each.ledgerId, each.entryId))
    while some := list(islice(((place, sum(1 for _ in messages)) for place, messages in entries), PORTION)):
        places = [MessageIdData(ledgerId=ledger, entryId=entry) for (ledger, entry), _ in some]
        yield sum(messages for _, messages in some), places
