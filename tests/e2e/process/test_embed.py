"""Embedded box over its lifecycle: in a thread and in a process, in memory and on disk, several at once."""

import asyncio
import gc
import json
import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pulsar
import pytest

from pulsarbox import BoxError, ConfigError, PulsarBox
from pulsarbox.embed.hosted import HostedBox
from pulsarbox.server.process.runtime_file import RuntimeFile
from tests import forks
from tests.e2e.clients import EARLIEST, connect, is_quiet, numbered, read_to_end, send_all, take, until
from tests.e2e.raw import Raw
from tests.tools.campaigns import short

KINDS = short(["thread-memory", "process-disk", "thread-disk", "process-memory"], 2)
Maker = Callable[..., PulsarBox]


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Maker:
    """Create boxes of one kind, not started."""
    process, disk = request.param.startswith("process"), request.param.endswith("disk")

    def made(**settings: Any) -> PulsarBox:
        data = tmp_path / f"data{len(list(tmp_path.iterdir()))}" if disk else None
        return PulsarBox(process=process, data_dir=data, **settings)

    return made


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    """Open the descriptors that libuv and the client open once per process, before any are counted."""
    with PulsarBox() as box:
        publish(box, "t", [b"x"])


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def until_closed(files: int) -> None:
    """Wait until no more than this number of descriptors is open: threads of the official client close theirs later."""
    gc.collect()
    until(lambda: descriptors() <= files)


def publish(box: PulsarBox, topic: str, payloads: list[bytes]) -> None:
    client = connect(box.service_url)
    send_all(client.create_producer(topic), payloads)
    client.close()


def held(box: PulsarBox, topic: str) -> list[bytes]:
    """Return the payloads of a topic, through a reader."""
    client = connect(box.service_url)
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    payloads = read_to_end(reader)
    client.close()
    return payloads


def test_messages_go_through_it_and_it_ends(make: Maker) -> None:
    threads, files = threading.active_count(), descriptors()
    box = make()
    with box:
        client = connect(box.service_url)
        consumer = client.subscribe("t", "s", initial_position=EARLIEST)
        client.create_producer("t").send(b"hello")
        assert take(consumer, 1) == [b"hello"]
        client.close()
        assert box.admin("GET", "/admin/v2/clusters") == ["standalone"]
        with urllib.request.urlopen(f"{box.admin_url}/admin/v2/brokers/health", timeout=60) as answer:
            assert answer.read() == b"ok"
    assert not box.is_running
    box.stop()
    until(lambda: threading.active_count() <= threads)
    del client, consumer
    until_closed(files)
    with pytest.raises(BoxError, match="not running"):
        box.restart()


def test_a_restart_keeps_data_ports_and_clients(make: Maker) -> None:
    with make() as box:
        url = box.service_url
        client = connect(url)
        consumer = client.subscribe("t", "s", initial_position=EARLIEST)
        producer = client.create_producer("t")
        producer.send(b"before")
        box.restart()
        assert box.service_url == url
        producer.send(b"after")
        assert take(consumer, 2) == [b"before", b"after"]
        client.close()


def test_a_snapshot_is_put_back_as_often_as_wanted(make: Maker) -> None:
    with make() as box:
        client = connect(box.service_url)
        consumer = client.subscribe("t", "s", initial_position=EARLIEST)
        publish(box, "t", numbered(5))
        assert take(consumer, 2) == numbered(2)
        consumer.close()  # its acknowledgements have arrived
        with box.snapshot() as snapshot:
            for number in range(2):
                publish(box, "t", [b"later"])
                publish(box, "other", [b"x"])
                box.restore(snapshot)
                assert held(box, "t") == numbered(5), f"after {number} times"
                again = client.subscribe("t", "s")
                assert take(again, 1) == numbered(1, start=2)
                assert "other" not in str(box.admin("GET", "/admin/v2/persistent/public/default"))
                again.close()
        client.close()
        with pytest.raises(BoxError, match="is closed"):
            box.restore(snapshot)


def test_a_snapshot_goes_to_another_box(make: Maker) -> None:
    with make() as one:
        publish(one, "t", numbered(3))
        snapshot = one.snapshot()
    with make() as other:
        publish(other, "t", [b"own"])
        other.restore(snapshot)
        assert held(other, "t") == numbered(3)
    snapshot.close()


