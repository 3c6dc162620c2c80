"""Checks for delivery=dedup: that the topic deduplicates, according to the Admin API, and that the query's number of
partitions has not changed, according to a checkpoint on a local disk. Does not import pyspark."""

from typing import Final

from pulsarbox.client.admin import Admin, AdminRefused, path_of, quoted
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic
from pulsarbox.spark.connect.connections import admin_of
from pulsarbox.spark.durable_files import local, put
from pulsarbox.spark.sink.epoch_client import SinkError
from pulsarbox.spark.topic_segments import Reach

PARTITIONS: Final = "pulsarbox-dedup-partitions"
"""File in a checkpoint with the number of partitions that its query started with."""


def check_partitions_stay(checkpoint: str, partitions: int) -> None:
    """Check that a query's number of partitions is unchanged. Raises SinkError. Skips remote checkpoints."""
    directory = local(checkpoint)
    if directory is None:
        return
    file = directory / PARTITIONS
    try:
        text = file.read_text() if file.exists() else ""
        if not text:  # also empty if a driver was killed while writing it
            put(file, f"{partitions}\n")
            return
        known = int(text)
    except (OSError, ValueError) as error:
        raise SinkError(f"delivery=dedup: {file} cannot be read: {error}") from None
    if known != partitions:
        raise SinkError(
            f"delivery=dedup: this query was started with dedupPartitions={known}: with {partitions}, a rerun epoch "
            f"would be published twice. Set {known}, and repartition to it; or use a new checkpointLocation"
        )


def check_deduplicates(reach: Reach, topic: str) -> None:
    """Check that a topic's deduplication is on. Raises SinkError if it is off or unknown."""
    with admin_of(reach) as admin:
        try:
            found = _of_topic(admin, topic)
        except PulsarBoxError as error:
            raise SinkError(
                f"delivery=dedup: cannot determine whether {topic} deduplicates, from {reach.admin_url}: {error}"
            ) from error
    if not found:
        raise SinkError(
            f"delivery=dedup: deduplication is off for {topic}, so rerun rows would be published twice. Enable it with "
            f"`pulsarbox admin topics set-deduplication {topic} --enable`, or use delivery=at-least-once"
        )


def _of_topic(admin: Admin, topic: str) -> bool:
    """Return whether deduplication applies to a topic, or would apply if it existed."""
    name = parse_topic(topic)
    try:
        return bool(admin.ask("GET", f"{path_of(name)}/deduplicationEnabled", applied="true"))
    except AdminRefused as error:
        if error.status != 404:
            raise
    found = admin.ask("GET", f"/namespaces/{quoted(name.tenant, name.namespace_local)}/deduplication")
    if found is None:
        found = admin.ask("GET", "/brokers/configuration/runtime").get("brokerDeduplicationEnabled") == "true"
    return bool(found)
