"""Faults over HTTP."""

import pytest

from pulsarbox.config import Settings
from tests.unit.server.http.harness import HttpBox

FAULTS = "/pulsarbox/v1/faults"


async def test_a_box_that_was_not_made_for_it_refuses(box: HttpBox) -> None:
    for method, path in (("GET", FAULTS), ("POST", FAULTS), ("DELETE", FAULTS), ("GET", f"{FAULTS}/1")):
        refused = await box.ask(method, path, {"action": "drop"} if method == "POST" else None)
        assert (refused.status, "start it with --faults" in refused.reason) == (409, True)


@pytest.mark.settings(Settings(faultInjectionEnabled=True))
async def test_rules_are_added_shown_and_taken_away(box: HttpBox) -> None:
    assert (await box.ask("GET", FAULTS)).value == []
    added = await box.ask("POST", FAULTS, {"action": "error", "command": "send", "topic": "t", "nth": 3})
    assert added.value == {
        "id": 1, "action": "error", "command": ["send"], "topic": "persistent://public/default/t", "at": "request",
        "error": "UnknownError", "nth": 3, "matched": 0, "fired": 0,
    }  # fmt: skip
    second = await box.ask("POST", FAULTS, {"action": "delay", "delay": "250ms"})
    assert second.value["delay"] == 250
    assert [each["id"] for each in (await box.ask("GET", FAULTS)).value] == [1, 2]
    assert (await box.ask("DELETE", f"{FAULTS}/1")).value["id"] == 1
    assert (await box.ask("GET", f"{FAULTS}/1")).status == 404
    assert (await box.ask("DELETE", FAULTS)).status == 204
    assert (await box.ask("GET", FAULTS)).value == []


@pytest.mark.settings(Settings(faultInjectionEnabled=True))
async def test_what_makes_no_sense_is_refused_in_words(box: HttpBox) -> None:
    for body, status, why in (
        (None, 400, "must be a rule"),
        ({"action": "explode"}, 422, "one of error, delay"),
        ({"action": "drop", "comand": "send"}, 400, "did you mean command"),
    ):
        refused = await box.ask("POST", FAULTS, body)
        assert (refused.status, why in refused.reason) == (status, True), refused.reason
    assert (await box.ask("DELETE", f"{FAULTS}/one")).status == 400
