"""Every screen: content, navigation and actions."""

import json
import re
from pathlib import Path

import pytest
from textual.geometry import Size
from textual.widgets import Input, OptionList, TextArea

from pulsarbox.tui.actions.action_table import PLACES
from pulsarbox.tui.app import SCREENS
from pulsarbox.tui.position_input import now_ms
from pulsarbox.tui.preferences import Preferences
from pulsarbox.tui.screens.maps.log_map import state_of
from pulsarbox.tui.screens.overview import _numbers
from pulsarbox.tui.widgets.bars import Line
from tests.tools.campaigns import short
from tests.unit.tui.driving import SMALL, WIDE, dashboard
from tests.unit.tui.fake import NOW, TOTALS, FakeBox, browsed, dead_letters, event, job, message, subscription

SEEN = {
    "overview": ("Published 12.3k/s", "Diagnosis", "Backlogs", "orders-0", "▲ 17 dead letters", "publish rate"),
    "topics": ("orders-0", "BACKLOG▾", "85%"),
    "subscriptions": ("orders-0", "throttled", "never", "the dispatch rate is used up"),
    "deadletters": ("orders-0-billing-DLQ", "● yes", "New messages are lost"),
    "quotas": ("publish rate", "1.00k/s", "● 12s", "namespace"),
    "clients": ("127.0.0.1:40000", "Pulsar-CPP-v3.7.1"),
    "storage": ("volumes/00000003", "64.0 MiB", "disk free"),
    "plugins": ("zones", "123,456", "KeyError: 'zone'"),
    "events": ("the backlog quota is reached: 30", "warning"),
    "jobs": ("dlq-replay", "running", "25%"),
    "pipelines": ("totals", "by_place_0", "1,200", "failed"),
}


@pytest.mark.parametrize(
    "size", short([(SMALL,), (WIDE,), ((40, 12),), ((300, 90),)], 2), ids=lambda size: f"{size[0]}x{size[1]}"
)
async def test_every_screen_at_any_size(size: tuple[int, int]) -> None:
    async with dashboard(size=size) as driver:
        for name, _, _, key in PLACES:
            await driver.press(key)
            await driver.at(SCREENS[name].partition(":")[2])
            assert {len(line) for line in driver.lines()} == {size[0]}
            if size == WIDE:
                text = driver.text()
                assert [each for each in SEEN[name] if each not in text] == []


async def test_from_a_topic_to_its_consumers_and_back() -> None:
    async with dashboard(place="topics") as driver:
        await driver.press("enter")
        await driver.at("Subscriptions")
        await driver.until(lambda: driver.table.count == 1)
        assert 'topic == "persistent://public/default/orders-0"' in driver.text()
        await driver.press("enter")
        await driver.at("SubscriptionDetails")
        assert "cause     the dispatch rate is used up" in driver.text()
        assert "Consumers" in driver.text() and "127.0.0.1:40000" in driver.text()
        await driver.press("escape")
        await driver.at("Subscriptions")
        await driver.press("escape")
        await driver.at("TopicsScreen")


async def test_columns_without_room_are_marked_in_the_dialog() -> None:
    async with dashboard(place="topics", size=SMALL) as driver:
        await driver.press("c")
        await driver.at("ColumnsDialog", answered=False)
        listed = {
            str(each.prompt)[2:].split("  ")[0]: str(each.prompt)[0]
            for each in driver.screen.query_one(OptionList).options
        }
        assert (listed["BACKLOG"], listed["SUBSCRIPTIONS"]) == ("●", "◌")
        assert "no room on this terminal" in driver.text()


