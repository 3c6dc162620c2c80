"""The scenarios stay alive: all of them can be played to a box, and each says what it saw."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.differences.__main__ import chosen, main
from tests.differences.broker import NO_STATS
from tests.differences.known import KNOWN, reason_of
from tests.differences.playing import Story, Target, differences, play
from tests.differences.scenario import SCENARIOS
from tests.tools.box import Box

JOBS = 16
"""Scenarios mostly wait for silence."""

PATIENCE = 0.3
"""Too little to see everything, enough to run every line."""


@pytest.mark.timeout(700)  # the Go program may have to be built
def test_all_scenarios_can_be_played_to_a_box(tmp_path: Path) -> None:
    box = Box(tmp_path / "data")
    try:
        box.start()
        target = Target(box.url, box.web_url)
        scenarios = chosen([])
        with ThreadPoolExecutor(JOBS) as pool:
            stories = list(pool.map(lambda each: play(each, target, PATIENCE), scenarios))
        assert box.stop() == 0
    finally:
        box.kill()
    assert {each.full_name: story.error for each, story in zip(scenarios, stories, strict=True) if story.error} == {}
    assert [each.full_name for each, story in zip(scenarios, stories, strict=True) if not story.steps] == []


def test_known_differences_are_those_of_scenarios_that_exist() -> None:
    chosen([])
    assert [name for name in KNOWN if name.partition(":")[0] not in SCENARIOS] == []


def test_what_is_known_is_marked_and_the_rest_is_not() -> None:
    assert reason_of("redelivery.disconnects", "Shared: closed and back", ({}, {"b": []}))
    assert not reason_of("redelivery.disconnects", "Exclusive: closed and back", ({}, {"b": []}))
    assert reason_of("shared.chunks", "any", ({NO_STATS: 501}, {"msgBacklog": 1}))
    assert not reason_of("shared.chunks", "any", ({NO_STATS: 500}, {"msgBacklog": 1}))
    answer = {"a": ["ACK 1: ACK_RESPONSE MetadataError 'Consumer not found'", "SUCCESS"]}
    assert reason_of("shared.chunks", "any", (answer, {"a": ["ACK 1: no answer", "SUCCESS"]}))
    assert not reason_of("shared.chunks", "any", (answer, {"a": ["ACK 1: no answer"]}))


def test_differences_are_found_by_step() -> None:
    scenario = chosen(["access.all_pairs"])[0]
    a, b = Story([("one", "x"), ("one", "y"), ("two", "z")]), Story([("one", "x"), ("one", "w"), ("three", "z")])
    found = [(each.step, each.a, each.b) for each in differences(scenario, a, b)]
    assert found == [("one (2)", "y", "w"), ("two", "z", "no such step"), ("three", "no such step", "z")]


def test_the_command_lists_its_scenarios(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--only", "access"]) == 0
    assert "access.all_pairs\n" in capsys.readouterr().out


def test_an_unknown_theme_is_refused() -> None:
    with pytest.raises(SystemExit, match="no such theme"):
        chosen(["nothing"])
