"""Tests that run all scenarios against a box and check that each yields observations."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pulsarbox.server.http.admin_endpoints import endpoints
from tests.differences import known_admin
from tests.differences.__main__ import box_in, chosen, main
from tests.differences.broker import NO_STATS
from tests.differences.fields import fields
from tests.differences.known import KNOWN, reason_of
from tests.differences.playing import Story, Target, differences, play
from tests.differences.scenario import SCENARIOS, TIMED
from tests.differences.themes.management import admin
from tests.tools.campaigns import short
from tests.tools.generate_known import DOCUMENT, generate

JOBS = 24
"""# Scenarios mostly wait for silence."""
PARTS = 10
"""# The first part has some scenarios of each theme; a campaign plays the others too."""

PATIENCE = 0.3
"""# Too little patience for complete observations, enough to run every line."""


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Return a box shared by all scenarios."""
    box = box_in(tmp_path_factory.mktemp("box"), TIMED)
    try:
        box.start()
        yield Target(box.url, box.web_url)
        assert box.stop() == 0
    finally:
        box.kill()


@pytest.mark.timeout(700)  # the Go program may have to be built
@pytest.mark.parametrize("part", short(range(PARTS), 1))
def test_all_scenarios_can_be_played_to_a_box(target: Target, part: int) -> None:
    scenarios = [each for each in chosen([]) if not each.long][part::PARTS]
    with ThreadPoolExecutor(JOBS) as pool:
        stories = list(pool.map(lambda each: play(each, target, PATIENCE), scenarios))
    # A scenario that failed under parallel load is repeated with more patience.
    again = [play(each, target) if story.error else story for each, story in zip(scenarios, stories, strict=True)]
    assert {each.full_name: story.error for each, story in zip(scenarios, again, strict=True) if story.error} == {}
    assert [each.full_name for each, story in zip(scenarios, again, strict=True) if not story.steps] == []


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


def test_what_pulsarbox_admin_shows_otherwise_is_in_the_document() -> None:
    text = DOCUMENT.read_text("utf-8")
    assert generate(text) == text, "run `make generate`"
    assert known_admin.reason_of("tenants create x: stderr", ("There is one: x", "There is one"))
    assert not known_admin.reason_of("tenants create x: stderr", ("There is none", "There is one"))
    assert not known_admin.reason_of("tenants create x", ("exit 0: []", "exit 1: There is one"))
    refused = next(row.refusal for row in endpoints() if row.refusal)
    assert known_admin.reason_of("bookies list", (f"exit 1: {refused}", "exit 0: []")) == refused
    assert known_admin.reason_of("topics info-internal @/n/t (2): version", (1, 2))
    itself = "exit 0: ['Failed to delete topic: @/n/t. Exception: there is none']"
    assert known_admin.reason_of("topics delete @/n/t", ("exit not 0: ", itself))
    assert not known_admin.reason_of("topics delete @/n/t", ("exit 0: []", itself))


def test_each_row_of_that_table_is_about_a_command_that_is_played() -> None:
    lines = Path(admin.__file__).read_text("utf-8").replace("{command}", "info-internal")
    for known in known_admin.TABLE[1:]:
        words = known.steps.partition(r" \S")[0].partition(" .*")[0].partition(":")[0]
        assert words in lines, known


def test_commands_are_compared_field_by_field() -> None:
    a = {"exit": 0, "err": "", "out": {"x": {"y": 1, "z": [1]}, "w": 2}}
    b = {"exit": 0, "err": "careful", "out": {"x": {"y": 1, "z": [2]}, "v": 3}}
    assert list(fields(a, b)) == [
        (": stderr", "", "careful"),
        (": x.z", [1], [2]),
        (": w", 2, "no such field"),
        (": v", "no such field", 3),
    ]
    assert list(fields(a, b | {"exit": 3})) == [("", f"exit 0: {a['out']}", "exit 3: careful")]
    assert list(fields(a, a)) == []


@pytest.mark.skipif("PULSAR_ADMIN" not in os.environ, reason="PULSAR_ADMIN names no pulsar-admin of Pulsar's")
@pytest.mark.timeout(3600)
def test_pulsar_admin_itself_makes_the_same_of_a_box(capfd: pytest.CaptureFixture[str]) -> None:
    code = main(["--pulsar-admin", os.environ["PULSAR_ADMIN"]])
    assert code == 0, capfd.readouterr().out


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