async def test_a_filter_is_a_word_a_pattern_or_an_expression() -> None:
    async with dashboard(place="subscriptions") as driver:
        for text, count in (
            *(("orders-7", 1), ("/orders-1.$", 10), ("!/orders-1", 29), ("^public/default/orders-1.$", 10)),
            *(("orders-(7|8)$", 2), ("backlog >= 990", 11)),
        ):
            await driver.filter(text)
            await driver.until(lambda count=count: driver.table.count == count)  # type: ignore[misc]
        assert "11 of 40" in driver.told("filtered")
        assert driver.screen.command_line().endswith("billing")
        await driver.press("slash")
        await driver.until(lambda: isinstance(driver.app.focused, Input))
        field = driver.app.focused
        assert isinstance(field, Input)
        field.value = "backlog >"
        await driver.press("enter")
        await driver.until(lambda: any("invalid expression" in each for each in driver.said))
        await driver.until(lambda: isinstance(driver.app.focused, Input))
        await driver.press("enter")
        await driver.until(lambda: isinstance(driver.app.focused, Input))
        assert sum("invalid expression" in each for each in driver.said) == 1
        await driver.press("escape")
        await driver.until(lambda: driver.table.has_focus)
        await driver.press("escape")
        await driver.until(lambda: driver.table.count == 40)


async def test_order_and_columns_are_kept_for_the_next_time(tmp_path: Path) -> None:
    path = tmp_path / "top.json"
    async with dashboard(place="subscriptions", kept=Preferences(path)) as driver:
        await driver.press("s")
        await driver.at("ChoiceDialog", answered=False)
        options = driver.screen.query_one(OptionList)
        while not str(options.get_option_at_index(options.highlighted or 0).prompt).startswith("OUT/s"):
            await driver.press("down")
        await driver.press("enter")
        await driver.until(lambda: driver.table.sorted_by == ("outRate", True))
        await driver.press("S")
        await driver.until(lambda: driver.table.sorted_by == ("outRate", False))
        await driver.press("c")
        await driver.at("ColumnsDialog", answered=False)
        await driver.press("down", "space", "down", "shift+up", "enter")
        await driver.until(lambda: [column.key for column in driver.table.columns][:2] == ["topic", "type"])
        await driver.press("T")
    kept = json.loads(path.read_text())
    assert kept["sort.subscriptions"] == ["outRate", False] and kept["theme"] == "pulsarbox-light"
    assert "subscription" not in kept["columns.subscriptions"]
    async with dashboard(place="subscriptions", kept=Preferences(path)) as driver:
        assert driver.table.sorted_by == ("outRate", False)
        assert [column.key for column in driver.table.columns][:2] == ["topic", "type"]
        assert driver.app.theme == "pulsarbox-light"
    path.write_text("{nonsense")
    async with dashboard(kept=Preferences(path)) as driver:
        assert any("cannot read" in each for each in driver.said)
    assert path.read_text() == "{nonsense", "what cannot be read is not written over"


async def test_keys_can_be_others(tmp_path: Path) -> None:
    path = tmp_path / "top.json"
    path.write_text(json.dumps({"keys": {"topics": "ctrl+t"}}))
    async with dashboard(kept=Preferences(path)) as driver:
        await driver.press("ctrl+t")
        await driver.at("TopicsScreen")


async def test_a_quota_is_changed_in_its_place() -> None:
    async with dashboard(place="quotas") as driver:
        assert "topic policy orders-0 publish-rate 1000/s" in driver.told("told")
        await driver.press("enter")
        await driver.at("OperationDialog", answered=False)
        assert "publish-rate 1000/s" in driver.text()
        field = driver.screen.query_one("#field-limit", Input)
        assert field.value == "1000"
        field.value = "many"
        await driver.press("enter")
        await driver.until(lambda: "limit: expected a whole number" in driver.text())
        field.value = "2500"
        await driver.until(lambda: " 2500/s " in driver.text())
        await driver.press("enter")
        await driver.until(driver.box.changes)
        assert driver.box.changes() == [
            (
                "POST",
                "/admin/v2/persistent/public/default/orders-0/publishRate",
                {"publishThrottlingRateInMsg": 2500, "publishThrottlingRateInByte": -1},
            )
        ]


