"""The manifest with a truncated line, a wrong byte, or two writers."""

from pathlib import Path

import pytest

from pulsarbox.spark.offload.layout import MANIFEST, file_of, folder_of, topics_in
from pulsarbox.spark.offload.manifest import Gap, OffloadedLedger, OffloadError, OffloadManifest, Writing
from pulsarbox.spark.offload.verifying import choice, verify
from pulsarbox.spark.source.offsets import Mark
from pulsarbox.spark.topic_segments import ReadPosition

TOPIC = "persistent://public/default/t-partition-1"


def ledger(number: int, rows: int = 3) -> OffloadedLedger:
    return OffloadedLedger(
        topic=TOPIC, ledger=number, entries=rows, rows=rows, messages=rows, payload_bytes=9,
        file=file_of(TOPIC, number), file_bytes=7, file_checksum="ab", content={"value": "cd"}, schema="s",
        first=f"{number}:0", last=f"{number}:{rows - 1}", publish_time=(1, 2), event_time=None, before=0,
        after=rows * number, closed=5, unfinished=("1:2",), lost=(), at=6,
    )  # fmt: skip


def write(folder: Path) -> None:
    with Writing(folder) as writing:
        writing.begin(TOPIC, Mark(ReadPosition(1, 0), 0), "box")
        writing.schema("s", {"type": "struct", "fields": []})
        writing.ledger(ledger(1))
        writing.ledger(ledger(2))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write(tmp_path)
    with Writing(tmp_path) as writing:
        writing.lost(TOPIC, Gap(ReadPosition(2, 3), Mark(ReadPosition(5, 0), 20), "gone"))
    found = OffloadManifest(tmp_path)
    history = found.histories[TOPIC]
    assert history.ledgers == [ledger(1), ledger(2)] and found.schemas == {"s": {"type": "struct", "fields": []}}
    assert history.next == Mark(ReadPosition(5, 0), 20) and history.begin == Mark(ReadPosition(1, 0), 0)
    assert history.gaps == [Gap(ReadPosition(2, 3), Mark(ReadPosition(5, 0), 20), "gone")]


def test_wherever_it_is_cut_the_whole_lines_stay_and_it_can_be_gone_on_with(tmp_path: Path) -> None:
    write(tmp_path)
    path = tmp_path / MANIFEST
    whole = path.read_bytes()
    ends = [at + 1 for at, byte in enumerate(whole) if byte == 10]
    for cut in range(ends[1], len(whole), 7):
        path.write_bytes(whole[:cut])
        lines = sum(end <= cut for end in ends)
        assert len(OffloadManifest(tmp_path).histories[TOPIC].ledgers) == max(0, lines - 2)
    path.write_bytes(whole[:-5])
    with Writing(tmp_path) as writing:
        writing.ledger(ledger(3))
    assert [each.ledger for each in OffloadManifest(tmp_path).histories[TOPIC].ledgers] == [1, 3]


@pytest.mark.parametrize("at", [10, 100, 300])
def test_a_wrong_byte_is_said(tmp_path: Path, at: int) -> None:
    write(tmp_path)
    path = tmp_path / MANIFEST
    stored = bytearray(path.read_bytes())
    stored[at] ^= 1
    path.write_bytes(stored)
    with pytest.raises(OffloadError, match=r"line [123]: its bytes do not match"):
        OffloadManifest(tmp_path)


def test_one_that_is_gone_is_not_one_that_never_was(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "orders")
    with Writing(folder):
        pass
    manifest = folder / "_manifest.jsonl"
    manifest.unlink()
    assert OffloadManifest(folder).histories == {} and list(topics_in(tmp_path)) == []
    (folder / "partition=none").mkdir()
    (folder / "partition=none" / "ledger=3.parquet").touch()
    with pytest.raises(
        OffloadError, match=r"_manifest.jsonl is missing, but there are ledger files\. Restore the file"
    ):
        OffloadManifest(folder)
    (found,) = verify(tmp_path, choice((), ""))
    assert found.topic == "persistent://public/default/orders" and "is missing" in found.problems[0]


def test_two_do_not_write_at_once(tmp_path: Path) -> None:
    with Writing(tmp_path), pytest.raises(OffloadError, match="another offload, process"):
        Writing(tmp_path)
    with Writing(tmp_path):
        pass


@pytest.mark.parametrize("local", ["t", "..", "_t", "a%2Fb c", "{x}*", "ü%41"])
def test_any_name_has_a_folder_of_its_own_and_is_found_again(tmp_path: Path, local: str) -> None:
    topic = f"persistent://public/default/{local}"
    folder = folder_of(tmp_path, topic)
    assert folder.parent == tmp_path / "public" / "default" and folder.name[0] not in "._"
    with Writing(folder):
        pass
    assert [str(name) for name in topics_in(tmp_path)] == [topic]
