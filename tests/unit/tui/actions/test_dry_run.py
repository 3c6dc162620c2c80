"""Dry runs: what they say, and the same operation for real."""

from typing import Any

import pytest

from pulsarbox.tui.actions.dry_run import finished, for_real, is_dry, real_run, result_of
from pulsarbox.tui.actions.operation import Request, default_of
from pulsarbox.tui.actions.operations import BY_NAME
from tests.unit.tui.driving import SMALL, dashboard
from tests.unit.tui.fake import FakeBox, dead_letters, job

JOBS = "/pulsarbox/v1/jobs"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"done": 1, "skipped": 0}, "1 message would be replayed. Nothing was changed."),
        (
            {"done": 1200, "skipped": 3},
            "1,200 messages would be replayed, 3 excluded by the filter. Nothing was changed.",
        ),
        (
            {"kind": "dlq-drop", "done": 0, "skipped": 0, "failed": 2, "reasons": {"too large": 2}},
            "0 messages would be dropped, 2 rejected. Nothing was changed. Rejected: too large (2).",
        ),
        ({"state": "failed", "error": "no such topic"}, "The dry run is failed: no such topic. Nothing was changed."),
    ],
)
def test_the_result_in_a_sentence(more: dict[str, Any], told: str) -> None:
    assert result_of(job(1, **{"state": "done", "done": 0, "skipped": 0, **more})) == told


def test_the_same_operation_for_real_has_the_typed_values() -> None:
    deed = for_real(BY_NAME["dlq replay"], {"filter": "a == 1", "rate": "7", "dry_run": "yes"})
    assert {field.name: default_of(field, {"dry": "yes"}) for field in deed.fields} == {
        "filter": "a == 1",
        "rate": "7",
        "to": "",
        "edit": "",
        "subscription": "",
        "dry_run": "no",
    }


def test_what_starts_a_dry_run() -> None:
    assert is_dry(Request("POST", JOBS, {"dryRun": True}))
    assert not is_dry(Request("POST", JOBS, {"dryRun": False})) and not is_dry(Request("POST", "/x", {"dryRun": True}))


async def test_the_end_of_a_job_is_waited_for() -> None:
    box, states = FakeBox(), ["running", "paused", "done"]
    box.answers["GET", f"{JOBS}/3"] = lambda query, body: job(3, state=states.pop(0))
    told = await finished(box.feed, "3", 0)
    assert told is not None and told["state"] == "done" and states == []


async def test_a_dry_run_shows_its_result_and_offers_the_real_run() -> None:
    box = FakeBox()
    box.rows["deadletters"][:] = [dead_letters(0)]
    box.answers["POST", JOBS] = lambda query, body: {"id": 3}
    box.answers["GET", f"{JOBS}/3"] = job(3, state="done", dryRun=True, done=12, skipped=5)
    async with dashboard(box, SMALL, place="deadletters") as driver:
        await driver.press("R")
        await driver.at("OperationDialog", answered=False)
        await driver.until(lambda: " Dry run " in driver.text())
        driver.screen.query_one("#field-rate").value = "7"
        await driver.press("ctrl+s")
        await driver.at("DryRunDialog", answered=False)
        await driver.until(lambda: "12 messages would be replayed" in driver.text())
        text = driver.text()
        assert text.index("12 messages would be") < text.index("Replay 12 messages") < text.index("Back")
        assert driver.said == []
        await driver.press("up", "enter")
        await driver.at("OperationDialog", answered=False)
        await driver.until(lambda: driver.screen.values == driver.screen.values | {"rate": "7", "dry_run": "no"})
        await driver.press("ctrl+s")
        await driver.until(lambda: [body["dryRun"] for _, _, body in box.changes()] == [True, False])
        assert all("dry run" not in text for text in driver.said)


def test_what_would_change_nothing_is_not_offered() -> None:
    done = job(3, state="done", dryRun=True, done=1)
    assert real_run(done) == "Replay 1 message"
    assert real_run(done | {"kind": "dlq-drop", "done": 1200}) == "Drop 1,200 messages"
    assert real_run(done | {"done": 0}) == real_run(done | {"state": "failed"}) == ""
