"""The messages of a topic read without Spark: in place, over the network, and by the official client's reader."""

import random
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from pulsarbox import PulsarBox
from pulsarbox.spark.access import mapped_reader
from pulsarbox.spark.connect.broker_api import LATEST, Range, Service
from pulsarbox.spark.decode.entry_decoder import messages
from pulsarbox.spark.decode.message_columns import COLUMNS, Messages
from pulsarbox.spark.topic_segments import BEGINNING, Reach, ReadPosition, TopicSegment
from tests.e2e.histories import SMALL, History, Row, truth, wait_for_packing
from tests.tools.campaigns import short


def reach_of(box: PulsarBox, access: str, data: Path | str = "", **more: Any) -> Reach:
    return Reach(box.service_url, box.admin_url, str(data), access, **more)


def rows_of(some: Messages) -> list[Row]:
    columns = (
        [payload or b"" for payload in some.payloads()], some.key, some.properties.pairs(), some.event_time,
        some.producer_name, some.publish_time, some.ledger, some.entry,
    )  # fmt: skip
    assert {len(column) for column in columns} == {some.rows}
    return [
        (payload, key, tuple(sorted(properties)), event or 0, producer, published, (ledger, entry))
        for payload, key, properties, event, producer, published, ledger, entry in zip(*columns, strict=True)
    ]


def read(segments: list[TopicSegment], reach: Reach) -> list[Row]:
    return [row for segment in segments for some in messages(segment, COLUMNS, reach) for row in rows_of(some)]


def anywhere(segments: list[TopicSegment]) -> list[TopicSegment]:
    """Drop the volume, because packing moves entries at any time."""
    return [each._replace(volumes=()) for each in segments]


def service_segments(box: PulsarBox, topic: str) -> list[TopicSegment]:
    with Service(reach_of(box, "wire")) as service:
        return service.segments(topic, BEGINNING, LATEST)


@pytest.mark.parametrize("seed", short([4, 8, 11], 1))
def test_all_ways_to_read_give_the_same(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    data = tmp_path / "data"
    with PulsarBox(data_dir=data, process=True, **SMALL, managedLedgerMaxEntriesPerLedger=dice.choice((7, 50))) as box:
        history = History(box, "t", seed)
        told = list(history.steps(25))
        wait_for_packing(box)
        expected = truth(box, "t")
        topic = "persistent://public/default/t"
        segments = service_segments(box, topic)
        parts = [part for each in segments for part in each.parts(dice.choice((500, 5000, 1 << 20)))]
        assert read(parts, reach_of(box, "mmap", data)) == expected, told
        beside = service_segments(box, "persistent://public/default/t-beside")
        with Service(reach_of(box, "wire")) as service:
            middle = ReadPosition(segments[-1].ledger, segments[-1].last, 1)
            ranges = [
                Range(topic, BEGINNING, LATEST), Range(topic, BEGINNING, middle), Range(topic, middle, middle),
                Range(f"{topic}-beside", BEGINNING, LATEST),
            ]  # fmt: skip
            one_by_one = [service.segments(*each[:3]) for each in ranges]
            assert [anywhere(some) for some in service.many_segments(ranges)] == list(map(anywhere, one_by_one))
        both = [each for pair in zip_longest(parts, beside) for each in pair if each is not None]
        swept = [row for some in messages(both, COLUMNS, reach_of(box, "mmap", data)) if some.topic == topic
                 for row in rows_of(some)]  # fmt: skip
        assert sorted(swept, key=lambda row: row[-1]) == expected, told
        several = list(messages(both, COLUMNS, reach_of(box, "mmap", data), mixed=True))
        assert any(some.of for some in several), "nothing was read as it stands"
        found = [row for some in several for row, of in zip(rows_of(some), some.of or [-1] * some.rows, strict=True)
                 if some.name_of(of) == topic]  # fmt: skip
        assert sorted(found, key=lambda row: row[-1]) == expected, told
        assert read(segments, reach_of(box, "wire")) == expected, told
        for mixed in (True, False):
            several = list(messages(both, COLUMNS, reach_of(box, "wire"), mixed=mixed))
            assert mixed or not any(some.of for some in several)
            wired = [row for some in several for row, of in zip(rows_of(some), some.of or [-1] * some.rows, strict=True)
                     if some.name_of(of) == topic]  # fmt: skip
            assert sorted(wired, key=lambda row: row[-1]) == expected, told
        mapped_reader.close_all()
        history.close()
