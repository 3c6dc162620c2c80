"""Names of objects, objects, and the manifest in numbered objects, in moto."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsarbox.spark.offload import manifest_parts, object_path, s3_access
from pulsarbox.spark.offload.layout import folder_of, topics_in
from pulsarbox.spark.offload.manifest import OffloadError, OffloadManifest, Writing
from pulsarbox.spark.offload.object_path import ObjectPath, place_of
from pulsarbox.spark.offload.offloading import identity
from pulsarbox.spark.offload.s3_access import StorageError
from pulsarbox.spark.source.offsets import Mark
from pulsarbox.spark.topic_segments import ReadPosition
from tests.unit.spark.offload import s3_server
from tests.unit.spark.offload.test_manifest import TOPIC, ledger


@pytest.fixture(scope="module")
def server() -> Iterator[None]:
    with s3_server.moto() as settings:
        object_path.use(settings)
        yield
        object_path.use(None)


@pytest.fixture
def root(server: None, tmp_path: Path) -> ObjectPath:
    found = place_of(f"s3://{s3_server.BUCKET}/{tmp_path.name}")
    assert isinstance(found, ObjectPath)
    return found


def test_places_are_directories_or_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/tmp")
    assert place_of("a/b") == Path("/tmp/a/b") and place_of(Path("/x")) == Path("/x")
    assert place_of("s3://b/k/l/") == place_of(Path("s3://b/k/l")) == ObjectPath("b", "k/l")
    assert place_of("s3://b") == ObjectPath("b", "") and str(ObjectPath("b", "") / "k") == "s3://b/k"
    for text in ("s3://", "s3://key:secret@b/x", "s3://b/x?endpoint=y", "s3://b/../x"):
        with pytest.raises(StorageError, match="expected s3://BUCKET/PREFIX") as caught:
            place_of(text)
        assert "secret" not in str(caught.value)
    with pytest.raises(StorageError, match=r"iceberg:lake/shop\.orders is an Iceberg table: expected a directory or"):
        place_of("iceberg:lake/shop.orders")


def test_objects_are_created_once_listed_and_deleted(root: ObjectPath, tmp_path: Path) -> None:
    one = root / "a b" / "x=1" / "%41.bin"
    assert not one.exists() and root.objects() == [] and root.folders() == []
    assert one.put_new(b"one") and one.put_new(b"one"), "as after a lost response"
    assert not one.put_new(b"two") and one.read_bytes() == b"one" and one.honours_conditions(b"one")
    (tmp_path / "local").write_bytes(bytes(20 << 20))
    (root / "large").upload(tmp_path / "local")
    assert sum(map(len, (root / "large").pieces())) == 20 << 20
    assert root.objects() == ["a b/x=1/%41.bin", "large"] and [each.name for each in root.folders()] == ["a b"]
    (root / "large").unlink()
    (root / "large").unlink()
    assert root.objects() == ["a b/x=1/%41.bin"]
    with pytest.raises(FileNotFoundError):
        (root / "large").read_bytes()


def test_a_manifest_is_read_from_its_parts(root: ObjectPath, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_parts, "WHOLE", 4)
    folder = folder_of(root, "orders")
    for number in range(1, 7):
        with Writing(folder) as writing:
            if number == 1:
                writing.begin(TOPIC, Mark(ReadPosition(1, 0), 0), "box")
                writing.schema("s", {"type": "struct", "fields": []})
            writing.ledger(ledger(number))
        found = OffloadManifest(folder)
        assert found.histories[TOPIC].ledgers == [ledger(each) for each in range(1, number + 1)]
        assert found.parts.number == number + 2
    assert [str(each) for each in topics_in(root)] == ["persistent://public/default/orders"]
    (folder / manifest_parts.FOLDER / "0000000001.jsonl").unlink()
    assert len(OffloadManifest(folder).histories[TOPIC].ledgers) == 6, "a whole part suffices"


def test_of_two_writers_one_stops(root: ObjectPath) -> None:
    folder = folder_of(root, "orders")
    first, second = Writing(folder), Writing(folder)
    first.begin(TOPIC, Mark(ReadPosition(1, 0), 0), "box")
    with pytest.raises(OffloadError, match="is being written by another offload"):
        second.begin(TOPIC, Mark(ReadPosition(1, 0), 5), "box")
    stray = folder / "partition=1" / "ledger=1.ab.parquet"
    assert stray.put_new(b"x")
    Writing(folder).clean(0)
    assert not stray.exists()
    with pytest.raises(OffloadError, match="is being written by another offload"):
        first.ledger(ledger(1))
    assert OffloadManifest(folder).histories[TOPIC].ledgers == []


def test_files_without_a_manifest_are_refused(root: ObjectPath) -> None:
    folder = folder_of(root, "orders")
    assert (folder / "partition=1" / "ledger=1.ab.parquet").put_new(b"x")
    with pytest.raises(OffloadError, match="is missing, but there are ledger files"):
        OffloadManifest(folder)


def test_a_place_has_one_identity_if_the_server_has_conditions(
    root: ObjectPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert identity(root) == identity(root)
    monkeypatch.setattr(s3_access, "put_new", lambda *_: True)
    with pytest.raises(OffloadError, match="ignores the header If-None-Match"):
        identity(root)