def test_a_snapshot_under_load_holds_all_that_was_told_before_and_a_beginning_of_the_rest(make: Maker) -> None:
    with make() as box:
        client = connect(box.service_url)
        producer = client.create_producer("t", block_if_queue_full=True)
        told: list[int] = []
        stop = threading.Event()

        def keep_publishing() -> None:
            number = 0
            while not stop.is_set():
                producer.send(b"%d" % number)
                told.append(number)
                number += 1

        publisher = threading.Thread(target=keep_publishing)
        publisher.start()
        until(lambda: len(told) > 20)
        before = len(told)
        snapshot = box.snapshot()
        until(lambda: len(told) > before + 20)
        stop.set()
        publisher.join()
        client.close()
        box.restore(snapshot)
        payloads = held(box, "t")
        assert payloads == numbered(len(payloads)) and len(payloads) >= before
        snapshot.close()


def test_storages_are_not_mixed(tmp_path: Path) -> None:
    with PulsarBox() as memory, PulsarBox(data_dir=tmp_path / "data") as disk, memory.snapshot() as snapshot:
        refused = pytest.raises(BoxError, match="a box on memory to a box on")
        with refused:
            disk.restore(snapshot)


def test_a_box_that_cannot_be_opened_again_says_so_and_is_brought_back(make: Maker) -> None:
    with make(clock="virtual") as ahead:
        ahead.clock.advance(days=1)
        late = ahead.snapshot()
    with make() as box:
        publish(box, "t", numbered(3))
        good = box.snapshot()
        with pytest.raises(BoxError, match="1d ahead of the real time"):
            box.restore(late)
        with pytest.raises(BoxError, match="reopening it failed"):
            box.snapshot()
        box.restore(good)
        assert held(box, "t") == numbered(3)
    late.close()
    good.close()


def test_a_start_that_takes_too_long_is_given_up_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened, wait = HostedBox.open, threading.Event()

    async def slow(box: HostedBox) -> RuntimeFile:
        await asyncio.to_thread(wait.wait)
        return await opened(box)

    monkeypatch.setattr(HostedBox, "open", slow)
    monkeypatch.setattr("pulsarbox.embed.box.START_SECONDS_MAX", 0.1)
    with pytest.raises(BoxError, match=r"not serving after 0.1 s"):
        PulsarBox(data_dir=tmp_path / "data").start()
    wait.set()
    monkeypatch.undo()
    until(lambda: not [each for each in threading.enumerate() if each.name == "pulsarbox"])
    with PulsarBox(data_dir=tmp_path / "data") as box:
        publish(box, "t", [b"x"])


def test_the_clock_goes_forward_where_it_is_virtual(make: Maker) -> None:
    with make(clock="virtual") as box:
        before = box.clock.now()
        after = box.clock.advance(days=10)
        assert timedelta(days=10) <= after - before < timedelta(days=10, minutes=10)
        assert box.clock.advance(timedelta(hours=1)) - after < timedelta(hours=1, minutes=10)
        box.restart()
        assert box.clock.offset() == timedelta(days=10, hours=1)
        with pytest.raises(BoxError, match="only forward"):
            box.clock.set(before)
    with make() as box, pytest.raises(BoxError, match=r"--clock virtual.*409"):
        box.clock.advance(seconds=1)


def test_a_killed_process_comes_back_with_what_is_on_disk(tmp_path: Path) -> None:
    box = PulsarBox(process=True, data_dir=tmp_path / "data").start()
    publish(box, "t", numbered(10))
    port, pid = box.port, box.pid
    assert pid != os.getpid()
    box.kill()
    assert not box.is_running
    with box:
        assert box.port == port
        assert held(box, "t") == numbered(10)


def test_a_process_that_ends_by_itself_is_noticed(tmp_path: Path) -> None:
    box = PulsarBox(process=True).start()
    os.kill(box.pid, signal.SIGKILL)
    until(lambda: not box.is_running)
    with pytest.raises(BoxError, match="exited with code -9"):
        box.restart()
    box.start()
    assert box.is_running
    os.kill(box.pid, signal.SIGTERM)
    until(lambda: not box.is_running)
    box.stop()


