"""The overview: from the diagnosis to the remedy, its layouts, and the tabs above it."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest
from textual.widgets import OptionList

from pulsarbox.client.transport.web import Reply
from pulsarbox.tui.actions.action_table import PLACES
from pulsarbox.tui.actions.diagnosis import BAD, WARN, BoxFinding
from pulsarbox.tui.feed import Feed
from pulsarbox.tui.once import asked
from pulsarbox.tui.screens.overview import _way_to
from pulsarbox.tui.widgets import numbers
from pulsarbox.tui.widgets.bars import tabs
from pulsarbox.tui.widgets.box_facts import BoxFacts
from pulsarbox.tui.widgets.columns import subscription_title
from pulsarbox.tui.widgets.diagnosis_list import DiagnosisList
from pulsarbox.tui.widgets.graphs.graph import Graphs
from pulsarbox.tui.widgets.table import Table
from tests.gallery.boxes import busy, empty, files
from tests.unit.tui.driving import SMALL, WIDE, dashboard
from tests.unit.tui.fake import NOW, FakeBox, quota, subscription


async def test_enter_goes_to_what_matters_most_with_the_remedy_selected() -> None:
    box = FakeBox()
    limit = {"subject": f"{subscription(0)['topic']} billing", "policy": "dispatch-rate"}
    box.rows["quotas"], box.rows["deadletters"] = [quota(0, **limit, scope="subscription")], []
    async with dashboard(box, WIDE) as driver:
        findings = driver.screen.query_one(DiagnosisList)
        assert findings.has_focus and findings.pointed is not None
        first = "orders-0/billing falls behind: its dispatch rate lets 88/s of 100/s through; 1,000 messages wait"
        assert findings.pointed.text == first and first in driver.lines()[3]
        assert "enter opens the limit, with 'Change the limit' selected" in driver.told("told")
        await driver.press("enter")
        await driver.at("ChoiceDialog", answered=False)
        chosen = driver.screen.query_one(OptionList)
        assert str(chosen.get_option_at_index(chosen.highlighted or 0).prompt).strip() == "Change the limit"
        await driver.press("enter")
        await driver.at("OperationDialog", answered=False)
        await driver.press("escape")
        await driver.at("Quotas")
        assert driver.table.count == 1
        await driver.press("escape")
        await driver.at("Overview")
        await driver.press("j", "j", "enter")
        await driver.at("SubscriptionDetails")
        assert "billing" in driver.text() and "orders-2" in driver.text()


async def test_actions_in_the_diagnosis_are_on_its_row() -> None:
    box = FakeBox()
    box.rows["deadletters"] = []
    async with dashboard(box, WIDE) as driver:
        findings, table = driver.screen.query_one(DiagnosisList), driver.screen.query_one("#subscriptions", Table)
        await driver.press("j")
        await driver.until(lambda: findings.pointed is findings.found[1])
        row = findings.found[1].row
        assert row is not None and driver.screen.rows_chosen() == (row,)
        assert table.pointed is not None and table.pointed["topic"] != row["topic"]
        await driver.press("x")
        await driver.at("ChoiceDialog", answered=False)
        assert subscription_title(row) in driver.text()


async def test_the_menu_of_another_finding_is_what_enter_opens() -> None:
    box = FakeBox()
    box.rows["subscriptions"], box.rows["quotas"] = [], []
    async with dashboard(box, WIDE) as driver:
        findings = driver.screen.query_one(DiagnosisList)
        at = next(at for at, found in enumerate(findings.found) if found.screen == "deadletters")
        for _ in range(at):
            await driver.press("j")
        await driver.until(lambda: findings.pointed is findings.found[at])
        await driver.press("x")
        await driver.until(lambda: type(driver.app.screen_stack[-1]).__name__ in ("DeadLettersScreen", "ChoiceDialog"))
        assert any(type(each).__name__ == "DeadLettersScreen" for each in driver.app.screen_stack)


async def test_findings_and_backlogs_are_one_list_for_the_cursor() -> None:
    box = FakeBox()
    box.rows["deadletters"] = []
    async with dashboard(box, SMALL) as driver:
        findings, table = driver.screen.query_one(DiagnosisList), driver.screen.query_one("#subscriptions", Table)
        assert driver.lines()[2].startswith(" ▲ orders-0/billing falls behind")
        for number in range(1, len(findings.found)):
            await driver.press("j")
            assert findings.pointed is findings.found[number] and findings.has_focus
            begin = findings.pointed.text[:30]
            assert any(line[3:].startswith(begin) for line in driver.lines()[2:4]), "it is visible"
        assert "more" not in driver.lines()[3]
        await driver.press("j")
        await driver.until(lambda: table.has_focus)
        first = " ▲ orders-0/billing falls behind"
        await driver.until(lambda: driver.lines()[2].startswith(first))  # the most urgent is visible again
        assert "the dispatch rate is used up" in driver.told("told")
        await driver.press("j", "k", "k")
        await driver.until(lambda: findings.has_focus)
        await driver.press(*"k" * len(findings.found))
        assert findings.has_focus and findings.pointed is findings.found[0]
        await driver.pilot.click("#findings", offset=(5, 0))
        await driver.at("SubscriptionDetails")


async def test_a_growing_backlog_behind_the_largest_ones_is_the_headline() -> None:
    box = FakeBox()
    still = {"change": 0.0, "cause": "no-consumer", "consumers": 0, "outRate": 0.0, "inRate": 0.0}
    box.rows["subscriptions"] = [subscription(at, **still) for at in range(35)]
    box.rows["subscriptions"].append(subscription(99, backlog=500))
    box.rows["quotas"], box.rows["deadletters"] = [], []
    async with dashboard(box, WIDE) as driver:
        findings = driver.screen.query_one(DiagnosisList)
        await driver.until(lambda: len(findings.found) == 2)
        assert findings.found[0].text.startswith("orders-99/billing falls behind")
        assert findings.found[1].text.startswith("35 subscriptions have no consumer; the largest: orders-0/billing")
        assert driver.screen.query_one("#subscriptions", Table).count == 30
        box.rows["subscriptions"].clear()
        await driver.press("r", "r", "r", "r")
        await driver.until(lambda: findings.found[0].kind == "calm")
    assert not any("change+%3E" in target for _, target, _ in asked_with(5)), "all are known"


def asked_with(count: int) -> list[tuple[str, str, object]]:
    """The requests of a snapshot of a box with so many backlogs."""
    box = FakeBox()
    box.rows["subscriptions"] = [subscription(at) for at in range(count)]
    asked(box.feed, "overview")
    return list(box.asked)


async def test_if_nothing_is_wrong_enter_opens_the_backlog_of_the_cursor() -> None:
    box = FakeBox()
    box.rows["subscriptions"] = [subscription(0, change=-5.0, drain=9.0)]
    box.rows["quotas"], box.rows["deadletters"] = [], []
    async with dashboard(box, SMALL) as driver:
        assert driver.lines()[2].startswith(" ✓ Nothing needs attention: 12.3k/s in, 12.0k/s out")
        await driver.press("enter")
        await driver.at("SubscriptionDetails")


async def test_every_panel_is_loaded_once_the_box_is_reached() -> None:
    box = FakeBox()
    box.gone = "connection refused"
    async with dashboard(box, (200, 50)) as driver:
        panel = driver.screen.query_one(BoxFacts)
        assert panel.render_line(0).text.strip() == "No connection to the box."
        box.gone = ""
        await driver.press("r")
        await driver.until(lambda: "No connection" not in driver.text() and "topics" in panel.render_line(0).text)
        assert all(table.count for table in driver.screen.query(Table))


async def test_the_diagnosis_of_the_past_offers_no_change() -> None:
    box = FakeBox()
    box.read_only, box.rows["deadletters"] = True, []
    async with dashboard(box, WIDE, at=NOW - 3_600_000) as driver:
        assert any("/top/quotas" in target and f"at={NOW - 3_600_000}" in target for _, target, _ in box.asked)
        findings = driver.screen.query_one(DiagnosisList)
        await driver.until(lambda: "falls behind" in findings.found[0].text)
        quotas = [at for at, found in enumerate(findings.found) if found.screen == "quotas"]
        assert quotas, "a publish rate"
        driver.screen.post_message(DiagnosisList.Chosen(findings.found[quotas[0]]))
        await driver.at("Quotas")
        await driver.until(lambda: driver.table.count == 1)
        assert driver.screen.remedy == "" and len(driver.app.screen_stack) == 2


async def test_a_wide_terminal_has_the_box_and_its_busiest_topics_at_the_side() -> None:
    async with dashboard(size=(200, 50)) as driver:
        await driver.until(lambda: "Busiest topics" in driver.text() and "unacknowledged" in driver.text())
        assert "rate limits in effect" in driver.text() and "TYPE" in driver.text()
        await driver.pilot.resize_terminal(100, 40)
        await driver.until(
            lambda: "Busiest topics" not in driver.text() and "▲ 2 rate limits in effect" in driver.text()
        )
    async with dashboard(size=(100, 40)) as driver:
        assert not any("/top/topics" in target for _, target, _ in driver.box.asked), "not asked where not shown"
        await driver.pilot.resize_terminal(200, 50)
        await driver.until(lambda: "Busiest topics" in driver.text())
        await driver.until(lambda: any("/top/topics" in target for _, target, _ in driver.box.asked))


async def test_the_diagnosis_of_a_high_terminal_gets_the_lines_that_the_lower_panels_do_not_need() -> None:
    box = busy()
    async with dashboard(box, (200, 50)) as driver:
        findings, lower = driver.screen.query_one(DiagnosisList), driver.screen.query_one("#lower")
        await driver.until(lambda: findings.size.height == 8)
        assert len(findings.found) > 8 and lower.size.height == len(box.rows["quotas"]) + 3
        kept, box.rows["quotas"] = box.rows["quotas"], box.rows["quotas"][:1]
        box.rows["subscriptions"], box.rows["deadletters"] = [], []
        driver.screen._count = 0
        driver.screen.answered = 0.0
        await driver.press("r")
        await driver.until(lambda: len(findings.found) <= 2)
        assert (findings.size.height, lower.size.height) == (8, len(kept) + 3), "panels do not move while one looks"
        await driver.press("2", "1")
        await driver.until(lambda: (findings.size.height, lower.size.height) == (3, 6))
        await driver.pilot.resize_terminal(80, 24)
        await driver.until(lambda: findings.size.height == 2 and lower.size.height == 5)


@pytest.mark.parametrize("width", [80, 100, 119, 120, 130, 200])
@pytest.mark.parametrize("here", ["overview", "clients", "pipelines"])
def test_tabs_fit_with_whole_words_and_all_keys(width: int, here: str) -> None:
    parts = tabs(here, width)
    text = "".join(part for part, _, _ in parts)
    assert len(text) <= width and len(text.rstrip()) < width
    named = {name: title for name, title, _, _ in PLACES}
    assert named[here] in text
    current = next(part for part, look, _ in parts if look == "here")
    assert text.startswith(current) or f" {current}" in text, "its ground does not touch the word before it"
    assert [name for name, _, _, _ in PLACES] == list(dict.fromkeys(action for _, _, action in parts if action))
    words = " ".join(word for word in text.split() if len(word) != 1)
    for title in named.values():
        words = words.replace(title, "", 1)
    assert not words.strip(), "nothing is abbreviated"
    if width >= 120:
        assert all(title in text for title in named.values())


async def test_the_graphs_of_a_subscription_begin_with_what_the_box_has_recorded() -> None:
    box = FakeBox()
    frames = [NOW - seconds * 1000 for seconds in (590, 400, 200, 10)]
    box.answers["GET", "/pulsarbox/v1/history"] = lambda query, body: {"frames": frames, "from": 1, "step": 10_000}
    live = box.exchange

    def exchange(method: str, target: str, body: bytes | None) -> Reply:
        reply = live(method, target, body)
        at = parse_qs(urlsplit(target).query).get("at")
        if at and "/top/subscriptions" in target:
            told = json.loads(reply.body)
            told["now"] = int(at[0])
            told["rows"] = [row | {"inRate": 10_000.0} for row in told["rows"]]
            return reply._replace(body=json.dumps(told).encode())
        return reply

    box.feed = Feed(exchange, "http://box:8080")
    async with dashboard(box, WIDE, place="subscriptions") as driver:
        await driver.press("enter")
        await driver.at("SubscriptionDetails")
        await driver.until(lambda: "10.0k" in driver.text())
        assert "-10 min" in driver.text()
        asked = [target for _, target, _ in box.asked if "/v1/history" in target]
        assert len(asked) == 1 and f"to={NOW}" in asked[0], "once, not with each refresh"
        await driver.press("r")
        await driver.pilot.pause()
        driver.app.at = NOW - 3_600_000
        driver.app.refreshed()
        await driver.until(lambda: len([target for _, target, _ in box.asked if "/v1/history" in target]) == 2)


async def test_a_box_without_history_has_the_trend_of_the_backlog() -> None:
    box = FakeBox()
    del box.answers["GET", "/pulsarbox/v1/history"]
    async with dashboard(box, WIDE, place="subscriptions") as driver:
        await driver.press("enter")
        await driver.at("SubscriptionDetails")
        assert "-60 s" in driver.text() and "-2 min" not in driver.text()
        past = driver.screen._past
        assert past.series("backlog")[0] == 800 and past.series("backlog")[-1] == 1000
        assert past.series("inRate")[0] is None


@pytest.mark.parametrize(
    ("found", "action", "way"),
    [
        (
            BoxFinding("stuck", BAD, "", "subscriptions", {}),
            "cursor map",
            "enter opens the subscription, with 'cursor map' selected",
        ),
        (BoxFinding("unused", WARN, "", "subscriptions", {}), "", "enter opens the subscription"),
        (BoxFinding("disk-full", BAD, "", "storage"), "", "enter opens Storage"),
    ],
)
def test_a_finding_states_what_enter_opens(found: BoxFinding, action: str, way: str) -> None:
    assert "".join(text for text, _, _ in _way_to(found, action)).strip() == way


async def test_enter_is_hinted_wherever_it_opens_something() -> None:
    box = FakeBox()
    box.rows["subscriptions"], box.rows["quotas"] = [], []
    async with dashboard(box, (200, 50)) as driver:
        (found,) = driver.screen.query_one(DiagnosisList).found
        assert found.screen == "deadletters"
        await driver.until(lambda: driver.told("hints").startswith(" enter open  "))
        assert "p pause" in driver.told("hints") and "5 quotas" not in driver.told("hints")
        assert "y copy" in driver.told("hints") or " y pulsarbox" in driver.told("told")
        box.rows["deadletters"] = []
        driver.screen.ask_again()
        for _ in range(3):
            await driver.press("r")
            await driver.pilot.pause()
        await driver.until(lambda: driver.screen.query_one(DiagnosisList).found[0].kind == "calm")
        await driver.until(lambda: "enter" not in driver.told("hints"))


async def test_the_backlogs_in_the_files_of_a_box_show_what_is_unknown() -> None:
    async with dashboard(files(), WIDE) as driver:
        await driver.until(lambda: driver.screen.query_one("#subscriptions", Table).count == 1)
        (row,) = (line for line in driver.lines() if "orders-0 " in line and "1,000" in line)
        assert "never" not in row and " ? " in row
        await driver.press("j")
        await driver.until(lambda: "DRAINS IN ?" in driver.told("told"))


async def test_panels_count_all_rows_that_match_not_those_that_are_loaded() -> None:
    async with dashboard(size=WIDE) as driver:
        table = driver.screen.query_one("#subscriptions")
        assert len(driver.screen._rows["subscriptions"]) == 30
        assert str(table.border_subtitle).strip() == "40"


@pytest.mark.parametrize("size", [SMALL, (120, 40), (200, 50)])
async def test_the_command_of_an_empty_box_is_whole_and_copied(size: tuple[int, int]) -> None:
    command = "pulsarbox produce hello 'Hello, world'"
    async with dashboard(empty(), size) as driver:
        findings = driver.screen.query_one(DiagnosisList)
        await driver.until(lambda: command in "\n".join(driver.lines()[2:6]))
        assert findings.has_focus and driver.told("told") == f" y {command}"
        await driver.press("j")
        await driver.until(lambda: driver.told("told") == " y pulsarbox consume hello --subscription mine")


async def test_without_room_for_the_command_the_diagnosis_has_only_its_sentence() -> None:
    async with dashboard(empty(), (40, 24)) as driver:
        assert driver.lines()[2].rstrip() == " ✓ Nothing needs attention." and not driver.lines()[3].strip()
        assert driver.told("told") == " y pulsarbox produce hello 'Hello, world'"


@pytest.mark.parametrize("size", [SMALL, (120, 40), (200, 50)])
async def test_a_box_that_never_answered_has_no_line_of_numbers(size: tuple[int, int]) -> None:
    box = FakeBox()
    box.gone = "connection refused"
    async with dashboard(box, size) as driver:
        numbers_line = driver.screen.query_one("#numbers")
        assert not numbers_line.display
        line = next(line for line in driver.lines() if "No connection to the box." in line)
        assert line.strip("│┃").startswith(" No connection to the box.")
        box.gone = ""
        await driver.press("r")
        await driver.until(lambda: driver.screen.answered and numbers_line.display == (size[0] < 170))


async def test_the_graphs_of_a_lost_box_end_at_its_last_values() -> None:
    async with dashboard(size=WIDE) as driver:
        graphs, box = driver.screen.query_one(Graphs), driver.box
        assert graphs.end == "now"
        box.gone = "connection refused"
        await driver.press("r")
        await driver.until(lambda: graphs.end == numbers.moment(NOW))
        box.gone = ""
        await driver.press("r")
        await driver.until(lambda: graphs.end == "now")


@pytest.mark.parametrize("size", [(40, 24), (80, 18), SMALL, (80, 30), (200, 50)])
async def test_the_graphs_leave_the_room_that_the_panels_need_to_be_whole(size: tuple[int, int]) -> None:
    async with dashboard(busy(), size) as driver:
        body, graphs, lower = (driver.screen.query_one(each) for each in ("#body", "#graphs", "#lower"))
        await driver.until(lambda: graphs.size.height >= 2 and lower.region.bottom == body.region.bottom)
        driver.box.gone = "connection refused"
        await driver.press("r")
        await driver.until(lambda: "cannot connect" in driver.text())
        if size[1] >= 24:
            await driver.until(lambda: graphs.size.height >= 4 and lower.region.bottom == body.region.bottom)


async def test_the_edge_of_the_diagnosis_has_the_number_of_further_findings() -> None:
    async with dashboard(busy(), (120, 40)) as driver:
        findings = driver.screen.query_one(DiagnosisList)
        count = len(findings.found)
        await driver.until(lambda: str(findings.border_subtitle) == f"+{count - 3} more")
        assert driver.lines()[3].rstrip("┃ ").endswith(" enter")
        await driver.press(*["j"] * (count - 1))
        await driver.until(lambda: findings.pointed is findings.found[-1])
        assert not findings.border_subtitle
        await driver.press("j")
        await driver.until(lambda: str(findings.border_subtitle) == f"+{count - 3} more")
