"""Dashboard under adverse conditions: an unread terminal, a stalled connection, and messages and names of any size."""

import fcntl
import json
import os
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pulsar

from pulsarbox.cli.common.exits import EXIT_HUNG_UP
from tests.e2e.clients import EARLIEST
from tests.e2e.conftest import Running
from tests.e2e.terminal import RawTerminal, pulsarbox, tmux
from tests.tools.forwarder import Forwarder

Run = Callable[..., "subprocess.CompletedProcess[str]"]
MIB = 1 << 20
MEMORY_MAX = 200 * MIB
"""Memory limit of the process, which uses some 50 MiB under normal conditions."""


def short(topic: str) -> str:
    return topic.rpartition("/")[2]


def memory(pid: int) -> int:
    return int(psutil.Process(pid).memory_info().rss)


def stands_still(pid: int) -> bool:
    """Return whether the main thread, which polls ten times a second, has used no CPU for two seconds."""
    taken = Path(f"/proc/{pid}/schedstat")
    before = taken.read_text().split()[0]
    time.sleep(2.0)
    return taken.read_text().split()[0] == before


def test_a_terminal_that_stops_reading_holds_up_nobody_and_goes_on(
    box: Running, client: Any, topic: str, tmp_path: Path
) -> None:
    """No output accumulates for the terminal. Once the terminal reads again, the dashboard shows the current state."""
    client.subscribe(topic, "billing").close()
    producer = client.create_producer(topic)
    command = pulsarbox("top", "subscriptions", "--filter", f"/{short(topic)}$", "--admin-url", box.web_url)
    # Not a fork, whose memory would be mostly that of the modules of all commands.
    terminal = RawTerminal(["env", *command, "--interval", "0.1"], tmp_path, 200, 60)
    try:
        terminal.until(lambda seen: b"billing" in seen)
        end = time.monotonic() + 60
        width = 200
        while True:  # each resize redraws the screen: more output than the terminal accepts
            for _ in range(20):
                width = 401 - width
                fcntl.ioctl(terminal._fd, termios.TIOCSWINSZ, struct.pack("HHHH", 60, width, 0, 0))
                time.sleep(0.05)
            if stands_still(terminal.pid):
                break
            assert time.monotonic() < end, "it still finds room to write to"
        held = memory(terminal.pid)
        for _ in range(7):
            producer.send(b"x")
        stats = json.loads(box.admin("GET", f"{topic.replace('://', '/')}/stats"))
        assert stats["subscriptions"]["billing"]["msgBacklog"] == 7, "the box serves on"
        assert stands_still(terminal.pid) and memory(terminal.pid) < held + MIB
        size = len(terminal.seen)
        terminal.until(lambda seen: b"no consumer" in seen[size:])
        terminal.send(b"?")
        terminal.until(lambda seen: b"Help" in seen[size:])
        assert memory(terminal.pid) < MEMORY_MAX
    finally:
        terminal.close()


def test_who_closes_the_terminal_ends_it(box: Running, tmp_path: Path) -> None:
    terminal = RawTerminal(pulsarbox("top", "--admin-url", box.web_url), tmp_path)
    try:
        terminal.until(lambda seen: b"Backlogs" in seen)
        terminal.hang_up()
        assert terminal.wait() in (-signal.SIGHUP, EXIT_HUNG_UP)
    finally:
        terminal.close()


def test_over_a_link_that_stands_still_it_says_how_old_all_is_and_keys_work(
    box: Running, client: Any, topic: str
) -> None:
    client.subscribe(topic, "billing").close()
    producer = client.create_producer(topic)
    with Forwarder(urlsplit(box.web_url).port or 0) as link:
        link.flows.clear()
        command = pulsarbox("top", "subscriptions", "--admin-url", f"http://127.0.0.1:{link.port}")
        with tmux([*command, "--filter", f"/{short(topic)}$"], 100, 30) as terminal:
            terminal.until("loading …", " loading … ")
            terminal.keys("?")
            terminal.until("╭─ Help")
            terminal.keys("Escape")
            terminal.until("loading …", gone="╭─ Help")
            link.flows.set()
            terminal.until("billing", gone="loading …")
            link.flows.clear()
            terminal.until(" stale ", "billing")
            producer.send(b"x")
            terminal.keys("?")
            terminal.until("╭─ Help")
            terminal.keys("Escape")
            terminal.until(" stale ", "billing", gone="╭─ Help")
            link.flows.set()
            terminal.until("no consumer", gone="stale")
            assert link.connections < 20, "questions do not pile up"