async def test_dead_letters_by_what_went_wrong_then_one_edited_and_put_back() -> None:
    box = FakeBox()
    box.rows["deadletters"][:] = [dead_letters(0)]
    async with dashboard(box, WIDE, place="deadletters") as driver:
        await driver.press("enter")
        await driver.at("Groups")
        assert "timeout after # s" in driver.text()
        await driver.press("R")
        await driver.at("OperationDialog", answered=False)
        only = 'fingerprint == "0123456789ab"'
        line = f"pulsarbox dlq replay orders-0-billing-DLQ --filter '{only}' --rate 100 --dry-run"
        assert line in " ".join(re.sub("[│┃]", " ", driver.text()).split())
        driver.screen.query_one("#field-dry_run", Input).value = "no"
        await driver.press("ctrl+s")
        await driver.until(box.changes)
        asked = {
            "kind": "dlq-replay",
            "topic": dead_letters(0)["topic"],
            "dryRun": False,
            "filter": only,
            "rate": 100.0,
        }
        assert box.changes() == [("POST", "/pulsarbox/v1/jobs", asked)]
        await driver.at("Groups")
        await driver.press("enter")
        await driver.at("Browser")
        assert any("filter=fingerprint" in target for _, target, _ in box.asked)
        await driver.press("E")
        await driver.at("Editing", answered=False)
        driver.screen.query_one("#payload", TextArea).text = '{"id": 249'
        await driver.press("ctrl+s")
        await driver.until(lambda: "invalid JSON" in driver.text())
        driver.screen.query_one("#payload", TextArea).text = '{"id": 249, "fixed": true}'
        driver.screen.query_one("#properties", TextArea).text = '{"source": "shop", "fixed": "yes"}'
        await driver.press("ctrl+s")
        await driver.at("OperationDialog", answered=False)
        await driver.press("ctrl+s")
        await driver.until(lambda: len(box.changes()) == 2)
        body = box.changes()[-1][2]
        assert body["filter"] == 'id == "12:249"' and body["dryRun"] is False
        assert body["edit"] == {
            "payload": '{"id": 249, "fixed": true}',
            "setProperties": {"fixed": "yes"},
            "removeProperties": ["EXCEPTION"],
        }


async def test_what_is_left_is_that_of_the_subscription_which_keeps_the_dead_letters() -> None:
    """Groups, messages and jobs cover the unacknowledged messages of the dead letter subscription.

    With several subscriptions, the dialog requests a choice.
    """
    box = FakeBox()
    box.rows["deadletters"][:] = [dead_letters(0, subscriptions=1, keptBy="triage", lost=False)]
    async with dashboard(box, WIDE, place="deadletters") as driver:
        await driver.press("enter")
        await driver.at("Groups")
        assert any(target.endswith("/groups?subscription=triage") for _, target, _ in box.asked)
        assert driver.screen.command_line() == "pulsarbox dlq groups orders-0-billing-DLQ -s triage"
        await driver.press("R")
        await driver.at("OperationDialog", answered=False)
        driver.screen.query_one("#field-subscription", Input).value = "other"
        await driver.until(lambda: "dlq replay orders-0-billing-DLQ -s other" in driver.text())
        await driver.press("ctrl+s")
        await driver.until(box.changes)
        assert box.changes()[0][2]["subscription"] == "other"
        await driver.at("Groups")
        await driver.press("enter")
        await driver.at("Browser")
        assert any("/browse/" in target and "subscription=triage" in target for _, target, _ in box.asked)
        driver.screen.act("dlq drop")
        await driver.at("OperationDialog", answered=False)
        assert driver.screen.values["subscription"] == "triage"


async def test_messages_are_browsed_both_ways_and_nothing_is_acknowledged() -> None:
    async with dashboard(place="topics", size=SMALL) as driver:
        await driver.press("b")
        await driver.at("Browser")
        await driver.until(lambda: driver.table.pointed is not None and driver.table.pointed["id"] == "12:249")
        assert "12:249" in driver.text() and '"id": 249' in driver.text()
        await driver.press("home")
        await driver.until(lambda: len(driver.screen.messages) == 200)
        await driver.until(lambda: ">12:150" in driver.text())  # older messages do not move the cursor out of view
        await driver.press("o")
        await driver.at("Question", answered=False)
        await driver.type("nowhere")
        await driver.press("enter")
        await driver.until(lambda: "invalid position 'nowhere'" in driver.text())
        field = driver.screen.query_one(Input)
        field.value = "earliest"
        await driver.press("enter")
        await driver.at("Browser")
        await driver.until(lambda: driver.table.pointed is not None and driver.table.pointed["id"] == "12:0")
        await driver.press("end")
        await driver.until(lambda: len(driver.screen.messages) == 200)
        await driver.press("v", "v")
        await driver.until(lambda: "7b 22 69 64" in driver.text())
        await driver.press("v", "F")
        await driver.until(lambda: "following" in driver.told("told"))
        await driver.until(lambda: driver.table.pointed is not None and driver.table.pointed["id"] == "12:249")
        driver.box.messages.append(message(250))
        await driver.press("r")
        await driver.until(lambda: driver.table.pointed is not None and driver.table.pointed["id"] == "12:250")
        await driver.press("F", "k", "space", "k", "k", "space", "D")
        await driver.at("MessageDifference")
        await driver.until(lambda: "~ customer: " in driver.text())
    assert driver.box.changes() == []


