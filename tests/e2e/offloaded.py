"""Contents of an offload directory, and later messages in the box; without Spark."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from pulsarbox import PulsarBox
from pulsarbox.spark.connect.broker_api import LATEST, Service
from pulsarbox.spark.decode.entry_decoder import messages
from pulsarbox.spark.decode.message_columns import COLUMNS, Messages
from pulsarbox.spark.offload.layout import folder_of
from pulsarbox.spark.offload.manifest import OffloadManifest
from pulsarbox.spark.offload.object_path import ObjectPath, local_copy
from pulsarbox.spark.offload.offloading import Offload, OffloadRequest
from pulsarbox.spark.topic_segments import Reach, TopicSegment
from tests.e2e.histories import Row


def box_options(box: PulsarBox) -> dict[str, Any]:
    return {"service.url": box.service_url, "admin.url": box.admin_url}


def asked(box: PulsarBox, directory: Path | ObjectPath, *topics: str, **more: Any) -> OffloadRequest:
    known: dict[str, Any] = {"directory": directory, "box": box_options(box), "topics": topics, "grace_ms": 0}
    return OffloadRequest(**(known | more))


def offload(box: PulsarBox, directory: Path | ObjectPath, *topics: str, **more: Any) -> list[str]:
    """Run one offload, and return its problems."""
    return [each.problem for each in Offload(asked(box, directory, *topics, **more), lambda _: None).round()]


def files(directory: Path | ObjectPath, topic: str) -> list[Path | ObjectPath]:
    """Return the files of the manifest, in log order."""
    manifest = OffloadManifest(folder_of(directory, topic))
    return [manifest.folder / each.file for history in manifest.histories.values() for each in history.files]


def file_rows(stored: Path | ObjectPath) -> list[Row]:
    found = []
    with local_copy(stored) as path:
        rows = pq.ParquetFile(path).read().to_pylist()
    for row in rows:
        payload = row["__payload"] if "__payload" in row else row["value"]
        event = row["__eventTime"]
        found.append(
            (
                payload or b"",
                row["__key"],
                tuple(sorted(row["__messageProperties"])),
                round(event.timestamp() * 1000) if event else 0,
                row["__producerName"],
                round(row["__publishTime"].timestamp() * 1000),
                (row["__ledgerId"], row["__entryId"]),
            )
        )
    return found


def tail_rows(box: PulsarBox, directory: Path | ObjectPath, topic: str) -> list[Row]:
    """Return the rows in the box after the offloaded ledgers."""
    reach = Reach(box.service_url, box.admin_url, access="wire")
    found: list[Row] = []
    manifest = OffloadManifest(folder_of(directory, topic))
    with Service(reach) as service:
        segments: list[TopicSegment] = []
        for name, history in manifest.histories.items():
            segments += service.segments(name, history.next.place, LATEST, seen=history.next.seen)
    for some in (each for segment in segments for each in messages(segment, COLUMNS, reach)):
        found += _rows(some)
    return found


def _rows(some: Messages) -> list[Row]:
    return [
        (
            some.payload[at] or b"",
            some.key[at],
            tuple(sorted(properties)),
            some.event_time[at] or 0,
            some.producer_name[at],
            some.publish_time[at],
            (some.ledger[at], some.entry[at]),
        )
        for at, properties in enumerate(some.properties.pairs())
    ]


def all_rows(box: PulsarBox, directory: Path | ObjectPath, topic: str) -> list[Row]:
    """Return the offloaded rows, followed by the rows in the box."""
    return [row for path in files(directory, topic) for row in file_rows(path)] + tail_rows(box, directory, topic)