def test_a_box_in_a_thread_cannot_be_killed() -> None:
    with PulsarBox() as box:
        with pytest.raises(BoxError, match="process=True"):
            box.kill()
        assert box.is_running


def test_what_stands_in_the_way_of_a_start_is_told(make: Maker, tmp_path: Path) -> None:
    with make() as one:
        threads, files = threading.active_count(), descriptors()
        with pytest.raises(BoxError, match=rf"port {one.port} .*choose another port with port="):
            make(port=one.port).start()
        if one.data_dir is not None:
            with pytest.raises(BoxError, match=r"in use by process \d+.*data_dir="):
                PulsarBox(data_dir=one.data_dir).start()
        with pytest.raises(BoxError, match="already running"):
            one.start()
        until(lambda: threading.active_count() <= threads)
        until_closed(files)


def test_settings_are_checked_before_anything_starts() -> None:
    with pytest.raises(ConfigError, match="PulsarBox: maxMesageSize: no such setting; did you mean maxMessageSize"):
        PulsarBox(maxMesageSize=1)
    with pytest.raises(ConfigError, match="expected a whole number"):
        PulsarBox({"maxMessageSize": "big"})
    with pytest.raises(ConfigError, match='one of "real", "virtual"'):
        PulsarBox(clock="broken")
    with pytest.raises(BoxError, match="has not been started"):
        PulsarBox().service_url  # noqa: B018


def test_the_loop_of_the_standard_library_does_as_well(make: Maker) -> None:
    files = descriptors()
    with make(eventLoop="asyncio") as box:
        publish(box, "t", numbered(3))
        with box.snapshot() as snapshot:
            box.restore(snapshot)
        assert held(box, "t") == numbered(3)
        box.restart()
        assert held(box, "t") == numbered(3)
    until_closed(files)


def test_settings_take_effect(make: Maker) -> None:
    with make(allowAutoTopicCreation=False) as box:
        client = connect(box.service_url)
        with pytest.raises(pulsar.TopicNotFound):
            client.create_producer("t")
        client.close()


def test_nothing_that_is_the_programs_own_is_touched(tmp_path: Path) -> None:
    """In a new interpreter, because earlier tests have changed the state of this one."""
    code = """
import gc, json, logging, resource, signal, sys, threading, warnings
def switches():
    return [sys.getswitchinterval(), gc.get_threshold(), gc.get_freeze_count(), gc.isenabled(),
        resource.getrlimit(resource.RLIMIT_NOFILE), [str(signal.getsignal(each)) for each in (2, 13, 15, 17)],
        logging.root.level, logging.root.handlers, sorted(logging.root.manager.loggerDict)[:0],
        sys.excepthook is sys.__excepthook__, threading.excepthook is threading.__excepthook__, warnings.filters[:3]]
before = switches()
from pulsarbox import PulsarBox
with PulsarBox() as box, PulsarBox(data_dir=sys.argv[1]) as other:
    box.admin("GET", "/admin/v2/clusters")
    other.admin("GET", "/admin/v2/clusters")
    assert switches() == before, (before, switches())
assert switches() == before
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code, str(tmp_path / "d")], check=True, timeout=60)


@pytest.mark.parametrize("process", [False, True], ids=["thread", "process"])
def test_a_program_that_forgets_it_ends_and_leaves_nothing_behind(tmp_path: Path, process: bool) -> None:
    code = f"""
import sys
from pulsarbox import PulsarBox
box = PulsarBox(process={process}, data_dir=sys.argv[1]).start()
print(box.pid, box._scratch or "-")
"""
    data = tmp_path / "data"
    done = subprocess.run(
        [sys.executable, "-c", code, str(data)], check=True, timeout=100, capture_output=True, text=True
    )
    pid, scratch = done.stdout.split()
    assert done.stderr == ""
    assert not Path(f"/proc/{pid}").exists()
    assert not Path(scratch).exists()
    assert not (data / "RUNNING").exists()  # it exited cleanly


def test_a_process_ends_with_the_program_that_is_killed(tmp_path: Path) -> None:
    code = """
