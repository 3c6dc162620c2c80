"""Some seeds of the campaign, and faults that it must detect. The long campaign is ``make fuzz-admin``."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pulsarbox.errors import BadRequest
from pulsarbox.server.http import route_table
from pulsarbox.server.http.admin_endpoints import endpoints
from pulsarbox.server.http.framework import cross_site
from pulsarbox.server.http.framework import server as http_server
from pulsarbox.server.http.framework.request import DONE, HttpRequest, HttpResponse
from pulsarbox.server.http.framework.routes import Routes
from pulsarbox.server.http.resources import functions
from tests.fuzz import admin
from tests.fuzz.admin import Broken, Campaign
from tests.fuzz.run import main
from tests.tools.campaigns import short

SEEDS = (1, 2, 3)
REQUESTS = 900
UNTIL_NOTICED = 350
"""Requests that trigger a fault often enough."""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Campaign]:
    """Return the campaign of a seed, run without violations."""

    @functools.cache
    def play(seed: int) -> Campaign:
        campaign = Campaign(seed, tmp_path_factory.mktemp("campaign") / "data")
        campaign.run(REQUESTS)
        return campaign

    return play


@pytest.mark.parametrize("seed", short(SEEDS, 1))
def test_nothing_but_answers(seed: int, played: Callable[[int], Campaign]) -> None:
    campaign = played(seed)
    assert sum(campaign.statuses.values()) == REQUESTS
    assert len(campaign.requests) > 30, "most are to be carried out"


@pytest.mark.parametrize(("seeds", "least"), short([(SEEDS[:1], 0.55), (SEEDS, 0.8)], 1))
def test_every_row_that_is_served_can_be_carried_out(
    seeds: Sequence[int], least: float, played: Callable[[int], Campaign]
) -> None:
    """Otherwise the campaign would see only rejections of an operation."""
    done = {operation for seed in seeds for operation in played(seed).requests}
    refusals = (functions.unknown, functions.config_definition, functions.download)  # a box has no functions
    never = {name for name, handler in functions.HANDLERS.items() if handler in refusals}
    served = {row.operation for row in endpoints() if row.served} - never
    assert len(done & served) > least * len(served), (len(done & served) / len(served), sorted(served - done))


_kept: list[Any] = []


def _fails(call: HttpRequest) -> HttpResponse:
    raise KeyError("a mistake of ours")


def _changes_and_refuses(call: HttpRequest) -> HttpResponse:
    call.broker.commits.put_row("tenant/half", {"adminRoles": []})
    raise BadRequest("after all not")


def _changes_memory_only(call: HttpRequest) -> HttpResponse:
    call.broker.catalog._fresh["tenant/dream"] = b'{"adminRoles": [], "allowedClusters": []}'
    return DONE


def _keeps(call: HttpRequest) -> HttpResponse:
    _kept.extend(replace(call) for _ in range(6))  # the campaign tolerates five objects of a kind
    return DONE


def _refuses_without_a_reason(call: HttpRequest) -> HttpResponse:
    return HttpResponse(412, b"no")


@pytest.mark.parametrize(
    ("mistake", "rule"),
    short(
        [
            (_fails, "is answered with 500"),
            (_changes_and_refuses, "has changed ['tenant/half']"),
            (_changes_memory_only, "a restart changes rows: ['tenant/dream']"),
            (_keeps, "left behind: "),
            (_refuses_without_a_reason, "and no reason"),
        ],
        2,
    ),
)
def test_mistakes_are_noticed(
    mistake: Callable[[HttpRequest], HttpResponse], rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only several requests that are kept are noticed.
    where = ("/permissions", "/retention", "/persistence") if mistake is _keeps else ("/permissions",)
    rows = [
        row._replace(handler=mistake) if row.method != "GET" and any(each in row.path for each in where) else row
        for row in route_table.all_routes().rows
    ]
    if mistake is _keeps:
        monkeypatch.setattr(admin, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(http_server, "all_routes", lambda: Routes(rows))
    with pytest.raises(Broken) as broken:
        Campaign(9, tmp_path / "data").run(UNTIL_NOTICED)
    assert rule in str(broken.value)
    _kept.clear()


def test_a_request_of_a_foreign_page_that_is_let_in_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_site, "refusal_of", lambda headers, rules, **which: "")
    with pytest.raises(Broken, match="comes from a foreign page and is answered with"):
        Campaign(9, tmp_path / "data").run(UNTIL_NOTICED)


def test_the_command_says_how_to_see_it_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--seeds", "1", "--requests", "50"]) == 0
    assert capsys.readouterr().out.startswith("1 seeds, 50 requests, ")

    def breaks(campaign: Campaign, requests: int) -> None:
        raise Broken("a rule")

    monkeypatch.setattr(Campaign, "run", breaks)
    assert main(["--seed", "5", "--seeds", "3"]) == 1
    assert "again: python -m tests.fuzz.run --seed 5 --seeds 1" in capsys.readouterr().err