async def test_payloads_of_all_kinds_are_fit_for_a_terminal() -> None:
    box = FakeBox()
    for number, payload in enumerate((None, "AP/+", "G10SXQ==", "")):
        box.messages.append(message(300 + number, payload=payload, decoded=None))
    box.messages.append(message(310, decoded={"name": "a\x1b]0;x\x07"}, key="k\x9b", properties={"p\x1b": "\u202e"}))
    async with dashboard(box, WIDE, place="topics") as driver:
        await driver.press("b")
        await driver.at("Browser")
        seen = driver.text()
        for number in (303, 302, 301, 300):
            await driver.press("k")
            await driver.until(lambda number=number: f"─ 12:{number} " in driver.text())  # type: ignore[misc]
            seen += driver.text()
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(seen)
        assert "(null" in seen and "00 ff fe" in seen and "(empty)" in seen


async def test_a_cursor_and_the_keys_of_a_subscription_as_maps() -> None:
    async with dashboard(place="subscriptions") as driver:
        await driver.press("m")
        await driver.at("CursorMapScreen")
        text = driver.text()
        assert "mark-delete" in text and " 12:40 " in text and "12:50-51" in text
        assert "█" * 41 in text and "»" * 10 in text
        await driver.press("escape", "K")
        await driver.until(lambda: any("this one is Shared" in each for each in driver.said))
        driver.box.rows["subscriptions"][0]["type"] = "Key_Shared"
        await driver.press("r")
        await driver.until(lambda: (driver.table.pointed or {}).get("type") == "Key_Shared")
        await driver.press("K")
        await driver.at("KeyMapScreen")
        assert "customer-9" in driver.text()
        assert "c0 has not acknowledged 12:61" in driver.told("told")
        await driver.press("x")
        await driver.at("ChoiceDialog", answered=False)
        await driver.press("enter")
        await driver.at("OperationDialog", answered=False)
        await driver.press("enter")
        await driver.until(lambda: driver.box.changes() == [("POST", "/pulsarbox/v1/clients/0-c0/kick", None)])


def test_a_part_of_the_log_is_told_by_what_matters_most() -> None:
    def state(**counts: int) -> str:
        return state_of({"entries": 10, **counts})

    assert state() == "waiting"
    assert state(acknowledged=10) == "acknowledged"
    assert state(acknowledged=3) == "mixed"
    assert state(acknowledged=3, inFlight=1) == "inFlight"
    assert state(acknowledged=3, delayed=7) == "delayed"
    assert state(delayed=3) == "waiting"


async def test_events_are_added_and_jobs_are_paused_from_here() -> None:
    async with dashboard(place="events") as driver:
        await driver.until(lambda: driver.table.count == 30)
        fields = {"limit": 2_000_000, "ledger": 12_345}
        driver.box.events.append(event(31, text="a plugin failed", kind="plugin", severity="error", fields=fields))
        await driver.press("r")
        await driver.until(lambda: driver.table.count == 31)
        assert any("after=30" in target for _, target, _ in driver.box.asked)
        await driver.press("g", "enter")
        await driver.at("TextDialog", answered=False)
        assert "limit             2,000,000" in driver.text() and "ledger            12345" in driver.text()
        await driver.press("escape", "0")
        await driver.at("JobsScreen")
        await driver.press("x")
        await driver.at("ChoiceDialog", answered=False)
        assert "Pause the job" in driver.text() and "Resume the job" not in driver.text()
        await driver.press("enter")
        await driver.at("OperationDialog", answered=False)
        await driver.press("enter")
        await driver.until(lambda: driver.box.changes() == [("POST", "/pulsarbox/v1/jobs/2/pause", None)])
        await driver.press("enter")
        await driver.at("TextDialog", answered=False)
        text = driver.text()
        assert all(f"{name:<18}" in text for name in ("seen", "done", "skipped", "failed", "returned"))


