"""Reports of offloaded ledgers to the box."""

from pathlib import Path
from typing import Any

import pytest

from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import OFFLOADED_PROPERTY
from pulsarbox.spark.offload import offloading
from pulsarbox.spark.offload.ledgers import offloaded_range
from pulsarbox.spark.offload.offloading import Offload, OffloadRequest
from pulsarbox.spark.topic_segments import BEGINNING, ReadPosition

TOPIC = "persistent://public/default/t"
BEGIN, END = ReadPosition(3, 0), ReadPosition(7, 10)


@pytest.mark.parametrize(
    ("begin", "end", "text"),
    [
        (BEGIN, END, "3-7"),
        (BEGIN, ReadPosition(3, 1), "3-3"),
        (BEGIN, BEGIN, ""),
        (BEGIN, ReadPosition(9, 0), "3-8"),
        (BEGINNING, BEGINNING, ""),
        (BEGINNING, END, "0-7"),
    ],
)
def test_a_range_ends_with_the_last_complete_ledger(begin: ReadPosition, end: ReadPosition, text: str) -> None:
    assert offloaded_range(begin, end) == text


class BoxService:
    """Substitute for the connection to a box."""

    def __init__(self, *_: Any) -> None:
        self.sent: list[tuple[str, str, dict[str, str]]] = []
        self.error: PulsarBoxError | None = None

    def __call__(self, _: Any) -> "BoxService":
        return self

    def __enter__(self) -> "BoxService":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def set_properties(self, topic: str, subscription: str, properties: dict[str, str]) -> None:
        if self.error is not None:
            raise self.error
        self.sent.append((topic, subscription, properties))


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> BoxService:
    found = BoxService()
    monkeypatch.setattr(offloading, "Service", found)
    return found


def offload(directory: Path, said: list[str], **more: Any) -> Offload:
    box = {"service.url": "pulsar://127.0.0.1:1", "admin.url": "http://127.0.0.1:1"}
    return Offload(OffloadRequest(directory=directory, box=box, topics=("t",), **more), said.append)


def test_what_has_changed_is_reported_at_intervals_and_at_the_end(
    tmp_path: Path, service: BoxService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offloading, "REPORT_SECONDS", 3600)
    said: list[str] = []
    it = offload(tmp_path, said)
    it.report_offloaded(TOPIC, BEGIN, BEGIN, now=False)
    it.report_offloaded(TOPIC, BEGIN, END, now=False)
    it.report_offloaded(TOPIC, BEGIN, ReadPosition(8, 10), now=False)
    it.report_offloaded(TOPIC, BEGIN, ReadPosition(8, 10))
    it.report_offloaded(TOPIC, BEGIN, ReadPosition(8, 10))
    assert [(name, told[OFFLOADED_PROPERTY]) for _, name, told in service.sent] == [
        (it.subscription, "3-7"),
        (it.subscription, "3-8"),
    ]
    assert not said


def test_a_failed_report_is_printed_once_and_repeated(tmp_path: Path, service: BoxService) -> None:
    said: list[str] = []
    it = offload(tmp_path, said)
    service.error = PulsarBoxError("not allowed")
    it.report_offloaded(TOPIC, BEGIN, END)
    it.report_offloaded(TOPIC, BEGIN, ReadPosition(8, 10))
    assert said == [f"{TOPIC}: the statistics of the box do not show what has been offloaded: not allowed"]
    service.error = None
    it.report_offloaded(TOPIC, BEGIN, ReadPosition(8, 10))
    assert [told for *_, told in service.sent] == [{OFFLOADED_PROPERTY: "3-8"}]


def test_without_a_subscription_nothing_is_reported(tmp_path: Path, service: BoxService) -> None:
    offload(tmp_path, [], hold=False).report_offloaded(TOPIC, BEGIN, END)
    assert not service.sent