import sys, time
from pulsarbox import PulsarBox
box = PulsarBox(process=True).start()
print(box.pid, flush=True)
time.sleep(60)
"""
    program = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    pid = program.stdout.readline().strip()
    assert Path(f"/proc/{pid}").exists()
    program.kill()
    program.wait()
    program.stdout.close()
    until(lambda: not Path(f"/proc/{pid}").exists())


def test_an_embedded_box_is_seen_but_not_stopped_from_outside(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with PulsarBox(data_dir=data) as box:
        box.admin("GET", "/admin/v2/clusters")
        until((data / "RUNNING").exists)
        shown = json.loads(forks.run("status", "--data-dir", str(data), "-o", "json").stdout)
        assert (shown["pid"], shown["embedded"], shown["health"]) == (os.getpid(), True, "ok")
        done = forks.text(forks.run("stop", "--data-dir", str(data)))
        assert (done.returncode, "another program" in done.stderr) == (4, True)


def in_a_fork(box: PulsarBox, told: Any) -> None:
    try:
        box.restart()
    except BoxError as error:
        told.put(str(error))
    box.stop()
    with PulsarBox() as own:
        own.admin("GET", "/admin/v2/clusters")
        told.put("own")
    told.get(timeout=60)  # remain while the parent stops its box


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_does_not_hold_what_is_the_parents(make: Maker) -> None:
    context = multiprocessing.get_context("fork")
    there, back = context.Queue(), context.Queue()

    class Told:
        put, get = there.put, back.get

    box = make().start()
    publish(box, "t", [b"before"])
    connected = Raw(box.service_url)  # wait for the response: the fork would keep a connection not yet accepted
    gc.collect()  # collecting closed official clients in a fork would wait for threads that the fork lacks
    child = context.Process(target=in_a_fork, args=(box, Told))
    child.start()
    assert "was started in process" in there.get(timeout=60)
    assert there.get(timeout=60) == "own"
    assert held(box, "t") == [b"before"]
    box.stop()
    connected.until_closed()  # the fork does not hold the connection
    with box:  # ports and data directory are free while the fork runs
        assert held(box, "t") == ([b"before"] if box.data_dir else [])
    back.put("go")
    child.join(60)
    assert child.exitcode == 0
    there.close()
    back.close()


async def test_it_is_used_from_asyncio(make: Maker) -> None:
    async with make() as box:
        reader, writer = await asyncio.open_connection("127.0.0.1", box.web_port)
        writer.write(b"GET /admin/v2/brokers/health HTTP/1.0\r\n\r\n")
        assert (await reader.read()).endswith(b"ok")
        writer.close()
    assert not box.is_running


def test_what_it_logs_goes_through_the_programs_logging(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "pulsarbox"), PulsarBox() as box:
        box.admin("PUT", "/admin/v2/tenants/acme", {"allowedClusters": ["standalone"], "adminRoles": []})
    assert "PUT /admin/v2/tenants/acme: done (204)" in caplog.text
    assert box.log() == ""


def test_a_process_logs_for_itself() -> None:
    with PulsarBox(process=True) as box:
        box.admin("PUT", "/admin/v2/tenants/acme", {"allowedClusters": ["standalone"], "adminRoles": []})
        assert "PUT /admin/v2/tenants/acme: done (204)" in box.log()
        assert "in a process, data in memory: pulsar://" in repr(box)
    assert "204" in box.log()


@pytest.mark.campaign
def test_a_hundred_stand_side_by_side_and_know_nothing_of_each_other() -> None:
    threads, files = threading.active_count(), descriptors()
    boxes = [PulsarBox().start() for _ in range(100)]
    assert len({box.port for box in boxes}) == 100
    some = boxes[::10]
    for number, box in enumerate(some):
        publish(box, "t", [b"%d" % number])
    assert [[each.payload for each in box.messages("t")] for box in some] == [[b"%d" % n] for n in range(10)]
    gc.collect()
    assert threading.active_count() - threads <= 100 * 4
    assert descriptors() - files <= 100 * 10
    for box in boxes:
        box.stop()
    until(lambda: threading.active_count() <= threads)
    until_closed(files)


def test_nothing_comes_from_one_that_is_quiet() -> None:
    with PulsarBox() as box:
        client = connect(box.service_url)
        assert is_quiet(client.subscribe("t", "s"))
        client.close()
