"""Status reports of pipeline runners, and their retention."""

from typing import Any

import pytest

from pulsarbox.broker.stats.pipeline_status import PIPELINES_MAX, PipelineStatuses
from pulsarbox.clock import Now
from pulsarbox.errors import BadRequest

QUERY = {"query": "totals", "state": "running", "inputs": ["persistent://shop/eu/orders"], "output": "parquet:/x"}


def at(seconds: float) -> Now:
    return Now(seconds, round(seconds * 1000))


def told(pipelines: PipelineStatuses, seconds: float) -> dict[str, str]:
    return {row["pipeline"]: row["state"] for row in (each.as_json(at(seconds)) for each in pipelines.all(at(seconds)))}


def test_a_row_has_what_was_told_and_null_for_the_rest() -> None:
    pipelines = PipelineStatuses()
    pipelines.report("ann", "shop", {"queries": [QUERY | {"lag": 7, "lastError": "x" * 5000}], "pid": 9}, at(1))
    (query,) = pipelines.all(at(1))
    row = query.as_json(at(1))
    assert len(row.pop("lastError")) == 1000
    assert row == QUERY | {
        "pipeline": "shop",
        "lag": 7,
        "rows": None,
        "rowsPerSecond": None,
        "batch": None,
        "lastBatchMs": None,
        "stages": None,
        "watermark": None,
        "stateRows": None,
        "stateBytes": None,
        "deadLetters": 0,
        "master": None,
        "host": None,
        "pid": 9,
        "startedAt": None,
        "ui": None,
        "reportedAt": 1000,
        "by": "ann",
    }


def test_who_says_nothing_is_gone_and_then_forgotten_and_who_has_ended_is_not() -> None:
    pipelines = PipelineStatuses()
    pipelines.report("", "a", {"queries": [QUERY]}, at(0))
    pipelines.report("", "b", {"queries": [QUERY | {"state": "failed"}]}, at(5))
    assert told(pipelines, 10) == {"a": "running", "b": "failed"}
    assert told(pipelines, 10.1) == {"a": "gone", "b": "failed"}
    assert told(pipelines, 3600.1) == {"b": "failed"}
    pipelines.report("", "b", {"queries": []}, at(3601))
    assert told(pipelines, 3601) == {}


def test_two_roles_do_not_disturb_each_other() -> None:
    pipelines = PipelineStatuses()
    pipelines.report("ann", "a", {"queries": [QUERY]}, at(0))
    pipelines.report("bob", "a", {"queries": [QUERY | {"state": "failed"}]}, at(0))
    pipelines.forget("bob", "none")
    assert {each.row["by"]: each.state for each in pipelines.all(at(1))} == {"ann": "running", "bob": "failed"}
    pipelines.forget("bob", "a")
    assert [each.row["by"] for each in pipelines.all(at(1))] == ["ann"]


def test_of_too_many_those_go_that_were_told_of_longest_ago() -> None:
    pipelines = PipelineStatuses()
    for number in range(PIPELINES_MAX + 3):
        pipelines.report("", f"p{number}", {"queries": [QUERY]}, at(number / 1000))
        pipelines.report("", "p0", {"queries": [QUERY]}, at(number / 1000))
    found = told(pipelines, 1)
    assert len(found) == PIPELINES_MAX
    assert not {"p1", "p2", "p3"} & found.keys()
    assert "p0" in found


def test_a_role_that_tells_of_too_many_pushes_out_its_own() -> None:
    pipelines = PipelineStatuses()
    pipelines.report("ann", "shop", {"queries": [QUERY]}, at(0))
    for number in range(PIPELINES_MAX + 3):
        pipelines.report("bob", f"p{number}", {"queries": [QUERY]}, at(1))
    found = told(pipelines, 1)
    assert len(found) == PIPELINES_MAX
    assert "shop" in found
    assert not {"p0", "p1", "p2", "p3"} & found.keys()


def test_what_is_told_is_bounded_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    pipelines = PipelineStatuses()
    monkeypatch.setattr("pulsarbox.broker.stats.pipeline_status.TEXTS_MAX", 50_000)
    pipelines.report("ann", "shop", {"queries": [QUERY]}, at(0))
    long = QUERY | {"inputs": ["x" * 1000] * 10}
    for number in range(10):
        pipelines.report("bob", f"p{number}", {"queries": [long]}, at(1))
    assert told(pipelines, 1).keys() == {"shop", "p6", "p7", "p8", "p9"}
    pipelines.report("bob", "p9", {"queries": [QUERY]}, at(2))
    pipelines.report("bob", "p6", {"queries": [long]}, at(2))
    assert told(pipelines, 2).keys() == {"shop", "p6", "p7", "p8", "p9"}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "queries must be a list"),
        ({"queries": ["x"]}, "must be a JSON object"),
        ({"queries": [{}]}, "Missing fields of a query: query, state, inputs, output"),
        ({"queries": [QUERY | {"state": "gone"}]}, "state must be one of"),
        ({"queries": [QUERY | {"lag": "7"}]}, "Invalid value of lag: '7'"),
        ({"queries": [QUERY | {"lag": True}]}, "Invalid value of lag: 'True'"),
        ({"queries": [QUERY | {"rowsPerSecond": float("inf")}]}, "Invalid value of rowsPerSecond: 'inf'"),
        ({"queries": [QUERY | {"inputs": [1]}]}, "inputs must be"),
        ({"queries": [QUERY | {"query": 1}]}, "Invalid value of query: '1'"),
        ({"queries": [QUERY] * 201}, "at most 200"),
        ({"queries": [], "pid": 1 << 63}, "Invalid value of pid: "),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(body: dict[str, Any], said: str) -> None:
    pipelines = PipelineStatuses()
    pipelines.report("", "a", {"queries": [QUERY]}, at(0))
    with pytest.raises(BadRequest, match=said):
        pipelines.report("", "a", body, at(1))
    assert told(pipelines, 1) == {"a": "running"}
    with pytest.raises(BadRequest, match="1 to 100 characters"):
        pipelines.report("", "a" * 101, {"queries": []}, at(0))
