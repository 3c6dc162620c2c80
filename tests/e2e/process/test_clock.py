"""The virtual clock of a box: stored state, rejected restarts, effects on clients."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.clients import EARLIEST, connect, is_quiet, take
from tests.e2e.process.test_process import Place

DAY = 86_400_000


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.call("stop")


def clock(place: Place) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(place.call("clock", "show", "-o", "json").stdout)
    return shown


def test_commands_move_it_and_the_data_keeps_it(place: Place) -> None:
    place.start("--clock", "virtual")
    assert place.status()[1]["clock"] == "virtual"
    assert "ahead    0s" in place.call("clock", "show").stdout
    assert "ahead    10d" in place.call("clock", "advance", "10d").stdout
    back = place.call("clock", "set", "2001-01-01")
    assert (back.returncode, "only forward" in back.stderr) == (2, True)
    misread = place.call("clock", "advance", "soon")
    assert (misread.returncode, "expected a number and a unit, such as" in misread.stderr) == (2, True)
    place.call("stop")
    refused = place.call("start", "--detach", "--port", "0", "--web-port", "0")
    assert (refused.returncode, "start with --clock virtual" in refused.stderr) == (1, True)
    place.start("--clock", "virtual")
    held = clock(place)
    assert held["offset"] == held["now"] - held["real"] == 10 * DAY
    assert place.call("clock", "set", "2200-01-01T00:00:00Z").returncode == 0
    assert 0 <= clock(place)["now"] - 7_258_118_400_000 < 600_000  # it continues to advance


def test_a_real_clock_is_shown_and_stays(place: Place) -> None:
    place.start()
    assert clock(place)["mode"] == "real"
    refused = place.call("clock", "advance", "1s")
    assert (refused.returncode, "--clock virtual" in refused.stderr) == (4, True)
    assert "\nclock" not in place.call("status").stdout
    place.call("stop")
    nobody = place.call("clock", "show", "--data-dir", "data")
    assert (nobody.returncode, "no box is running on data" in nobody.stderr) == (6, True)


def test_clients_live_through_ten_days_and_seek_by_their_own_time(place: Place) -> None:
    rows = place.start("--clock", "virtual")
    client = connect(rows["pulsar"])
    consumer = client.subscribe("t", "s", initial_position=EARLIEST)
    client.subscribe("t", "holds", initial_position=EARLIEST)  # acknowledged entries are old enough to trim
    producer = client.create_producer("t")
    producer.send(b"old")
    place.call("clock", "advance", "10d")
    producer.send(b"new")
    assert take(consumer, 2) == [b"old", b"new"]
    assert client.create_producer("t2").topic() is not None
    now = time.time_ns() // 1_000_000
    consumer.seek(now - 11 * DAY)
    assert take(consumer, 2) == [b"old", b"new"]
    consumer.seek(now - DAY)
    assert take(consumer, 1) == [b"new"]
    assert is_quiet(consumer)
    client.close()