async def test_what_has_no_room_in_the_table_stands_below_it() -> None:
    box = FakeBox()
    why = "8 dead letters again of 10 messages that were put back"
    box.answers["GET", "/pulsarbox/v1/jobs"] = [job(3, state="tripped", error=why)]
    text = "the backlog of a subscription with a long name has reached what its quota allows"
    box.events.append(event(31, text=text, severity="warning"))
    async with dashboard(box, SMALL, place="jobs") as driver:
        await driver.until(lambda: driver.told("told").startswith(f" {why}"))
        await driver.press("9")
        await driver.at("EventsScreen")
        await driver.until(lambda: driver.told("told") == f" {text[:60]}…  enter shows all")
        await driver.press("question_mark")
        await driver.at("TextDialog", answered=False)
        await driver.press("end")
        assert "SEVERITY" in str(driver.screen._text)


async def test_a_filter_is_seen_on_a_narrow_terminal() -> None:
    async with dashboard(size=(40, 24), place="topics") as driver:
        await driver.filter("backlog > 9000")
        await driver.until(lambda: " filter backlog > 9000" in driver.text() and "esc: clear" in driver.text())


async def test_a_filter_is_seen_before_the_box_has_answered() -> None:
    async with dashboard(place="topics") as driver:
        driver.box.gone = "it does not answer"
        await driver.filter("orders-0")
        await driver.until(lambda: "filter /orders-0  loading …" in driver.told("filtered"))
        driver.box.gone = ""
        await driver.press("r")
        await driver.until(lambda: "of 40" in driver.told("filtered"))
        await driver.press("b")
        await driver.at("Browser")
        await driver.filter("size > 1")
        await driver.until(lambda: " read so far" in driver.told("filtered"))


async def test_back_in_time_and_forth() -> None:
    async with dashboard(place="subscriptions") as driver:
        await driver.press("left")
        await driver.until(lambda: driver.said)
        await driver.press("t")
        await driver.at("Question", answered=False)
        await driver.type("-1000000")
        await driver.press("enter")
        await driver.until(lambda: "invalid time" in driver.text())
        driver.screen.query_one(Input).value = str(NOW - 3_600_000)
        await driver.press("enter")
        await driver.until(lambda: f"at={NOW - 3_600_000}" in driver.box.asked_rows())
        assert "◀" in driver.told("vitals")
        assert driver.told("hints").startswith(
            " ← → step  n now  enter details  / filter"
        ) and "pause" not in driver.told("hints")
        await driver.press("left")
        await driver.until(lambda: f"at={NOW - 3_610_000}" in driver.box.asked_rows())
        await driver.press("shift+right")
        await driver.until(lambda: f"at={NOW - 3_510_000}" in driver.box.asked_rows())
        await driver.press("n")
        await driver.until(lambda: "at=" not in driver.box.asked_rows() and "step" not in driver.told("hints"))
        driver.box.answers["GET", "/pulsarbox/v1/history"] = {}
        await driver.press("t")
        await driver.until(lambda: any("History is unavailable" in each for each in driver.said))


async def test_all_rows_are_written_to_a_file(tmp_path: Path) -> None:
    async with dashboard(place="subscriptions") as driver:
        for form, command in (("ndjson", "export"), ("csv", "export csv")):
            path = tmp_path / f"rows.{form}"
            driver.screen.act(command)
            await driver.at("Question", answered=False)
            driver.screen.query_one(Input).value = str(path)
            await driver.press("enter")
            await driver.until(lambda path=path: any(str(path) in each for each in driver.said))  # type: ignore[misc]
        rows = [json.loads(line) for line in (tmp_path / "rows.ndjson").read_text().splitlines()]
        assert len(rows) == 40 and rows[0]["topic"] == "persistent://public/default/orders-0"
        assert (tmp_path / "rows.csv").read_text().count("\n") == 41
        driver.screen.act("export")
        await driver.at("Question", answered=False)
        driver.screen.query_one(Input).value = str(tmp_path / "rows.csv")
        await driver.press("enter")
        await driver.until(lambda: any("exists" in each for each in driver.said))


