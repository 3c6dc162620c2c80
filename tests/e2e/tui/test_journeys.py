"""User journeys in a real terminal (tmux), with real boxes and clients.

``test_top`` has the journeys of the growing backlog, the quota and the dead letter.
"""

import json
import re
import shlex
from datetime import datetime
from pathlib import Path
from typing import Any

import pulsar

from tests.e2e.admin.test_history import backlogs, told
from tests.e2e.clients import QUIET_MS, connect, left, numbered, receive, until
from tests.e2e.commands import run
from tests.e2e.conftest import Running
from tests.e2e.terminal import Tmux, pulsarbox, tmux
from tests.tools.box import PULSARBOX, BoxProcess, admin

KEY_SHARED = pulsar.ConsumerType.KeyShared
ORDERS = "persistent://public/default/orders"


def short(topic: str) -> str:
    return topic.rpartition("/")[2]


def filter_for(terminal: Tmux, text: str, *seen: str) -> None:
    """Filter the rows by this text."""
    terminal.keys("/")
    terminal.type(text)
    terminal.keys("Enter")
    terminal.until("esc: clear the filter", *seen)


def key_of(hung: Any, works: Any, producer: Any) -> str:
    """Return a key of the hung consumer, which now has one message of the key; the other consumer has none."""
    for number in range(100):
        producer.send(b"0", partition_key=f"customer-{number}")
        try:
            hung.receive(timeout_millis=QUIET_MS)
        except pulsar.Timeout:
            works.acknowledge(receive(works))
        else:
            return f"customer-{number}"
    raise AssertionError("no key is its own")


def test_a_key_that_stands_still_is_set_going_again(box: Running, client: Any, topic: str) -> None:
    """One worker hangs on a message. The user locates and disconnects the worker; another one continues, in order."""
    hangs = connect(box.url)
    hung = hangs.subscribe(topic, "workers", KEY_SHARED, consumer_name="hung", receiver_queue_size=1)
    works = client.subscribe(topic, "workers", KEY_SHARED, consumer_name="works")
    producer = client.create_producer(topic, batching_enabled=False)
    key = key_of(hung, works, producer)
    for number in range(1, 5):
        producer.send(b"%d" % number, partition_key=key)
    with tmux(pulsarbox("top", "subscriptions", "--admin-url", box.web_url), 100, 30) as terminal:
        terminal.until("━ Subscriptions ━", "CAUSE", gone="Backlogs")
        filter_for(terminal, short(topic), "workers", "key blocked")
        terminal.keys("K")
        terminal.until(key, "stuck", "hung has not acknowledged", "disconnect it")
        terminal.keys("x")
        terminal.until("Disconnect the client", "pulsarbox client kick")
        terminal.keys("Enter")
        terminal.until("consumer hung (", "Confirm")
        terminal.keys("Enter")
        terminal.until("healthy clients reconnect: done")
        taken = []
        while b"4" not in taken:
            message = receive(works)
            taken.append(message.data())
            works.acknowledge(message)
        assert taken == numbered(5)
        until(hung.is_connected)
        terminal.until("No keys are assigned")
        terminal.keys("Escape")
        terminal.until("CAUSE", "workers", gone="key blocked")
    hangs.close()


def test_a_backlog_is_cleared_by_its_typed_name_and_another_by_the_line_that_was_copied(
    box: Running, client: Any, topic: str
) -> None:
    for name in ("billing", "audit"):
        client.subscribe(topic, name).close()
    producer = client.create_producer(topic)
    for payload in numbered(3):
        producer.send(payload)
    only = f'topic == "{topic}" and subscription == "billing"'
    command = pulsarbox("top", "subscriptions", "--filter", only, "--admin-url", box.web_url)
    with tmux(command, 120, 36) as terminal:
        terminal.until("CAUSE", "billing", "no consumer")
        terminal.keys(":")
        terminal.type("sub clear")
        terminal.keys("Enter")
        terminal.until("Clear the backlog", "Type the name to confirm: billing")
        terminal.keys("C-y")
        terminal.until("Copied")
        line = terminal.copied()
        assert line == f"pulsarbox sub clear {short(topic)} billing --yes --admin-url {box.web_url}"
        terminal.type("bill")
        terminal.keys("Enter")
        terminal.until("type 'billing' to confirm")
        assert left_in(box, topic) == {"billing": 3, "audit": 3}
        terminal.type("ing")
        terminal.keys("Enter")
        terminal.until("Clear the backlog: done", gone="no consumer")
    assert left_in(box, topic) == {"billing": 0, "audit": 3}
    words = shlex.split(line.replace("billing", "audit"))
    run(*words[1:])
    producer.send(b"after")
    for name in ("billing", "audit"):
        assert receive(client.subscribe(topic, name)).data() == b"after"


def left_in(box: Running, topic: str) -> dict[str, int]:
    stats = json.loads(box.admin("GET", f"{topic.replace('://', '/')}/stats"))
    return {name: each["msgBacklog"] for name, each in stats["subscriptions"].items()}


