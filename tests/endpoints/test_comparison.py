"""Tests of the comparison itself, and of a box against the recorded answers of Pulsar."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsarbox.server.http.admin_endpoints import Endpoint, endpoints
from tests.endpoints import facts
from tests.endpoints.__main__ import OPTIONAL, Broker, Report, compared_with_facts, unused
from tests.endpoints.answers import NO_ANSWER, REASON, Answer, answer_of
from tests.endpoints.bodies import VALID
from tests.endpoints.comparison import PENDING, compare, fields
from tests.endpoints.known import PASSING, TABLE, known_for
from tests.endpoints.playing import Target
from tests.endpoints.steps import NOT_ASKED, Group, Step, groups
from tests.tools.box import BoxProcess

JSON = "application/json"


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Broker]:
    process = BoxProcess(tmp_path / "data")
    try:
        process.start()
        with Broker(Target(process.url, process.web_url), temporary=True) as broker:
            yield broker
    finally:
        process.kill()


@pytest.mark.timeout(120)
def test_a_box_answers_like_pulsar(box: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    report = Report(False, len(groups()))
    not_supported = {(row.method, row.path) for row in endpoints() if not row.served}
    for group, found in compared_with_facts(box, list(enumerate(groups()))):
        report.add(group, found)
        refused = {(step.endpoint.method, step.endpoint.path) for step in found.pending}
        assert not found.pending or refused & not_supported, f"{group.name} answers 501, and is said to be supported"
    assert (report.unknown, unused(report.rows, report.pending)) == (0, []), capsys.readouterr().out
    assert report.same > 1000


def test_each_row_of_the_endpoint_table_is_asked() -> None:
    asked = {(step.endpoint.method, step.endpoint.path) for group in groups() for step in group.steps}
    assert {(row.method, row.path) for row in endpoints()} - asked == NOT_ASKED.keys()


def test_pulsar_has_answered_all_groups_but_those_of_services_it_runs_without() -> None:
    lacking = {group.name for group in groups()} - facts.read().keys()
    words = {word for _, each, _ in OPTIONAL for word in each}
    assert {name.split("/")[3] for name in lacking} <= words


def test_each_type_of_body_has_a_valid_one() -> None:
    taken = {row.body for row in endpoints() if row.served and row.body}
    assert taken - VALID.keys() == set()


def _step(
    method: str = "GET", state: str = "before", path: str = "/admin/v2/tenants", standing: str = "served"
) -> Step:
    return Step(state, Endpoint(method, path, "operation", (), "", "", standing))


def test_what_differs_is_found() -> None:
    step = _step()
    same = Answer(200, JSON, {"a": 1})
    for other, part in (
        (Answer(404, JSON, REASON), "status"),
        (Answer(200, "", ""), "type"),
        (Answer(200, JSON, {"a": 2}), ".a"),
        (Answer(200, JSON, {"a": 1, "b": None}), ".b"),
        (Answer(200, JSON, {"a": 1}, ("location",)), "headers"),
    ):
        assert [each.part for each in compare([(step, same)], [other]).differences] == [part]
    assert compare([(step, same)], [same]).same == 1


def test_what_is_not_supported_is_pending_with_what_depends_on_it() -> None:
    write, read = (_step(method, "written", standing="never:functions") for method in ("PUT", "GET"))
    refused, done = Answer(PENDING, JSON, REASON), Answer(204, "", "")
    box = [(write, refused), (read, Answer(200, JSON, []))]
    found = compare(box, [done, Answer(200, JSON, ["a"])])
    assert (found.pending, found.differences) == ((write, read), ())
    found = compare([(read, refused), (read, Answer(200, JSON, []))], [done, Answer(200, JSON, ["a"])])
    assert (found.pending, len(found.differences)) == ((read,), 1)
    served = _step("PUT", "written")
    assert compare([(served, refused)], [done]).pending == (), "the endpoint is supported, but not this value"


def test_requests_that_pulsar_does_not_answer_are_not_compared() -> None:
    step = _step()
    found = compare([(step, Answer(204, "", ""))], [Answer(0, NO_ANSWER, "")])
    assert (found.unanswered, found.differences, found.same) == ((step,), (), 0)


def test_an_answer_is_reduced_to_facts() -> None:
    def told(path: str, body: bytes, status: int = 200, media: str = JSON) -> Answer:
        return answer_of(status, {"content-type": f"{media}; charset=utf-8", "location": "x"}, body, path, "own-1")

    assert told("/admin/v2/tenants", b'["other","own-1-made"]').shape == ["OWN-made"]
    assert told("/x/stats", b'{"rate":1.5,"n":null,"subs":{"own-1/n/t":{"up":true}},"l":[1,2]}').shape == {
        "rate": "number",
        "n": None,
        "subs": {"any": [{"up": "bool"}]},
        "l": ["number"],
    }
    assert told("/x/retention", b'{"limit":7,"urls":["http://localhost:1/a"]}').shape == {"limit": 7, "urls": ["url/a"]}
    assert told("/x", b'{"reason":"none"}', 404) == Answer(404, JSON, REASON, ("location",))
    assert told("/x", b"<html>", 404, "text/html").shape == "a page"
    assert told("/x", b"").shape == ""


def test_an_empty_list_of_measurements_may_have_any_members() -> None:
    empty = answer_of(200, {}, b'{"consumers":[]}', "/x/stats", "own").shape
    full = answer_of(200, {}, b'{"consumers":[{"a":1}]}', "/x/stats", "own").shape
    assert list(fields("", empty, full)) == []
    assert list(fields("", [], ["standalone"])) != []


def test_the_table_of_known_differences() -> None:
    step = _step("DELETE", "broken JSON")
    row = known_for(step, "status", "204", "400 text/plain text")
    assert row is not None and row.why
    assert known_for(step, "status", "500", "400 text/plain text") is None
    lasting = [row for row in TABLE if row.part not in PASSING]
    assert len(unused(set())) == len(lasting) < len(TABLE) and unused(set(TABLE)) == []
    assert len(unused(set(), [step])) < len(TABLE)
    packages = [each for each in groups() if each.name.startswith("/admin/v3/packages/")]
    assert any("/v3/packages/" in each for each in unused(set()))
    assert not any("/v3/packages/" in each for each in unused(set(), (), packages)), "the broker stores none"


def test_facts_are_read_as_they_were_written(tmp_path: Path) -> None:
    answers = [Answer(204, "", ""), Answer(200, JSON, ""), Answer(200, JSON, {"é": [1]}, ("allow",))]
    rows = [("before", f"GET /v2/{number}", answer) for number, answer in enumerate(answers)]
    facts.write({"/admin/v2/x": rows}, tmp_path / "facts.tsv")
    assert facts.read(tmp_path / "facts.tsv") == {"/admin/v2/x": rows}


def test_stale_facts_are_refused() -> None:
    group = next(group for group in groups() if group.name.endswith("/retention"))
    recorded = {group.name: [(step.state, step.name, Answer(204, "", "")) for step in group.steps]}
    assert len(facts.of_group(group, recorded)) == len(group.steps)
    with pytest.raises(facts.StaleFacts, match="compare-admin"):
        facts.of_group(Group(group.name, group.steps[1:]), recorded)
