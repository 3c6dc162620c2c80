"""The dashboard with a box: snapshots, raw terminal bytes, and user journeys in a real terminal."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulsar
import pytest

from tests import forks
from tests.e2e.clients import EARLIEST, receive, until
from tests.e2e.conftest import Running
from tests.e2e.terminal import RawTerminal, pulsarbox, tmux
from tests.tools import campaigns

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def short(topic: str) -> str:
    return topic.rpartition("/")[2]


def test_one_look_as_text_as_json_and_as_a_picture(client: Any, topic: str, run: Run) -> None:
    client.subscribe(topic, "billing").close()
    producer = client.create_producer(topic)
    for _ in range(3):
        producer.send(b"x")
    of_mine = ("subscriptions", "--once", "--filter", f"/{short(topic)}$")
    until(lambda: "3" in run("top", *of_mine).stdout.split())  # the box samples its topics once a second
    shown = run("top", *of_mine)
    assert shown.returncode == 0, shown.stderr
    assert "match the filter." in run("top", "subscriptions", "--once", "--filter", "backlog < 0").stdout
    assert "CAUSE" in shown.stdout and "no consumer" in shown.stdout and short(topic) in shown.stdout
    told = json.loads(run("top", *of_mine, "-o", "json").stdout)
    assert [(row["backlog"], row["cause"]) for row in told["rows"]] == [(3, "no-consumer")]
    picture = run("top", *of_mine, "-o", "svg", "--size", "100x20")
    assert picture.stdout.startswith("<svg") and "billing" in picture.stdout, picture.stderr
    for view in ("overview", "events", "jobs"):
        assert run("top", view, "--once").returncode == 0, view


def test_one_look_at_the_overview_shows_backlogs_quotas_and_dead_letters(
    box: Running, client: Any, topic: str, run: Run
) -> None:
    client.subscribe(topic, "billing").close()
    client.subscribe(f"{topic}-DLQ", "triage").close()
    producer = client.create_producer(topic)
    for _ in range(50):
        producer.send(b"x")
    client.create_producer(f"{topic}-DLQ").send(b"x")
    box.admin("POST", f"persistent/public/default/{short(topic)}/maxProducers", "1")
    told: dict[str, Any] = {}

    def sampled() -> bool:
        """Wait for a sample: the box samples its topics once a second, a part of them after another."""
        told.update(json.loads(run("top", "--once", "--filter", f"/{short(topic)}$", "-o", "json").stdout))
        rows = [*told["rows"], *told["deadletters"]["rows"]]
        if told["totals"]["backlog"] < 50 or not any(row["topic"] == topic for row in told["quotas"]["rows"]):
            return False
        return {topic, f"{topic}-DLQ"} <= {row["topic"] for row in rows} and told["rows"][0]["backlog"] == 50

    until(sampled)
    assert told["view"] == "overview" and "series" in told
    assert [(row["subscription"], row["backlog"], row["cause"]) for row in told["rows"]] == [
        ("billing", 50, "no-consumer")
    ]
    assert told["rows"][0]["causeText"]
    assert (told["matching"], told["total"] >= 2) == (1, True)
    (quota,) = [row for row in told["quotas"]["rows"] if row["topic"] == topic]
    assert (quota["policy"], quota["used"], quota["limit"]) == ("max-producers", 1, 1)
    (letters,) = [row for row in told["deadletters"]["rows"] if row["topic"] == f"{topic}-DLQ"]
    assert letters["left"] == 1
    text = run("top", "--once", "--filter", f"/{short(topic)}$").stdout
    numbers, backlogs, quotas, dead = text.split("\n\n")
    assert "dead letters" in numbers
    assert backlogs.startswith("Backlogs\nTOPIC") and f"{short(topic)}  billing" in backlogs
    assert "no consumer" in backlogs and told["rows"][0]["causeText"] in backlogs
    assert quotas.startswith("Quotas\n") and "producers" in quotas  # in a narrow column without "max-"
    assert dead.startswith("Dead letters\n") and f"{short(topic)}-DLQ" in dead


def test_one_look_at_the_overview_in_an_order_and_as_long_as_asked_for(client: Any, topic: str, run: Run) -> None:
    for name, count in (("a", 3), ("b", 2), ("c", 0)):
        client.subscribe(f"{topic}-{name}", name, initial_position=EARLIEST).close()
        producer = client.create_producer(f"{topic}-{name}")
        for _ in range(count):
            producer.send(b"x")
    mine = f"startswith(topic, '{topic}-') and backlog > 0"

    def found(*words: str) -> list[int]:
        shown = json.loads(run("top", "--once", "-o", "json", "--filter", mine, *words).stdout)
        return [row["backlog"] for row in shown["rows"]]

    until(lambda: found() == [3, 2])  # the box samples its topics once a second
    assert (found("--sort", "-backlog"), found("--limit", "1")) == ([2, 3], [3])
    every = json.loads(run("top", "--once", "-o", "json", "--limit", "1000").stdout)
    assert min(row["backlog"] for row in every["rows"]) > 0, "without a filter those that have a backlog"
    assert "... 1 of 2: pulsarbox top subscriptions" in run("top", "--once", "--filter", mine, "--limit", "1").stdout
    refused = run("top", "--once", "--filter", "nonsense >")
    assert (refused.returncode, refused.stdout) == (2, "")


def test_without_a_terminal_or_a_box_it_says_what_to_do(run: Run) -> None:
    shown = run("top")
    assert shown.returncode == 2 and "--once" in shown.stderr
    assert run("top", "-o", "json").returncode == 2
    assert run("top", "topics", "--once", "--filter", "nonsense >").returncode in (1, 2)
    gone = forks.text(forks.run("top", "--once", "--admin-url", "http://127.0.0.1:1"))
    assert gone.returncode == 6 and "cannot connect to" in gone.stderr


BROKEN = """if True:
    import sys
    from textual.drivers import linux_driver
    from pulsarbox.tui.screens.overview import Overview
    def fail(*_):
        raise ValueError("planted")
    setattr({where}, fail)
    from pulsarbox.cli.main import main
    main()
