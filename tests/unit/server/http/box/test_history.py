"""History over HTTP: past live views, recorded by the functions that show current ones."""

import asyncio
import errno
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from pulsarbox.broker.host import Host
from pulsarbox.broker.stats.sampler import Sampler
from pulsarbox.clock import Now
from pulsarbox.config import Settings
from pulsarbox.server.recording import history_recorder
from pulsarbox.server.recording.history_recorder import FrameStore, HistoryRecorder, Shown, gathered
from pulsarbox.storage.format import INSTANCE
from pulsarbox.storage.recording.history_files import FOLDER, files
from tests.unit.broker.core_driver import START
from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import HttpBox, running_box, until

HISTORY = "/pulsarbox/v1/history"
TOP = "/pulsarbox/v1/top"


def shown(box: HttpBox, time: int) -> Shown:
    """Return the state that the recorder gathers."""
    samples: Sampler = box.broker.samples
    now = box.shell.now()
    samples.watch(now)
    samples.passes = 0  # the next sampling pass is due
    while not samples.step(now, 1000):
        pass
    work: Generator[None, Now, Shown] = gathered(box.broker, 2, now)
    try:
        next(work)
        while True:
            work.send(now)
    except StopIteration as stop:
        found: Shown = stop.value
        return found._replace(time=time)


async def asked(box: HttpBox, path: str, status: int = 200) -> Any:
    got = await box.ask("GET", path)
    assert got.status == status, got.text
    return got.value


async def test_a_view_as_it_was(box: HttpBox, tmp_path: Path) -> None:
    box.broker.host = Host(folder=str(tmp_path))
    store = FrameStore(tmp_path / FOLDER, Settings())
    client = Client(box)
    for number in range(3):
        client.subscribe(f"persistent://public/default/t{number}")
        client.publish(f"persistent://public/default/t{number}", number + 1)
    store.write(shown(box, START))
    client.publish("persistent://public/default/t0", 10)
    box.shell.kick()
    later = shown(box, START + 10_000)
    store.write(later)
    there = await asked(box, HISTORY)
    assert (there["from"], there["to"], there["step"]) == (START, START + 10_000, 10_000)
    assert there["frames"] == [START, START + 10_000]
    assert there["bytes"] == sum(each.path.stat().st_size for each in files(tmp_path / FOLDER))
    then = await asked(box, f"{TOP}/subscriptions?at={START + 9_999}")
    assert (then["sampled"], then["total"], then["kept"], then["readOnly"]) == (START, 3, 2, True)
    assert [each["backlog"] for each in then["rows"]] == [3, 2]
    now = await asked(box, f"{TOP}/subscriptions?at={START + 10_000}&limit=1&columns=topic,backlog")
    assert now["rows"] == [{"topic": "persistent://public/default/t0", "backlog": 11}]
    least = await asked(box, f"{TOP}/subscriptions?at={START}&sort=backlog&order=asc&filter=backlog%20%3E%202")
    assert ([each["backlog"] for each in least["rows"]], least["matching"]) == ([3], 1)
    assert (await asked(box, f"{TOP}/topics?at={START}&tenant=other"))["rows"] == []
    overview = await asked(box, f"{TOP}/overview?at={START + 20_000}")
    assert overview["totals"]["backlog"] == 16
    assert overview["series"]["backlog"] == [6, 16]
    assert overview["seriesStep"] == 10


async def test_what_is_not_recorded(box: HttpBox, tmp_path: Path) -> None:
    await asked(box, HISTORY, 404)
    await asked(box, f"{TOP}/topics?at={START}", 404)
    box.broker.host = Host(folder=str(tmp_path))
    assert (await asked(box, HISTORY))["from"] is None
    assert "Nothing is recorded yet" in (await asked(box, f"{TOP}/topics?at={START}", 404))["reason"]
    FrameStore(tmp_path / FOLDER, Settings()).write(shown(box, START))
    reason = (await asked(box, f"{TOP}/topics?at={START - 1}", 404))["reason"]
    assert "the history goes from 2023-11-14 22:13:20+00:00" in reason
    await asked(box, f"{TOP}/topics?at=never", 400)
    await asked(box, f"{TOP}/topics?at={START}&order=up", 400)
    await asked(box, f"{TOP}/clients?at={START}", 404)
    await asked(box, f"{TOP}/nothing?at={START}", 404)


async def test_the_recorder_records_while_the_loop_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_recorder, "ROWS_AT_ONCE", 1)
    async with running_box() as box:
        box.broker.host = Host(folder=str(tmp_path))
        client = Client(box)
        for number in range(3):
            client.publish(f"persistent://public/default/t{number}", 1)
        shown(box, START)  # sample the topics
        (tmp_path / INSTANCE).touch()
        recording = HistoryRecorder(box.shell, tmp_path, Settings())
        recording._seconds = 0.01  # type: ignore[assignment]
        recording.start()
        try:
            async with asyncio.timeout(60):
                await until(lambda: any(each.path.stat().st_size > 1000 for each in files(tmp_path / FOLDER)))
        finally:
            recording.stop()
        found = await asked(box, f"{TOP}/topics?at={START}")
        assert found["total"] == 3


async def test_a_disk_that_cannot_be_written_is_no_reason_to_stop(box: HttpBox, tmp_path: Path) -> None:
    (tmp_path / FOLDER).write_text("in the way")
    store = FrameStore(tmp_path / FOLDER, Settings())
    store.write(shown(box, START))
    (tmp_path / FOLDER).unlink()
    store.write(shown(box, START))
    assert len(files(tmp_path / FOLDER)) == 1


async def test_a_disk_that_stays_full_is_not_filled_with_empty_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    async with running_box() as box:
        store = FrameStore(tmp_path / FOLDER, Settings())
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", full)
            for number in range(3):
                store.write(shown(box, START + number))
        assert list((tmp_path / FOLDER).iterdir()) == []
        store.write(shown(box, START + 10))
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", full)
            store.write(shown(box, START + 20))
        assert [each.path.stat().st_size > 0 for each in files(tmp_path / FOLDER)] == [True]