async def test_an_empty_box_says_how_to_begin() -> None:
    box = FakeBox()
    for rows in box.rows.values():
        rows.clear()
    box.answers |= {("GET", f"/pulsarbox/v1/{name}"): [] for name in ("jobs",)}
    box.events = []
    box.totals |= {"topics": 0, "throttled": 0, "deadLetters": 0}
    async with dashboard(box, WIDE) as driver:
        for key, text in (
            ("2", "pulsarbox produce hello"),
            ("3", "pulsarbox consume hello"),
            ("4", "No dead letters. Keep messages that fail:"),
            ("5", "No limits"),
            ("6", "No client is connected. Connect one:"),
            ("8", "No plugin is in use"),
            ("9", "pulsarbox events --follow"),
            ("0", "pulsarbox dlq replay"),
            ("P", "No pipeline is running"),
        ):
            await driver.press(key)
            await driver.until(lambda text=text: text in driver.text())  # type: ignore[misc]


async def test_what_an_empty_screen_says_is_not_cut_off() -> None:
    box = FakeBox()
    for rows in box.rows.values():
        rows.clear()
    async with dashboard(box, SMALL) as driver:
        for key, text in (("4", "sub dead-letter TOPIC SUB 3"), ("5", "--size 2G --then hold")):
            await driver.press(key)
            await driver.until(lambda text=text: text in " ".join(driver.text().replace("┃", " ").split()))  # type: ignore[misc]


