"""Every dashboard operation has the same effect as its command line, on two equal objects."""

import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import pulsar
import pytest
from click.testing import CliRunner

from pulsarbox.cli.main import main
from pulsarbox.client.transport.web import Web
from pulsarbox.tui.actions.operation import OperationSpec, default_of
from pulsarbox.tui.actions.operations import BY_NAME
from pulsarbox.tui.feed import Feed, FeedError, RowQuery, ShownRow
from pulsarbox.tui.widgets import command_lines
from tests.e2e.clients import EARLIEST, until
from tests.e2e.conftest import Running
from tests.tools.campaigns import short

SHARED = pulsar.ConsumerType.Shared


class Place(NamedTuple):
    """Objects of an operation."""

    box: Running
    client: Any
    feed: Feed
    topic: str

    def rows(self, view: str, about: str = "", **more: Any) -> list[ShownRow]:
        wanted = about or f"topic == {json.dumps(self.topic)}"
        return list(self.feed.view(RowQuery(view, limit=100, filter=wanted, **more)).rows)

    def row(self, view: str, about: str = "", **more: Any) -> ShownRow:
        until(lambda: self.rows(view, about, **more))
        return self.rows(view, about, **more)[0]

    @property
    def subscription(self) -> ShownRow:
        return self.row("subscriptions")


def ten_messages(at: Place) -> None:
    at.client.subscribe(at.topic, "s", SHARED, initial_position=EARLIEST).close()
    producer = at.client.create_producer(at.topic, batching_enabled=False)
    for number in range(10):
        producer.send(b"%d" % number, partition_key=f"k{number % 2}")
    producer.close()


def letters(at: Place) -> ShownRow:
    ten_messages(at)
    dlq = at._replace(topic=f"{at.topic}-s-DLQ")
    at.client.subscribe(dlq.topic, "kept", SHARED, initial_position=EARLIEST).close()
    producer = at.client.create_producer(dlq.topic, batching_enabled=False)
    for number in range(3):
        producer.send(b"%d" % number, properties={"REAL_TOPIC": at.topic, "EXCEPTION": "boom"})
    producer.close()
    return dlq.row("deadletters")


def backlog(at: Place) -> object:
    return [(row["subscription"], row["backlog"]) for row in at.rows("subscriptions")]


def a_subscription(at: Place) -> ShownRow:
    ten_messages(at)
    return at.subscription


def an_old_one(at: Place) -> ShownRow:
    ten_messages(at)
    until(lambda: (at.subscription["oldest"] or 0) >= 2.5)
    return at.subscription


def a_topic(at: Place) -> ShownRow:
    ten_messages(at)
    return at.row("topics")


def a_limit(at: Place) -> ShownRow:
    ten_messages(at)
    at.box.admin("POST", f"{at.topic.replace('://', '/')}/maxProducers", "7")
    about = f"subject == {json.dumps(at.topic)}"
    return at.row("quotas", about, columns=("subject", "policy", "change"))


def a_job(state: str) -> Callable[[Place], ShownRow]:
    """Start a job with a low rate limit, so its state does not change during the test."""

    def made(at: Place) -> ShownRow:
        row = letters(at)
        asked = {"kind": "dlq-replay", "topic": row["topic"], "rate": 0.001}
        number = at.feed.ask("POST", "/pulsarbox/v1/jobs", asked)["id"]
        if state == "paused":
            at.feed.ask("POST", f"/pulsarbox/v1/jobs/{number}/pause")
        return ShownRow(at.feed.ask("GET", f"/pulsarbox/v1/jobs/{number}"))

    return made


def job_state(at: Place) -> object:
    jobs = at.feed.ask("GET", "/pulsarbox/v1/jobs")
    return [job["state"] for job in jobs if str(job["topic"]).startswith(at.topic)]


def a_consumer(at: Place) -> ShownRow:
    KEPT.append(at.client.subscribe(at.topic, "s", SHARED))
    return at.row("clients", f'topic == {json.dumps(at.topic)} and kind == "consumer"')


KEPT: list[Any] = []
"""Consumers that must stay open."""


def connected(at: Place) -> object:
    """Return the connection times of the consumers: a disconnected consumer reconnects."""
    return [row["since"] for row in at.rows("clients", f'topic == {json.dumps(at.topic)} and kind == "consumer"')]


def dead(at: Place) -> object:
    """Return the backlogs of the dead letter topic and of the topic."""
    return backlog(at._replace(topic=f"{at.topic}-s-DLQ")), backlog(at)


