"""Test that Pulsar Manager and Terraform's provider succeed with a box wherever they succeed with Pulsar."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.endpoints.comparison import PENDING
from tests.endpoints.tools import ToolRequest, replay, requests
from tests.tools.box import BoxProcess


@pytest.fixture
def box(tmp_path: Path) -> Iterator[BoxProcess]:
    process = BoxProcess(tmp_path / "data")
    try:
        process.start()
        yield process
    finally:
        process.kill()


def failures(answers: Iterable[tuple[ToolRequest, int, bytes]]) -> list[str]:
    """Return the requests that Pulsar accepts and the box refuses.

    Clusters may be pending: then requests that name one may fail too.
    """
    failed, pending = list[str](), list[str]()
    for each, status, answer in answers:
        if status == PENDING and each.method == "PUT":
            pending.append(each.path.rpartition("/")[2])
        elif each.succeeds and status >= 400 and status != PENDING:
            if not any(name in each.path + each.body for name in pending):
                failed.append(f"{each.method} {each.path} {each.body}: {status} {answer.decode()[:200]}")
    return failed


@pytest.mark.parametrize("tool", ["manager", "terraform"])
def test_a_tool_succeeds_where_it_succeeds_with_pulsar(box: BoxProcess, tool: str) -> None:
    asked = [each for each in requests() if each.tool == tool]
    assert sum(each.succeeds for each in asked) > 50
    assert failures(replay(box.web_url, asked)) == []


def test_a_refusal_of_what_pulsar_accepts_is_found() -> None:
    made = ToolRequest("t", "PUT", "clusters/c", "{}", 200)
    read = ToolRequest("t", "GET", "clusters/c", "", 200)
    missing = ToolRequest("t", "GET", "clusters/d", "", 404)
    assert failures([(made, 204, b""), (read, 404, b"none"), (missing, 404, b"")]) == ["GET clusters/c : 404 none"]
    assert failures([(made, PENDING, b""), (read, 404, b"none")]) == []
