"""Snapshots without a screen: the overview when the box rejects a part of it."""

import json
import re
from typing import Any

import pytest
from rich.cells import cell_len

from pulsarbox.client.transport.web import Reply, Unanswered
from pulsarbox.tui import once
from pulsarbox.tui.feed import Feed, FeedError
from pulsarbox.tui.once import self_contained
from pulsarbox.tui.views import VIEWS
from pulsarbox.tui.widgets import numbers
from tests.unit.tui.driving import SMALL, dashboard

SUBSCRIPTION = {"topic": "persistent://public/default/orders", "subscription": "billing", "backlog": 50}


class ViewAnswers:
    """Responses by view name."""

    def __init__(self, **answers: Any) -> None:
        self.answers = {
            "overview": {"view": "overview", "total": 0, "matching": 0, "rows": [], "totals": {"backlog": 50}},
            "subscriptions": {"view": "subscriptions", "total": 3, "matching": 1, "rows": [SUBSCRIPTION]},
            "quotas": {"view": "quotas", "total": 0, "matching": 0, "rows": []},
            "deadletters": {"view": "deadletters", "total": 0, "matching": 0, "rows": []},
        } | answers

    def __call__(self, method: str, target: str, body: bytes | None) -> Reply:
        answer = self.answers[target.rpartition("/")[2].partition("?")[0]]
        if isinstance(answer, int):
            return Reply(answer, {}, json.dumps({"reason": "not for you"}).encode())
        if answer is None:
            raise Unanswered("gone")
        return Reply(200, {}, json.dumps(answer).encode())


def asked(**answers: Any) -> dict[str, Any]:
    return once.asked(Feed(ViewAnswers(**answers)), "overview")


def test_its_rows_are_the_backlogs_and_the_other_tables_stand_beside() -> None:
    found = asked()
    assert (found["view"], found["total"], found["matching"], found["rows"]) == ("overview", 3, 1, [SUBSCRIPTION])
    assert found["quotas"] == found["deadletters"] == {"total": 0, "matching": 0, "rows": []}
    text = "\n".join(once.as_text("overview", found))
    assert "billing" in text and "Nothing is near its limit." in text and "Dead letters" in text


def test_a_table_that_is_refused_says_why_and_the_others_stand() -> None:
    found = asked(quotas=403)
    assert found["quotas"] == {"total": 0, "matching": 0, "rows": [], "error": "not for you"}
    assert "not for you" in once.as_text("overview", found)
    assert found["rows"] == [SUBSCRIPTION]


@pytest.mark.parametrize("view", ["overview", "subscriptions"])
def test_without_numbers_or_backlogs_there_is_no_overview(view: str) -> None:
    with pytest.raises(FeedError, match="not for you"):
        asked(**{view: 403})


def test_a_box_that_goes_meanwhile_is_no_empty_table() -> None:
    with pytest.raises(FeedError, match="gone"):
        asked(deadletters=None)


GROWING = SUBSCRIPTION | {
    "cause": "no-permits", "change": 5.0, "inRate": 15.0, "outRate": 10.0, "consumers": 1, "backlog": 50,
}  # fmt: skip


def test_the_diagnosis_comes_first_in_text_and_json() -> None:
    found = asked(subscriptions={"view": "subscriptions", "total": 3, "matching": 1, "rows": [GROWING]})
    text = "orders/billing falls behind: 1 consumer takes 10/s of 15/s; 50 messages wait"
    assert [(each["kind"], each["text"], each["subscription"]) for each in found["diagnosis"]] == [
        ("falls-behind", text, "billing")
    ]
    assert once.as_text("overview", found)[0] == f"▲ {text}"


def test_the_diagnosis_is_about_the_whole_box_whatever_is_filtered() -> None:
    answers = ViewAnswers(subscriptions={"view": "subscriptions", "total": 3, "matching": 1, "rows": [GROWING]})
    targets = targets_of(answers, "-backlog", 1, "topic == 'x'", 77)
    first, whole = [target for target in targets if "/top/subscriptions" in target]
    assert "x" in first and "limit=1&" in first
    assert "filter=backlog+%3E+0" in whole and "limit=30&" in whole and "order=desc" in whole
    assert all("at=77" in target for target in targets), "of the past as of now"
    assert len(targets) == 5


def targets_of(answers: ViewAnswers, *query: Any) -> list[str]:
    targets: list[str] = []

    def noted(method: str, target: str, body: bytes | None) -> Reply:
        targets.append(target)
        return answers(method, target, body)

    once.asked(Feed(noted), "overview", *query)
    return targets


