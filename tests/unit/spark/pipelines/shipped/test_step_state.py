"""Data that a stream stores beside its checkpoint: a repeated micro-batch has the same output."""

from pathlib import Path
from typing import Any

import pytest

from pulsarbox.spark.pipelines.shipped.step_state import RETAINED, BatchState, Keeping, KeptError


def counting(state: Any) -> BatchState:
    """Output and store the number of micro-batches."""
    number = (state or 0) + 1
    return BatchState([number], number)


def test_each_goes_on_where_the_one_before_has_stopped(tmp_path: Path) -> None:
    assert [Keeping(tmp_path / "kept", "q").once(number, counting) for number in (0, 1, 5)] == [[1], [2], [3]]


def test_one_that_runs_again_puts_out_the_same(tmp_path: Path) -> None:
    keeping = Keeping(tmp_path, "q")
    keeping.once(0, counting)
    assert keeping.once(1, lambda state: BatchState(["first"], state)) == ["first"]
    assert keeping.once(1, lambda state: BatchState(["again"], 99)) == ["first"]
    assert keeping.once(2, counting) == [2]


def test_of_two_attempts_at_a_time_the_first_one_counts(tmp_path: Path) -> None:
    keeping = Keeping(tmp_path, "q")

    def overtaken(state: Any) -> BatchState:
        keeping.once(0, lambda _: BatchState(["other"], 7))
        return BatchState(["mine"], 1)

    assert keeping.once(0, overtaken) == ["other"]
    assert keeping.once(1, counting) == [8]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["0.json", "1.json"]


def test_old_ones_go(tmp_path: Path) -> None:
    (tmp_path / "0.json.77.new").touch()
    keeping = Keeping(tmp_path, "q")
    for number in range(3 * RETAINED):
        keeping.once(number, counting)
    assert len(list(tmp_path.iterdir())) == RETAINED


def test_what_is_of_another_query_is_refused(tmp_path: Path) -> None:
    Keeping(tmp_path, "q").once(0, counting)
    for number in (0, 1):
        with pytest.raises(KeptError, match=r"0\.json belongs to another query.*[Rr]eset"):
            Keeping(tmp_path, "other").once(number, counting)


def test_what_is_damaged_is_said(tmp_path: Path) -> None:
    (tmp_path / "0.json").write_text("[")
    with pytest.raises(KeptError, match="cannot be read"):
        Keeping(tmp_path, "q").once(1, counting)
