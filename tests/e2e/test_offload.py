"""Sealed ledgers to Parquet: whatever a topic has been through, its files and what follows are what readers got."""

import random
from pathlib import Path

import pytest

from pulsarbox import PulsarBox
from pulsarbox.spark.offload.offloading import Offload
from pulsarbox.spark.offload.verifying import verify
from tests.e2e.histories import SMALL, History, Row, truth
from tests.e2e.offloaded import all_rows, asked, box_options, files

TOPIC = "persistent://public/default/t"


class Killed(BaseException):
    """As a kill at that moment: nothing is cleared up."""


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_history_and_tail_are_what_readers_got_whenever_it_is_killed(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    directory = tmp_path / "history"
    with PulsarBox(data_dir=tmp_path / "data", process=True, **SMALL, managedLedgerMaxEntriesPerLedger=7) as box:
        history = History(box, "t", seed)
        history._singles()
        seen: dict[tuple[int, int], list[Row]] = {}
        told = []

        def look() -> None:
            """What is released may go at once, so it is looked at before."""
            now: dict[tuple[int, int], list[Row]] = {}
            for row in truth(box, "t"):
                now.setdefault(row[-1], []).append(row)
            seen.update(now)

        def offloaded(until_kill: int) -> None:
            left = until_kill
            look()

            def step(_: str) -> None:
                nonlocal left
                left -= 1
                if not left:
                    raise Killed

            try:
                found = Offload(asked(box, directory, "t"), lambda _: None, step=step).round()
            except Killed:
                told.append("killed")
            else:
                assert [each.problem for each in found] == [""], told
            look()
            expected = [row for place in sorted(seen) for row in seen[place]]
            assert all_rows(box, directory, TOPIC) == expected, told

        offloaded(0)
        for step in history.steps(14):
            told.append(step)
            if dice.random() < 0.6:
                offloaded(dice.choice((0, dice.randrange(1, 30))))
        offloaded(0)
        assert files(directory, TOPIC), told
        (found,) = verify(directory, lambda _: True, box_options(box))
        assert found.problems == () and found.ledgers
        history.close()
