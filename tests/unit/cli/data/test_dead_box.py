"""The views of a stopped box: graphs that end where its recorded history ends, and the remedy of a refusal."""

import json
from pathlib import Path
from typing import Any

import pytest

from pulsarbox.cli.data.dead_box import answered
from pulsarbox.storage.inspection.dead_box import DeadBox
from pulsarbox.storage.recording.history_files import FOLDER
from tests.unit.storage.recording.test_history_files import START, written

HOUR = 3_600_000


def told(box: DeadBox, target: str) -> dict[str, Any]:
    reply = answered(box, "GET", f"/pulsarbox/v1/top/{target}")
    assert reply.status == 200, reply.text
    found: dict[str, Any] = json.loads(reply.text)
    return found


def test_the_overview_has_the_last_minutes_that_were_recorded(tmp_path: Path) -> None:
    written(tmp_path / FOLDER, START, 5, 10_000)
    box = DeadBox(tmp_path, totals={"backlog": 9}, now=START + HOUR)
    found = told(box, "overview")
    assert (found["totals"], found["now"]) == ({"backlog": 9}, START + HOUR)
    assert found["series"]["backlog"] == [0, 1, 2, 3, 4]
    assert (found["seriesStep"], found["seriesEnd"]) == (10, START + 40_000)
    past = told(box, f"overview?at={START + 25_000}")
    assert (past["totals"], past["series"]["backlog"], past["now"]) == ({"backlog": 2}, [0, 1, 2], START + 20_000)
    assert answered(box, "GET", f"/pulsarbox/v1/top/overview?at={START - 1}").status == 404


def test_without_history_the_overview_has_no_series(tmp_path: Path) -> None:
    found = told(DeadBox(tmp_path, totals={"backlog": 9}, now=START), "overview")
    assert found["series"] == {} and "seriesEnd" not in found


@pytest.mark.parametrize(
    ("method", "target"),
    [("GET", "/pulsarbox/v1/top/clients"), ("POST", "/pulsarbox/v1/jobs"), ("GET", "/pulsarbox/v1/txn")],
)
def test_the_remedy_starts_the_box_of_the_same_directory(method: str, target: str) -> None:
    reply = answered(DeadBox(Path("my box")), method, target)
    assert reply.status == 503
    assert "start it with `pulsarbox start --detach --data-dir 'my box'`" in reply.reason


def test_what_only_a_running_box_has_is_called_as_on_its_screen() -> None:
    reply = answered(DeadBox(Path("/srv/box")), "GET", "/pulsarbox/v1/top/quotas")
    assert reply.reason.startswith("quotas require a running box: start it with ")