def limit(at: Place) -> object:
    return at.box.admin("GET", f"{at.topic.replace('://', '/')}/maxProducers")


def compaction(at: Place) -> object:
    return json.loads(at.box.admin("GET", f"{at.topic.replace('://', '/')}/compaction"))["status"]


def terminated(at: Place) -> object:
    try:
        at.client.create_producer(at.topic).close()
    except pulsar.PulsarException as error:
        return str(error)
    return "open"


def topics(at: Place) -> object:
    return len(at.rows("topics"))


class Case(NamedTuple):
    """Operation: its object, an observation, the value of that afterwards (None: any change), and the typed input."""

    of: Callable[[Place], ShownRow]
    seen: Callable[[Place], object]
    after: object
    values: Mapping[str, str] = {}


CASES = {
    "sub seek": Case(a_subscription, backlog, [("s", 0)], {"where": "latest"}),
    "sub skip": Case(a_subscription, backlog, [("s", 6)], {"count": "4"}),
    "sub expire": Case(an_old_one, backlog, [("s", 0)], {"older": "1s"}),
    "sub clear": Case(a_subscription, backlog, [("s", 0)]),
    "sub delete": Case(a_subscription, backlog, []),
    "topic unload": Case(a_topic, backlog, [("s", 10)]),
    "topic compact": Case(a_topic, compaction, "SUCCESS"),
    "sub create": Case(a_topic, backlog, [("keep", 10), ("s", 10)], {"name": "keep", "at": "earliest"}),
    "topic terminate": Case(a_topic, terminated, None),
    "topic delete": Case(a_topic, topics, 0),
    "dlq replay": Case(letters, dead, ([("kept", 0)], [("s", 13)]), {"dry_run": "no", "rate": "0"}),
    "dlq drop": Case(letters, dead, ([("kept", 0)], [("s", 10)]), {"dry_run": "no"}),
    "job pause": Case(a_job("running"), job_state, ["paused"]),
    "job resume": Case(a_job("paused"), job_state, ["running"]),
    "job cancel": Case(a_job("running"), job_state, ["cancelled"]),
    "quota set": Case(a_limit, limit, "9", {"limit": "9"}),
    "client kick": Case(a_consumer, connected, None),
}


def test_every_deed_is_compared() -> None:
    assert set(CASES) == set(BY_NAME)


def by_requests(deed: OperationSpec, row: ShownRow, values: Mapping[str, str], feed: Feed, target: list[str]) -> None:
    """Send the requests of the dialog."""
    for request in deed.requests(row, values):
        feed.ask(*request)


def by_command(deed: OperationSpec, row: ShownRow, values: Mapping[str, str], feed: Feed, target: list[str]) -> None:
    """Run the command line that the dialog copies to the clipboard."""
    words = shlex.split(command_lines.with_target(deed.words(row, values), target))
    assert words.pop(0) == "pulsarbox"
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, (words, done.output, done.exception)


Way = Callable[[OperationSpec, ShownRow, Mapping[str, str], Feed, list[str]], None]


@pytest.fixture
def feed(box: Running, topic: str) -> Iterator[Feed]:
    host, _, port = box.web_url.rpartition("/")[2].rpartition(":")
    web = Web([(host, int(port))])
    feed = Feed(web.exchange)
    yield feed
    for job in feed.ask("GET", "/pulsarbox/v1/jobs"):
        if str(job["topic"]).startswith(topic) and job["state"] in ("running", "paused"):
            with suppress(FeedError):  # it has finished in the meantime
                feed.ask("POST", f"/pulsarbox/v1/jobs/{job['id']}/cancel")
    web.close()


@pytest.mark.parametrize("name", short(CASES, 4))
@pytest.mark.parametrize("way", [by_requests, by_command], ids=["dialog", "command"])
@pytest.mark.usefixtures("ours")
def test_a_deed_does_the_same_by_its_command(
    box: Running, client: Any, topic: str, feed: Feed, name: str, way: Way
) -> None:
    case, deed = CASES[name], BY_NAME[name]
    at = Place(box, client, feed, topic)
    row = case.of(at)
    values = {**{field.name: default_of(field, row) for field in deed.fields}, **case.values}
    before = case.seen(at)
    way(deed, row, values, feed, ["--admin-url", box.web_url])
    if case.after is None:
        until(lambda: case.seen(at) not in ([], before))
    else:
        until(lambda: sorted_all(case.seen(at)) == sorted_all(case.after))


def sorted_all(seen: object) -> object:
    return sorted(seen) if isinstance(seen, list) else seen