def test_messages_of_any_size_are_browsed_in_little_room(box: Running, client: Any, topic: str, tmp_path: Path) -> None:
    """Tens of megabytes after decompression, lines of a million characters, binary data, long keys and names."""
    dead = f"{topic}-{'n' * 150}-DLQ"
    client.subscribe(dead, "keep", initial_position=EARLIEST).close()
    large = client.create_producer(dead, compression_type=pulsar.CompressionType.ZLib, batching_enabled=False)
    large.send(b"0" * 30 * MIB, properties={"EXCEPTION": "first"})
    line = json.dumps({"line": "x" * 1_000_000, "none": "\x1b]52;c;aGk=\x07" * 1000}).encode()
    for payload in (line, os.urandom(3 * MIB), b"\x1b[2J" * 200_000):
        large.send(payload, partition_key="k" * 500_000, properties={"EXCEPTION": "e" * 500_000})
    for number in range(300):
        large.send_async(json.dumps({"at": number, "fill": "y" * 100_000}).encode(), None)
    large.send(b"the last one")
    command = pulsarbox("top", "deadletters", "--filter", f"/{short(topic)}", "--admin-url", box.web_url)
    with tmux(["env", *command], 120, 36) as terminal:
        terminal.until("nnn", "DEAD LETTER TOPIC")
        terminal.keys("b")
        terminal.until("EXCEPTION = first", "(not decoded)")
        terminal.keys("o")
        terminal.until("Go to")
        terminal.type("latest")
        terminal.keys("Enter")
        terminal.until("the last one")
        terminal.keys("o")
        terminal.until("Go to")
        terminal.type("earliest")
        terminal.keys("Enter")
        terminal.until("EXCEPTION = first", "a message body of 31457280 bytes exceeds", "(not decoded)")
        terminal.keys("j")
        terminal.until(' {"line": "xxx', "EXCEPTION = eee")
        terminal.keys("Enter")
        terminal.until("(500,000 characters)", "▾ {2}", "line: ")
        terminal.keys("Escape")
        terminal.until(' {"line": "xxx', gone="▾ {2}")
        terminal.keys("v", "v")
        terminal.until("  bytes ──")
        terminal.keys("j", "v")
        terminal.until("3.00 MiB  bytes ──")
        assert terminal.memory() < MEMORY_MAX
        terminal.keys("q")
        terminal.until("ended")


def test_a_label_on_the_command_line_is_over_the_screen_and_in_its_dialogs(
    box: Running, client: Any, topic: str, run: Run
) -> None:
    client.subscribe(topic, "billing").close()
    client.create_producer(topic).send(b"x")
    mine = ("subscriptions", "--filter", f"/{short(topic)}$")
    picture = run("top", *mine, "--once", "-o", "svg", "--label", "PRODUCTION", "--label-color", "#00008b")
    assert picture.returncode == 0 and "PRODUCTION" in picture.stdout and "#00008b" in picture.stdout.lower()
    assert "PRODUCTION" not in run("top", *mine, "--once", "-o", "svg").stdout
    wrong = run("top", *mine, "--once", "-o", "svg", "--label", "LIVE", "--label-color", "reddish")
    assert wrong.returncode == 2 and "reddish" in wrong.stderr
    with tmux(pulsarbox("top", *mine, "--admin-url", box.web_url, "--label", "PRODUCTION"), 100, 30) as terminal:
        terminal.until(" PRODUCTION ", "billing", "no consumer")
        terminal.keys(":")
        terminal.type("sub clear")
        terminal.keys("Enter")
        terminal.until("Clear the backlog", "PRODUCTION", "Type the name to confirm: billing")