def test_what_a_dead_box_holds_is_seen_and_nothing_of_it_is_touched(own_box: BoxProcess) -> None:
    own_box.start()
    client = connect(own_box.url)
    client.subscribe(ORDERS, "billing").close()
    for topic, count in ((ORDERS, 20), (f"{ORDERS}-billing-DLQ", 3)):
        producer = client.create_producer(topic)
        for payload in numbered(count):
            producer.send(payload)
        producer.close()
    client.close()
    until(lambda: "topic-created" in "".join(path.read_text() for path in (own_box.data / "events").glob("*")))
    own_box.kill()
    before = sorted((str(path), path.stat().st_mtime_ns) for path in own_box.data.rglob("*") if path.is_file())
    with tmux(pulsarbox("top", "--data-dir", str(own_box.data)), 120, 36) as terminal:
        terminal.until("no box is running", "read-only", "Backlogs", "orders", "billing", "orders-billing-DLQ")
        terminal.keys("3")
        terminal.until("CAUSE", "billing", "20", "no consumer", gone="Backlogs")
        terminal.keys(":")
        terminal.type("sub clear")
        terminal.keys("Enter")
        terminal.until("changes the box, and")
        terminal.keys("4")
        terminal.until("orders-billing-DLQ", "New messages are lost")
        terminal.keys("9")
        terminal.until("topic-created")
        terminal.keys("7")
        terminal.until("volumes/", "current")
        terminal.keys("6")
        terminal.until("clients require a running box", "Needs a running box")
        terminal.keys("t")
        terminal.until("History is unavailable")
        terminal.keys("q")
        terminal.until("ended")
    after = sorted((str(path), path.stat().st_mtime_ns) for path in own_box.data.rglob("*") if path.is_file())
    assert after == before
    own_box.start()
    client = connect(own_box.url)
    assert left(client, ORDERS, "billing", 20) == numbered(20)
    client.close()


def waiting(box: BoxProcess, count: int) -> int:
    """Wait until this backlog is recorded, and return the time."""
    until(lambda: backlogs(box, 1 << 60).get(ORDERS) == count)
    when: int = told(box, "history")["to"]
    return when


def test_back_to_last_night_step_by_step_and_on_to_now(tmp_path: Path) -> None:
    """On a box with a manual clock, two messages wait; half a minute later seven; five hours later none."""
    tmp_path.joinpath("pulsarbox.toml").write_text("[recording]\nhistoryIntervalSeconds = 1\n")
    box = BoxProcess(tmp_path / "data", (*PULSARBOX, "--clock", "virtual"))
    box.start()
    try:
        client = connect(box.url)
        client.subscribe(ORDERS, "billing").close()
        producer = client.create_producer(ORDERS)
        times = []
        for count, later in ((2, "30s"), (5, "5h")):
            for _ in range(count):
                producer.send(b"x")
            times.append(waiting(box, 2 if count == 2 else 7))
            run("clock", "advance", later, "--admin-url", box.web_url)
        admin(box.web_url, "POST", "persistent/public/default/orders/subscription/billing/skip_all")
        waiting(box, 0)
        evening = datetime.fromtimestamp(times[0] / 1000).astimezone().isoformat(sep=" ")
        walked(box, evening)
        for at, backlog in (("-5h", 7), (evening, 2)):
            done = run("top", "subscriptions", "--once", "-o", "json", "--at", at, "--admin-url", box.web_url)
            assert [row["backlog"] for row in json.loads(done.stdout)["rows"]] == [backlog]
        client.close()
        assert box.stop() == 0
    finally:
        box.kill()


def walked(box: BoxProcess, evening: str) -> None:
    """Open a past time, step forward and back, return to the present, then start at a past time."""
    here = ("--admin-url", box.web_url)
    with tmux(pulsarbox("top", "subscriptions", *here), 120, 30) as terminal:
        terminal.until("billing", "clock +5h")
        shows(terminal, "0")
        terminal.keys("t")
        terminal.until("Go to a time", "Recorded since")
        terminal.type(evening)
        terminal.keys("Enter")
        terminal.until("◀", gone="Go to a time")
        shows(terminal, "2")
        for key, backlog in (("S-Right", "7"), ("Right", "7"), ("S-Left", "2")):
            stepped(terminal, key, backlog)
        terminal.keys("x")
        menu = terminal.until("Browse the messages")
        assert "Clear" not in menu, "what was cannot be changed"
        terminal.keys("Escape")
        terminal.until("◀", gone="Browse the messages")
        terminal.keys("n")
        terminal.until("clock +5h", gone="◀")
        shows(terminal, "0")
        terminal.keys("q")
        terminal.until("ended")
    with tmux(pulsarbox("top", "subscriptions", "--at", "-5h", *here), 120, 30) as terminal:
        terminal.until("◀", "billing")
        shows(terminal, "7")


def stepped(terminal: Tmux, key: str, backlog: str) -> None:
    """Step until the backlog has this value: the number of steps depends on the test's duration."""
    for _ in range(30):
        before = moment_seen(terminal.screen())
        terminal.keys(key)
        screen = terminal.until_it(lambda screen: has_moved(screen, before), "a step")  # noqa: B023 # called at once
        if backlog_seen(screen) == backlog:
            return
    raise AssertionError(f"no backlog of {backlog} after 30 steps\n{terminal.screen()}")


def has_moved(screen: str, before: str) -> bool:
    return "loading …" not in screen and moment_seen(screen) not in ("", before)


def moment_seen(screen: str) -> str:
    found = re.search(r"◀ ([\d:]+)", screen)
    return found[1] if found else ""


def shows(terminal: Tmux, backlog: str) -> None:
    terminal.until_it(lambda screen: backlog_seen(screen) == backlog, f"a backlog of {backlog}")


def backlog_seen(screen: str) -> str:
    """Return the value under BACKLOG of the only subscription."""
    lines = screen.split("\n")
    head = next((line for line in lines if "BACKLOG" in line), "")
    row = next((line for line in lines if "billing" in line and "orders" in line), "")
    return "".join(row[: head.find("BACKLOG") + len("BACKLOG▾")].split()[-1:])