@pytest.mark.parametrize("query", [(), ("backlog", 5)])
def test_each_table_is_requested_once_without_a_filter(query: tuple[Any, ...]) -> None:
    targets = targets_of(ViewAnswers(), *query)
    assert len(targets) == 4
    assert all("limit=30&" in target for target in targets if "/subscriptions" in target) or not query


def test_the_diagnosis_requests_growing_backlogs_only_if_there_are_more_than_its_rows() -> None:
    rows = [SUBSCRIPTION | {"subscription": f"idle-{number}", "cause": "no-consumer"} for number in range(30)]
    answers = ViewAnswers(subscriptions={"view": "subscriptions", "total": 99, "matching": 75, "rows": rows})
    growing, unused = targets_of(answers)[-2:]
    assert "sort=change&order=desc" in growing and "limit=20&" in growing
    assert "limit=1&" in unused and "consumers+%3D%3D+0" in unused
    found = once.asked(Feed(answers), "overview")
    assert found["diagnosis"][0]["text"].startswith("75 subscriptions have no consumer; the largest: orders/idle-0")


def test_the_limit_of_the_tables_does_not_limit_the_diagnosis() -> None:
    calm = [SUBSCRIPTION | {"subscription": f"calm-{number}"} for number in range(3)]
    answers = ViewAnswers(subscriptions={"view": "subscriptions", "total": 4, "matching": 4, "rows": [*calm, GROWING]})
    found = once.asked(Feed(answers), "overview", None, 2)
    assert [row["subscription"] for row in found["rows"]] == ["calm-0", "calm-1"] and found["matching"] == 4
    assert [each["subscription"] for each in found["diagnosis"]] == ["billing"]


def test_a_table_that_is_refused_is_left_out_of_the_diagnosis() -> None:
    found = asked(quotas=403, deadletters=403)
    assert [each["kind"] for each in found["diagnosis"]] == ["calm"]


async def test_the_last_line_of_a_picture_is_whole_and_inside_its_frame() -> None:
    async with dashboard(size=SMALL) as driver:
        svg = self_contained(driver.app.export_screenshot())
    clip = re.search(r'clip-terminal">\s*<rect[^>]*height="([\d.]+)"', svg)
    frame = re.search(r'viewBox="0 0 [\d.]+ ([\d.]+)"', svg)
    lines = [float(y) for y in re.findall(r'<text [^>]*y="([\d.]+)"', svg)]
    assert clip is not None and frame is not None
    assert max(lines) + 5 <= float(clip[1]) <= float(frame[1]) - 41


VOLUMES = [{"name": f"volumes/{at}", "state": "sealed", "diskUsed": 10 * at} for at in range(4)]


def volumes(*query: Any) -> dict[str, Any]:
    answer = {"view": "storage", "total": 4, "matching": 4, "offset": 0, "rows": VOLUMES, "totals": {"commits": 7}}
    return once.asked(Feed(ViewAnswers(storage=answer)), "storage", *query)


def test_volumes_are_filtered_sorted_and_limited_although_the_box_returns_all() -> None:
    nothing = volumes(None, 50, 'name == "zzz"')
    assert (nothing["total"], nothing["matching"], nothing["rows"]) == (4, 0, [])
    assert once.as_text("storage", nothing)[-1] == "None of 4 rows match the filter."
    found = volumes("diskUsed", 2, "diskUsed > 0")
    assert (found["total"], found["matching"], found["totals"]) == (4, 3, {"commits": 7})
    assert [row["name"] for row in found["rows"]] == ["volumes/3", "volumes/2"]


@pytest.mark.parametrize("view", ["storage", "events"])
def test_an_invalid_filter_of_rows_that_are_filtered_here_is_an_error(view: str) -> None:
    answers = ViewAnswers(storage={"total": 4, "rows": VOLUMES}, events={"events": []})
    with pytest.raises(FeedError) as raised:
        once.asked(Feed(answers), view, None, 50, "name ==")
    assert raised.value.status == 400


def test_storage_is_not_recorded() -> None:
    with pytest.raises(FeedError, match="not recorded"):
        volumes(None, 50, "", 1_795_300_000_000)


NAMES = ("orders", "注文トピック", "주문-주제", "a" * 60 + "z")
WIDE_ROWS = [
    {"topic": f"persistent://public/default/{name}", "subscription": name[::-1], "backlog": 10**at, "type": "Shared",
     "cause": "no-permits", "oldest": None if at == 1 else 75.0, "trend": [1, 5, 2]}
    for at, name in enumerate(NAMES)
]  # fmt: skip


def cell_of(line: str, text: str) -> int:
    """The cell behind a text in a line."""
    return cell_len(line[: line.index(text) + len(text)])