def test_no_word_stands_without_its_number_however_wide_the_line_is(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, line, labels = "", Line(), {"topics", "subscriptions", "producers", "consumers", "connections", "disk"}
    line.put(_numbers(TOTALS))
    assert line.text.endswith("disk 1.86 GiB (74.5 GiB free)")
    for width in range(1, 160):
        monkeypatch.setattr(Line, "size", Size(width, 1))
        shown = "".join(text for text, _, _ in line._parts())
        assert len(shown) == width
        assert shown.split()[-1:] == [] or shown.split()[-1] not in labels, shown
        assert ("disk" in shown) == ("disk 1.86 GiB" in shown), shown
    assert shown.rstrip() == line.text


async def test_what_is_held_back_and_what_has_failed_is_asked_for_half_as_often_as_backlogs() -> None:
    async with dashboard(interval=0.1) as driver:

        def asked(view: str, told: list[str]) -> int:
            return sum(f"/top/{view}?" in target for target in told)

        await driver.at("Overview")
        await driver.until(lambda: asked("subscriptions", targets(driver.box)) >= 7)
        told = targets(driver.box)  # at once, because the dashboard goes on asking
        backlogs, few = asked("subscriptions", told), (asked("quotas", told), asked("deadletters", told))
        assert all(backlogs // 2 - 1 <= each <= backlogs // 2 + 2 for each in few), told


async def test_history_is_gone_back_in_from_the_overview_and_not_before_its_beginning() -> None:
    async with dashboard() as driver:
        driver.box.answers["GET", "/pulsarbox/v1/history"] = {"from": now_ms() - 15_000, "to": now_ms(), "step": 10_000}
        await driver.press("t")
        await driver.type("-12s")
        await driver.press("enter")
        await driver.until(lambda: driver.app.at is not None)
        await driver.at("Overview")
        before = driver.app.at
        await driver.press("left")
        await driver.until(lambda: driver.app.at != before)
        await driver.press("left")
        await driver.until(lambda: "Nothing was recorded before that time" in driver.said)
        assert driver.app.at is not None and before is not None and 0 < before - driver.app.at < 10_000


async def test_jobs_of_now_are_not_shown_in_history() -> None:
    async with dashboard(place="jobs", at=NOW - 3_600_000) as driver:
        assert "✕ Jobs are not recorded. Press n to return to now." in driver.text() and driver.table.count == 0
        assert "No data yet" not in driver.text() and "Not recorded." in driver.text()
        await driver.press("n")
        await driver.until(lambda: driver.table.count == 2)


async def test_of_a_tenant_alone_all_that_is_asked_says_so() -> None:
    box = FakeBox()
    box.feed.scope = {"tenant": "public"}
    box.rows["jobs"] = [job(1)]
    async with dashboard(box, place="subscriptions") as driver:
        assert driver.table.count == 40
        await driver.press("9")
        await driver.at("EventsScreen")
        assert driver.screen.command_line() == "pulsarbox events --tenant public"
        await driver.press("0")
        await driver.at("JobsScreen")
        assert driver.table.count == 1
        assert [each for each in targets(box) if "tenant=public" not in each] == []


def targets(box: FakeBox) -> list[str]:
    return [str(target) for _, target, *_ in box.asked]


async def test_what_the_files_of_a_box_do_not_tell_has_a_mark_and_the_reason() -> None:
    box = FakeBox()
    row = subscription(0, oldest=None, type=None, trend=[])
    box.answers["GET", "/pulsarbox/v1/top/subscriptions"] = {
        "total": 1, "matching": 1, "rows": [row], "unknown": {"oldest": "it stands in the message"},
    }  # fmt: skip
    async with dashboard(box, (200, 40), place="subscriptions") as driver:
        assert "OLDEST ? it stands in the message" in driver.told("told")
        assert any(" ? " in line for line in driver.lines() if "orders-0" in line and "billing" in line)
        assert "never" in driver.text(), "what is None and means something is not unknown"


async def test_of_a_pipeline_all_is_told_and_what_it_writes_is_looked_at() -> None:
    async with dashboard(place="pipelines", size=WIDE) as driver:
        text = driver.text()
        assert "orders-0, orders-1" in text and "parquet:/data/orders" in text and "ValueError: '" in text
        await driver.press("enter")
        await driver.at("TextDialog", answered=False)
        text = driver.text()
        assert "reads             persistent://public/default/orders-0" in text
        assert "rows/s            846" in text and "640 ms" in text and "No errors." in text
        assert (
            "addBatch 500 ms, commitOffsets 40.0 ms" in text and "1.00 MiB" in text and "http://worker-1:4040" in text
        )
        await driver.press("escape", "G")
        await driver.until(lambda: "ValueError" in driver.told("told"))
        assert (driver.table.pointed or {})["lastError"] == "ValueError: 'mail-7' is no address…"
        await driver.press("enter")
        await driver.at("TextDialog", answered=False)
        (line,) = (line for line in driver.lines() if "in send of mailer.py, line 12" in line)
        assert "ValueError" not in line and "\\n" not in line, "lines are lines"
        await driver.press("escape", "k", "b")
        await driver.until(lambda: "The query does not write to a topic" in driver.said)
        driver.box.answers["GET", "/pulsarbox/v1/browse/public/default/totals"] = browsed(driver.box.messages)
        await driver.press("k", "b")
        await driver.at("Browser")
        assert driver.screen.topic == "persistent://public/default/totals"


async def test_empty_details_name_the_command_that_fills_them() -> None:
    box = FakeBox()
    box.rows["clients"].clear()
    box.messages.clear()
    box.rows["deadletters"] = [dead_letters(0)]
    path = "/pulsarbox/v1/dlq/public/default/orders-0-billing-DLQ/groups"
    box.answers["GET", path] = {"groups": [], "looked": 0, "total": 0}
    async with dashboard(box, WIDE, place="subscriptions", target=("--context", "live")) as driver:
        await driver.press("enter")
        await driver.at("SubscriptionDetails")
        await driver.until(lambda: "pulsarbox consume orders-0 -s billing --context live" in driver.text())
        await driver.press("b")
        await driver.at("Browser")
        await driver.until(lambda: "pulsarbox produce orders-0 'Hello, world' --context live" in driver.text())
        await driver.press("4", "enter")
        await driver.at("Groups")
        command = "pulsarbox dlq groups orders-0-billing-DLQ --stored --context live"
        await driver.until(lambda: "No dead letters remain. Show stored ones:" in driver.text())
        assert command in driver.table.empty
