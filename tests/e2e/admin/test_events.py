"""Events of a box: reported as they occur, preserved after a kill, shown and followed by the command."""

import itertools
import json
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

from tests import forks
from tests.e2e.clients import connect, until
from tests.e2e.commands import command, environment, run
from tests.tools.box import BoxProcess, admin

TOPIC = "persistent://public/default/orders"


def shown(box: BoxProcess, *words: str) -> list[dict[str, Any]]:
    done = run("events", "-n", "1000", "-o", "ndjson", *words, "--admin-url", box.web_url)
    return [json.loads(line) for line in done.stdout.splitlines()]


def on_disk(box: BoxProcess) -> str:
    return "".join(path.read_text() for path in sorted((box.data / "events").glob("*.ndjson")))


def test_last_nights_events_are_there_after_a_kill(own_box: BoxProcess) -> None:
    own_box.start()
    client = connect(own_box.url)
    client.create_producer(TOPIC).send(b"m")
    client.close()
    until(lambda: "client-disconnected" in on_disk(own_box))
    own_box.kill()
    own_box.start()
    found = shown(own_box)
    kinds = [each["kind"] for each in found]
    assert kinds.count("started") == 2
    assert kinds.index("client-connected") < kinds.index("topic-created") < kinds.index("client-disconnected")
    assert kinds.index("client-disconnected") < kinds.index("recovered")
    numbers = [each["sequence"] for each in found]
    assert numbers == sorted(set(numbers))
    (created,) = shown(own_box, "--filter", 'kind == "topic-created"', "--since", "-1h")
    assert created["subject"] == TOPIC
    table = run("events", "--filter", "/orders", "--admin-url", own_box.web_url).stdout.decode()
    head, first = table.splitlines()[:2]
    assert head.split() == ["TIME", "SEVERITY", "KIND", "SUBJECT", "TEXT"]
    assert first.endswith("topic-created        orders  created")
    assert own_box.stop() == 0
    assert "stopping" in on_disk(own_box)


def test_a_follower_goes_on_over_a_restart(own_box: BoxProcess) -> None:
    own_box.start()
    follower = forks.box(
        command("events", "--follow", "-n", "0", "-o", "ndjson", "--filter", "/topic", "--admin-url", own_box.web_url),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment(),
    )  # fmt: skip
    lines: list[str] = []
    assert follower.stdout is not None
    reading = threading.Thread(target=lines.extend, args=(map(bytes.decode, follower.stdout),), daemon=True)
    try:
        numbers = itertools.count()

        def heard() -> bool:  # the time at which the command begins to follow is unknown
            admin(own_box.web_url, "PUT", f"persistent/public/default/first-{next(numbers)}")
            return bool(lines)

        reading.start()
        until(heard)
        own_box.stop()
        own_box.start()
        admin(own_box.web_url, "PUT", "persistent/public/default/second")
        until(lambda: any("default/second" in line for line in lines))
        os.kill(follower.pid, signal.SIGINT)
        assert follower.wait(30) == 130
    finally:
        follower.kill()
        follower.wait()
        reading.join()
        follower.stdout.close()
    heard_of = [json.loads(line)["sequence"] for line in lines]
    assert heard_of == sorted(set(heard_of))


def test_a_folder_of_events_in_the_way_keeps_no_box_from_starting(own_box: BoxProcess, tmp_path: Path) -> None:
    own_box.data.mkdir()
    (own_box.data / "events").write_bytes(b"\xff not a folder")
    own_box.start()
    admin(own_box.web_url, "PUT", "persistent/public/default/t")
    assert "topic-created" in [each["kind"] for each in shown(own_box)]
    assert own_box.stop() == 0