def test_columns_are_aligned_by_cells() -> None:
    document = {"total": 4, "matching": 4, "rows": WIDE_ROWS}
    head, *lines = once.as_text("subscriptions", document)
    assert len(lines) == 4 and "a" * 60 + "z" in lines[-1], "whole names without a terminal"
    ends = {cell_of(line, f" {numbers.count(10**at)}") for at, line in enumerate(lines)}
    assert ends == {cell_of(head, "BACKLOG")}
    assert "?" in lines[1], "the age of an existing message is unknown"


@pytest.mark.parametrize("view", ["subscriptions", "overview"])
@pytest.mark.parametrize("width", [50, 80, 120, 400])
def test_tables_fit_the_terminal_and_hide_the_least_important_columns(width: int, view: str) -> None:
    document = {"total": 4, "matching": 4, "rows": WIDE_ROWS, "quotas": {}, "deadletters": {}}
    lines = once.as_text(view, document, width)
    table = lines[next(at for at, line in enumerate(lines) if line.startswith("TOPIC")) :][:6]
    assert max(map(cell_len, table[:5])) <= width and "BACKLOG" in table[0]
    hidden = {column.title for column in VIEWS["subscriptions"].columns} - set(re.split(r" {2,}", table[0].strip()))
    if view == "subscriptions":
        note = " ".join(lines[len(WIDE_ROWS) + 1 :])
        assert bool(hidden) == (width < 400) == note.startswith("without room: ")
        assert max(map(cell_len, lines)) <= width and all(title in " ".join(note.split()) for title in hidden)
        ranks = {column.title: column.rank for column in VIEWS["subscriptions"].columns}
        kept = set(ranks) - hidden
        assert max(ranks[title] for title in kept) <= min((ranks[title] for title in hidden), default=9)
    assert all(numbers.count(10**at) in table[1 + at] for at in range(4))


def backlogs(width: int) -> list[str]:
    rows = [{"topic": "orders", "subscription": "billing", "backlog": 24_000, "change": 400.0, "cause": "no-consumer",
             "causeText": "no consumer is connected"}]  # fmt: skip
    lines = once.as_text("overview", {"total": 1, "matching": 1, "rows": rows, "totals": {}}, width)
    return lines[lines.index("Backlogs") + 1].split()


def test_the_cause_of_a_backlog_stays_longer_than_its_change() -> None:
    assert backlogs(60)[:5] == ["TOPIC", "SUBSCRIPTION", "BACKLOG", "CHANGE/s", "CAUSE"]
    assert backlogs(44) == ["TOPIC", "SUBSCRIPTION", "BACKLOG", "CAUSE"]
    assert backlogs(40) == ["TOPIC", "SUBSCRIPTION", "BACKLOG", "CHANGE/s"], "where only that fits"


def test_a_bar_is_drawn_for_its_width_or_only_its_percentage() -> None:
    rows = [{"scope": "topic", "subject": "orders", "policy": "publish-rate", "share": 1.0, "used": 9.0, "limit": 9.0}]
    for width, is_bar in ((46, False), (200, True)):
        lines = once.as_text("quotas", {"total": 1, "matching": 1, "rows": rows}, width)
        assert " 100%" in lines[1] and "…" not in lines[1] and ("━━━━━━━━" in lines[1]) == is_bar


def totals(**values: Any) -> list[str]:
    lines = once.as_text("overview", {"rows": [], "totals": values}, 80)
    return lines[: lines.index("")]


def test_totals_are_in_words_and_without_what_has_not_happened() -> None:
    none = {"suspended": 0, "unread": 0, "lostDirectories": None, "lackingCopies": 0, "offloadedSize": 0, "p99": None}
    assert totals(consumers=0, topics=2, deadLetters=0, **none) == ["topics     2", "consumers  0"]
    happened = totals(suspended=1, unread=2, lostDirectories=3, lackingCopies=4, new=5, version="0.1.0", series={})
    assert [re.split("  +", line) for line in happened] == [
        ["version", "0.1.0"],
        ["connections not read", "2"],
        ["producers suspended", "1"],
        ["data directories lost", "3"],
        ["entries that lack a copy", "4"],
        ["new", "5"],
    ]


def test_volumes_that_are_selected_already_are_not_selected_again() -> None:
    """As from the files of a stopped box."""
    answer = {"view": "storage", "total": 4, "matching": 1, "offset": 0, "rows": VOLUMES[2:3]}
    assert once.asked(Feed(ViewAnswers(storage=answer)), "storage", None, 50, "diskUsed == 20") == answer
