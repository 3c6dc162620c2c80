"""Sealed ledgers offloaded to Parquet: for any history, files and later messages equal what readers received."""

import random
from pathlib import Path
from typing import Any

import pytest

from pulsarbox import PulsarBox
from pulsarbox.spark import table
from pulsarbox.spark.offload.offloading import Offload
from pulsarbox.spark.offload.verifying import verify
from pulsarbox.spark.options import OptionError
from pulsarbox.spark.source.offloaded_table import past_of
from tests.e2e.clients import connect
from tests.e2e.histories import SMALL, History, Row, truth
from tests.e2e.offloaded import all_rows, asked, box_options, files, offload
from tests.tools.campaigns import short

TOPIC = "persistent://public/default/t"


class Killed(BaseException):
    """Simulated kill: no cleanup runs."""


@pytest.mark.parametrize("seed", short([1, 2, 3], 1))
def test_history_and_tail_are_what_readers_got_whenever_it_is_killed(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    directory = tmp_path / "history"
    with PulsarBox(data_dir=tmp_path / "data", process=True, **SMALL, managedLedgerMaxEntriesPerLedger=7) as box:
        history = History(box, "t", seed)
        history._singles()
        seen: dict[tuple[int, int], list[Row]] = {}
        told = []

        def look() -> None:
            """Record the messages first, because released ledgers may be deleted at once."""
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
                size = dice.choice((0, 4_000, 30_000, 1 << 20))
                found = Offload(asked(box, directory, "t", file_bytes=size), lambda _: None, step=step).round()
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


def publish(box: PulsarBox, *topics: str) -> None:
    client = connect(box.service_url)
    for topic in topics:
        producer = client.create_producer(topic, batching_enabled=False)
        for number in range(12):
            producer.send_async(b"%d" % number, lambda *_: None)
        producer.flush()
    client.close()


def test_what_a_table_is_not_made_of(tmp_path: Path) -> None:
    """Other partitions, another box, and missing data are rejected before a session is used."""
    directory = tmp_path / "history"
    none: Any = None
    parts = [f"{TOPIC}-partition-{number}" for number in range(2)]
    settings: dict[str, Any] = {"managedLedgerMaxEntriesPerLedger": 10, "process": True}
    with PulsarBox(data_dir=tmp_path / "data", **settings) as box:
        box.admin("PUT", "/admin/v2/persistent/public/default/t/partitions", 2)
        box.admin("PUT", "/admin/v2/persistent/public/default/new")
        assert offload(box, directory, "t", "new") == ["", ""]
        with pytest.raises(OptionError, match=r"nothing of .*new was offloaded into .*; tail=True"):
            table(none, "new", directory, tail=False)
        publish(box, *parts)
        assert offload(box, directory, "t") == [""]
        whole, one = past_of(directory, [TOPIC], [TOPIC]), past_of(directory, [TOPIC], [parts[1]])
        assert sorted(whole.marks) == parts and [len(paths) for paths in whole.files.values()] == [2]
        assert sorted(one.marks) == parts[1:]
        assert [[path.split("/")[-2] for path in paths] for paths in one.files.values()] == [["partition=1"]]
        box.admin("DELETE", "/admin/v2/persistent/public/default/new?force=true")
        told: list[str] = []
        assert [each.problems for each in verify(directory, lambda _: True, box_options(box), told.append)] == [(), ()]
        assert any("default/new does not exist in the box: nothing to compare" in line for line in told)
    with PulsarBox(data_dir=tmp_path / "other", **settings) as box:
        box.admin("PUT", "/admin/v2/persistent/public/default/t/partitions", 2)
        with pytest.raises(OptionError, match=r"history of .*t-partition-0 from another box .*tail=False"):
            table(none, "t", directory, **box_options(box))
