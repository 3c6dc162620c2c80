"""A resumed query requires the same partitions as at its start."""

from pathlib import Path

import pytest

from pulsarbox.spark.sink.dedup_check import PARTITIONS, check_partitions_stay
from pulsarbox.spark.sink.epoch_client import SinkError


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
def test_a_query_keeps_its_partitions(tmp_path: Path, form: str) -> None:
    checkpoint = tmp_path / "check point"
    checkpoint.mkdir()
    where = form.format(str(checkpoint).replace(" ", "%20") if "file" in form else checkpoint)
    check_partitions_stay(where, 2)
    check_partitions_stay(where, 2)
    with pytest.raises(SinkError, match=r"was started with dedupPartitions=2.*Set 2, and repartition to it"):
        check_partitions_stay(where, 3)
    assert (checkpoint / PARTITIONS).read_text() == "2\n"


def test_what_is_not_here_is_not_looked_at(tmp_path: Path) -> None:
    for where in ("", str(tmp_path / "not yet"), "s3a://bucket/checkpoint", "hdfs:///checkpoint"):
        check_partitions_stay(where, 2)
    assert list(tmp_path.iterdir()) == []
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    (checkpoint / PARTITIONS).touch()
    check_partitions_stay(str(checkpoint), 2)
    assert (checkpoint / PARTITIONS).read_text() == "2\n", "a driver that was killed had not said it yet"
    (tmp_path / PARTITIONS).write_text("many")
    with pytest.raises(SinkError, match="cannot be read"):
        check_partitions_stay(str(tmp_path), 2)


def test_a_query_without_a_checkpoint_leaves_nothing_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    check_partitions_stay("", 2)
    assert not list(tmp_path.iterdir())