"""


@pytest.mark.parametrize("where", campaigns.short(["Overview, 'show'", "linux_driver.XTermParser, 'feed'"], 1))
def test_an_error_in_the_dashboard_ends_it_with_exit_code_1(box: Running, where: str, tmp_path: Path) -> None:
    """Errors in drawing, and in the thread that reads keys."""
    command = [sys.executable, "-c", BROKEN.format(where=where), "top", "--admin-url", box.web_url]
    terminal = RawTerminal(command, tmp_path)
    try:
        if "feed" in where:
            terminal.until(lambda seen: b"Backlogs" in seen)
            terminal.send(b"?")
        terminal.until(lambda seen: b"planted" in seen and b"pulsarbox: the dashboard failed" in seen)
        assert terminal.wait() == 1
    finally:
        terminal.close()


@pytest.mark.parametrize("kind", campaigns.short(["xterm-256color", "xterm", "screen", "linux", "vt100", "dumb"], 1))
def test_the_colors_of_the_terminal_are_a_theme_in_every_terminal(box: Running, kind: str, tmp_path: Path) -> None:
    (tmp_path / "pulsarbox").mkdir()
    (tmp_path / "pulsarbox" / "top.json").write_text('{"theme": "ansi-light"}')
    command = pulsarbox("top", "--admin-url", box.web_url)
    terminal = RawTerminal(command, tmp_path, TERM=kind, COLORTERM="")
    try:
        terminal.until(lambda seen: b"Backlogs" in seen and b"Published" in seen)
        terminal.send(b"q")
        assert terminal.wait() == 0
        assert b"Traceback" not in terminal.seen
    finally:
        terminal.close()


HOSTILE = "evil\x1b]52;c;aGk=\x07\x1b[2J\x9b31m\u202egnp"


def test_no_escape_of_a_client_reaches_the_terminal(box: Running, client: Any, topic: str, tmp_path: Path) -> None:
    client.subscribe(topic, HOSTILE).close()
    client.create_producer(topic).send(HOSTILE.encode(), partition_key=HOSTILE, properties={HOSTILE: HOSTILE})
    command = pulsarbox("top", "subscriptions", "--filter", f"/{short(topic)}$", "--admin-url", box.web_url)
    terminal = RawTerminal(command, tmp_path)
    try:
        terminal.until(lambda seen: b"evil\\x1b" in seen)
        terminal.send(b"b")
        terminal.until(lambda seen: b"published  " in seen and b"properties" in seen)
        terminal.send(b"\x1b")
        seen = terminal.until(lambda seen: seen.count(b"SUBSCRIPTION") > 1)
    finally:
        terminal.close()
    for bad in (b"\x1b]52", b"\x1b[2Jgnp", b"aGk=\x07", b"\xc2\x9b31m", "\u202e".encode()):
        assert bad not in seen, bad


def test_the_backlog_that_grows_its_cause_and_the_quota_that_is_raised(box: Running, client: Any, topic: str) -> None:
    """In 80 columns: the user notices the backlog, sees its cause, and raises the quota."""
    client.subscribe(topic, "billing").close()
    producer = client.create_producer(topic)
    producer.send(b"x")
    path = f"persistent/public/default/{short(topic)}"
    box.admin("POST", f"{path}/maxProducers", "1")
    with pytest.raises(pulsar.PulsarException):
        client.create_producer(topic)
    with tmux(pulsarbox("top", "--admin-url", box.web_url), 80, 24) as terminal:
        terminal.until("Backlogs", "Published")
        terminal.keys("3")
        terminal.until("━ Subscriptions ━", "CAUSE", gone="Backlogs")
        terminal.keys("/")
        terminal.type(short(topic))
        terminal.keys("Enter")
        terminal.until("billing", "no consumer", "no consumer is connected", "esc: clear the filter")
        for _ in range(5):
            producer.send(b"x")
        terminal.keys("r")
        terminal.until("▲ +")
        terminal.keys("5")
        terminal.until("5 Quotas", "POLICY")
        terminal.keys("/")
        terminal.type(f"/{short(topic)}")
        terminal.keys("Enter")
        terminal.until("producers  ", "esc: clear the filter", short(topic))
        terminal.keys("Enter")
        terminal.until("Change the limit", "max-producers")
        terminal.keys("BSpace")
        terminal.until("max-producers ''")
        terminal.type("2")
        terminal.until("max-producers 2")
        terminal.keys("Enter")
        terminal.until("Change the limit: done")
        assert json.loads(box.admin("GET", f"{path}/maxProducers")) == 2
        client.create_producer(topic).send(b"there is room for another one")
        terminal.until_it(lambda screen: re.search(r"producers +\D*2 +2 ", screen) is not None, "two of two")
        terminal.keys("q")
        terminal.until("ended")


def test_a_dead_letter_is_found_edited_and_put_back(box: Running, client: Any, topic: str) -> None:
    back = client.subscribe(topic, "again")
    dead = f"{topic}-billing-DLQ"
    client.subscribe(dead, "keep", initial_position=EARLIEST).close()
    properties = {"REAL_TOPIC": topic, "EXCEPTION": "timeout after 30 s"}
    client.create_producer(dead).send(b'{"amount": -1}', properties=properties)
    with tmux(pulsarbox("top", "deadletters", "--admin-url", box.web_url), 120, 36) as terminal:
        terminal.until("DEAD LETTER TOPIC")
        terminal.keys("/")
        terminal.type(short(topic))
        terminal.keys("Enter")
        terminal.until(f"{short(topic)}-billing-DLQ", "esc: clear the filter")
        terminal.keys("Enter")
        terminal.until("timeout after # s", "SHAPE")
        terminal.keys("Enter")
        terminal.until("CONTENT", '"amount": -1', "properties")
        terminal.keys("E")
        terminal.until("before replay")
        for key in ("End", "BSpace", "BSpace", "BSpace"):
            terminal.keys(key)
        terminal.until("before replay", gone="-1}")
        terminal.type("5}")
        terminal.keys("C-s")
        terminal.until("Replay dead letters", "--payload")
        terminal.keys("C-s")
        terminal.until("their original topics: job")
        message = receive(back)
        assert json.loads(message.data()) == {"amount": 5}
        terminal.keys("0")
        terminal.until("dlq-replay", "done")
