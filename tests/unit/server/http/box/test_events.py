"""Events over HTTP: the newest, those after a number, stored ones, and future ones."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from pulsarbox.broker.events import BOOT_STEP, RING
from pulsarbox.broker.host import Host
from pulsarbox.config import Settings
from pulsarbox.server.http.framework import live_stream
from pulsarbox.server.tasks import spawn
from pulsarbox.storage.recording.event_files import FOLDER, EventWriter
from tests.unit.broker.security.signing import GUARDED, token
from tests.unit.server.http.harness import HttpBox, running_box, until

EVENTS = "/pulsarbox/v1/events"


async def asked(box: HttpBox, **query: Any) -> Any:
    got = await box.ask("GET", EVENTS + "?" + "&".join(f"{name}={value}" for name, value in query.items()))
    assert got.status == 200, got.text
    return got.value


def kinds(page: Any) -> list[str]:
    return [each["kind"] for each in page["events"]]


def tell(box: HttpBox, number: int, kind: str = "quota-hit") -> None:
    for each in range(number):
        box.broker.events.report(kind, f"t{each}", "full", box.shell.now())


def old_rows(first: int, count: int) -> list[dict[str, Any]]:
    about = {"severity": "error", "kind": "quarantined", "subject": "old", "text": "x", "count": 1, "fields": {}}
    return [{"sequence": number, "time": number, **about} for number in range(first, first + count)]


async def test_what_the_box_does_is_told(box: HttpBox) -> None:
    assert (await asked(box))["events"] == []
    await box.put("/persistent/public/default/t")
    await box.delete("/persistent/public/default/t")
    found = (await asked(box))["events"]
    assert [each["kind"] for each in found] == ["topic-created", "changed", "topic-deleted", "changed"]
    created, changed, *_ = found
    assert (created["subject"], created["severity"]) == ("persistent://public/default/t", "info")
    assert changed["text"] == "topic t created by 127.0.0.1"
    assert changed["subject"] == "persistent://public/default/t"
    assert changed["sequence"] == created["sequence"] + 1
    assert created["time"] == box.shell.now().wall


async def test_a_refused_change_is_a_warning_also_after_one_that_succeeded(box: HttpBox) -> None:
    for _ in range(2):
        await box.put("/persistent/public/default/t")
    created, refused = [each for each in (await asked(box))["events"] if each["kind"] == "changed"]
    assert (created["severity"], refused["severity"]) == ("info", "warning")
    assert refused["text"].startswith("creation of topic t refused for 127.0.0.1: ")
    assert refused["fields"]["status"] == 409


async def test_what_runners_and_sinks_tell_every_few_seconds_and_questions_are_no_changes(box: HttpBox) -> None:
    query = {"query": "q", "state": "running", "inputs": ["t"], "output": "u"}
    told = await box.ask("PUT", "/pulsarbox/v1/pipelines/p", {"queries": [query]})
    asked_for = await box.ask("POST", "/pulsarbox/v1/places", {"topics": ["persistent://public/default/t"]})
    assert (told.status, asked_for.status) == (204, 200), (told.text, asked_for.text)
    epoch = "/pulsarbox/v1/epochs/public/default/sink/0"
    staged = await box.ask("POST", f"{epoch}/stages", {"writer": "q", "run": "r"})
    committed = await box.ask("POST", epoch, {"transactions": []})
    segments = await box.ask("POST", "/pulsarbox/v1/segments", {"topics": []})
    assert (staged.status, committed.status, segments.status) == (200, 200, 200), segments.text
    assert (await asked(box))["events"] == []
    await box.ask("DELETE", "/pulsarbox/v1/pipelines/p")
    assert kinds(await asked(box)) == ["changed"]


async def test_pages_go_both_ways(box: HttpBox) -> None:
    tell(box, 10)
    first = BOOT_STEP + 1
    newest = await asked(box, limit=3)
    assert [each["sequence"] - first for each in newest["events"]] == [7, 8, 9]
    assert (newest["next"], newest["first"]) == (first + 9, first)
    before = await asked(box, limit=3, before=newest["events"][0]["sequence"])
    assert [each["sequence"] - first for each in before["events"]] == [4, 5, 6]
    after = await asked(box, limit=3, after=before["next"])
    assert [each["sequence"] - first for each in after["events"]] == [7, 8, 9]
    nothing = await asked(box, after=after["next"])
    assert (nothing["events"], nothing["next"]) == ([], first + 9)
    assert [each["sequence"] - first for each in (await asked(box, after=1, limit=2))["events"]] == [0, 1]


async def test_a_filter_and_a_time(box: HttpBox) -> None:
    tell(box, 3)
    tell(box, 2, "evicted")
    assert kinds(await asked(box, filter="kind%20==%20%22evicted%22")) == ["evicted"] * 2
    assert kinds(await asked(box, filter="/t1")) == ["quota-hit", "evicted"]
    assert kinds(await asked(box, filter="fields.limit%20%3E%201")) == []
    assert len(kinds(await asked(box, since="-1m"))) == 5
    assert kinds(await asked(box, since=box.shell.now().wall + 1)) == []
    skipped = await asked(box, filter="/nothing", after=1)
    assert (skipped["events"], skipped["next"]) == ([], box.broker.events.last)


@pytest.mark.parametrize("query", ["after=x", "before=-1", "limit=0", "limit=5001", "filter=a%20b", "since=never"])
async def test_a_wrong_parameter_says_so(box: HttpBox, query: str) -> None:
    got = await box.ask("GET", f"{EVENTS}?{query}")
    assert got.status == 400
    assert query.partition("=")[0] in got.reason


async def test_events_of_before_the_start_come_from_files(tmp_path: Path) -> None:
    EventWriter(tmp_path / FOLDER, 1 << 20, lambda error: None).write(old_rows(1, 10))
    async with running_box() as box:
        box.broker.host = Host(folder=str(tmp_path))
        tell(box, 2)
        assert kinds(await asked(box, limit=4)) == ["quarantined"] * 2 + ["quota-hit"] * 2
        assert kinds(await asked(box, after=8)) == ["quarantined"] * 2 + ["quota-hit"] * 2
        assert [each["sequence"] for each in (await asked(box, after=3, limit=2))["events"]] == [4, 5]
        assert [each["sequence"] for each in (await asked(box, before=4))["events"]] == [1, 2, 3]
        assert kinds(await asked(box, filter="/old", limit=100)) == ["quarantined"] * 10


async def test_what_left_the_memory_is_found_in_files_once(box: HttpBox, tmp_path: Path) -> None:
    box.broker.host = Host(folder=str(tmp_path))
    events = box.broker.events
    written: list[dict[str, Any]] = []
    events.listeners[lambda event: written.append(event.as_json())] = None
    for number in range(RING + 50):
        events._add("changed", f"{number}", "", 1, {}, box.shell.now())
    EventWriter(tmp_path / FOLDER, 8 << 20, lambda error: None).write(written)
    found = (await asked(box, after=1, limit=5000))["events"]
    assert [each["subject"] for each in found] == [str(number) for number in range(RING + 50)]
    found = (await asked(box, limit=5000))["events"]
    assert [each["subject"] for each in found] == [str(number) for number in range(RING + 50)]


async def follow(box: HttpBox, query: str, lines: list[dict[str, Any]], alive: list[bytes]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", box.port)
    try:
        writer.write(f"GET {EVENTS}?follow=true&{query} HTTP/1.0\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        while line := await reader.readline():
            if line.strip():
                lines.append(json.loads(line))
            else:
                alive.append(line)
    finally:
        writer.close()


async def test_events_are_followed_as_they_happen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_stream, "ALIVE_SECONDS", 0.05)
    async with running_box() as box:
        events = box.broker.events
        tell(box, 2)
        lines: list[dict[str, Any]] = []
        alive: list[bytes] = []
        following = spawn("follower", follow(box, f"after={events.last - 1}&filter=/t", lines, alive))
        await until(lambda: len(lines) == 1)
        await until(lambda: alive)
        tell(box, 3, "evicted")
        tell(box, 1, "job-done")
        await until(lambda: len(lines) == 5)
        assert [each["kind"] for each in lines] == ["quota-hit", "evicted", "evicted", "evicted", "job-done"]
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await until(lambda: not events.listeners)


async def opened(box: HttpBox, count: int, **headers: str) -> list[asyncio.StreamWriter]:
    """Open streams whose responses have started."""
    writers = []
    more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    for _ in range(count):
        reader, writer = await asyncio.open_connection("127.0.0.1", box.port)
        writer.write(f"GET {EVENTS}?follow=true HTTP/1.0\r\n{more}\r\n".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.0 200 ")
        writers.append(writer)
    return writers


@pytest.mark.parametrize(
    ("setting", "status", "holder"),
    [("maxHttpStreamsPerRole", 429, "the address 127.0.0.1 has 3"), ("maxHttpStreams", 503, "3")],
)
async def test_streams_are_bounded(setting: str, status: int, holder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_stream, "ALIVE_SECONDS", 0.05)
    async with running_box(Settings(**{setting: 3})) as box:
        writers = await opened(box, 3)
        refused = await box.ask("GET", f"{EVENTS}?follow=true")
        assert (refused.status, refused.headers["Retry-After"]) == (status, "10")
        assert refused.reason.startswith(f"{holder} streams") and setting in refused.reason
        assert (await box.ask("GET", EVENTS)).status == 200  # a finite response
        assert (await box.ask("HEAD", f"{EVENTS}?follow=true")).status == status
        assert (await box.post(f"/brokers/configuration/{setting}/4")).status == 200
        writers += await opened(box, 1)
        assert (await box.ask("GET", f"{EVENTS}?follow=true")).status == status
        writers.pop().close()
        await until(lambda: len(box.broker.events.listeners) == 3)
        writers += await opened(box, 1)
        assert (await box.post(f"/brokers/configuration/{setting}/0")).status == 200
        writers += await opened(box, 3)
        for writer in writers:
            writer.close()


@pytest.mark.settings(Settings(**GUARDED, maxHttpStreamsPerRole=2, anonymousUserRole="guest"))
async def test_each_role_has_streams_of_its_own_and_each_address_without_a_proof(box: HttpBox) -> None:
    proofs = [{"Authorization": f"Bearer {token(sub=role).decode()}"} for role in ("ann", "ben")]
    writers = []
    for proof in (*proofs, {}):
        writers += await opened(box, 2, **proof)
        refused = await box.ask("GET", f"{EVENTS}?follow=true", headers=proof)
        assert refused.status == 429
        assert ("the role 'ann'" in refused.reason) is (proof is proofs[0])
        assert ("the address 127.0.0.1" in refused.reason) is (not proof)
    for writer in writers:
        writer.close()


async def test_followers_are_let_go_when_the_port_closes() -> None:
    """``running_box`` closes the port and waits for pending requests. Their end is checked in the received bytes."""
    lines: list[dict[str, Any]] = []
    ended: list[str] = []
    async with running_box() as box:

        async def following() -> None:
            await follow(box, "", lines, [])
            ended.append("by the box")

        task = spawn("follower", following())
        await until(lambda: box.broker.events.listeners)
        tell(box, 1)
        await until(lambda: lines)
        task.add_done_callback(lambda done: ended.append("whole"))
    await asyncio.wait_for(task, 60)
    assert ended == ["by the box", "whole"]
