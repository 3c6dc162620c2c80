"""Views of a killed box: its files show the same state as the box did."""

import json
from typing import Any

import pytest

from pulsarbox.cli.data.dead_box import answered, dead_exchange
from pulsarbox.errors import PersistenceError
from pulsarbox.storage.inspection.dead_box import dead_box
from tests.e2e.clients import connect, until
from tests.tools.box import BoxProcess

ORDERS = "persistent://public/default/orders"
LETTERS = f"{ORDERS}-s-DLQ"


def test_the_backlogs_holes_and_dead_letters_of_a_box_that_was_killed(own_box: BoxProcess) -> None:
    own_box.start()
    client = connect(own_box.url)
    consumer = client.subscribe(ORDERS, "s")
    client.subscribe(ORDERS, "behind").close()
    producer = client.create_producer(ORDERS)
    for number in range(20):
        producer.send(b"%d" % number)
    letters = client.create_producer(LETTERS)
    letters.send(b"lost")
    taken = [consumer.receive(30_000) for _ in range(20)]
    for at in (0, 1, 4, 9):
        consumer.acknowledge(taken[at])
    producer.close()  # after all earlier acknowledgements
    until(lambda: "topic-created" in "".join(path.read_text() for path in (own_box.data / "events").glob("*")))
    with pytest.raises(PersistenceError, match="a box is running on"):
        dead_box(own_box.data)
    own_box.kill()
    before = sorted((str(path), path.stat().st_mtime_ns) for path in own_box.data.rglob("*") if path.is_file())
    exchange = dead_exchange(own_box.data)

    def told(target: str) -> Any:
        reply = exchange("GET", f"/pulsarbox/v1/{target}", None)
        assert reply.status == 200, reply.text
        return json.loads(reply.text)

    rows = {row["subscription"]: row for row in told("top/subscriptions")["rows"]}
    assert rows["behind"]["backlog"] == 20
    assert (rows["behind"]["cause"], rows["behind"]["holes"]) == ("no-consumer", 0)
    if rows["s"]["backlog"] != 20:  # a kill may lose acknowledgements without a receipt
        assert 16 <= rows["s"]["backlog"] < 20
    found = told("top/topics?sort=topic&order=asc")
    assert [row["topic"] for row in found["rows"]] == [ORDERS, LETTERS]
    assert found["total"] == 2
    assert told("top/topics?filter=/DLQ&columns=topic")["rows"] == [{"topic": LETTERS}]
    said = {view: told(f"top/{view}") for view in ("topics", "subscriptions", "deadletters")}
    assert [sorted(answer["unknown"]) for answer in said.values()] == [
        ["oldest", "quota"],
        ["drain", "oldest", "type"],
        [],
    ]
    assert not any(row[name] for answer in said.values() for row in answer["rows"] for name in answer["unknown"])
    (letter,) = told("top/deadletters")["rows"]
    assert (letter["origin"], letter["originSubscription"], letter["kind"]) == (ORDERS, "s", "dead-letter")
    assert 0 < letter["first"] <= letter["last"]
    assert (letter["messages"], letter["subscriptions"], letter["lost"]) == (1, 0, True)
    assert told("top/overview")["totals"]["subscriptions"] == 2
    assert told("top/storage")["rows"][0]["state"] == "current"
    assert ORDERS in {event["subject"] for event in told("events?filter=kind%20==%20%22topic-created%22")["events"]}
    assert told("history")["from"] is None
    assert exchange("POST", "/pulsarbox/v1/jobs", b"{}").status == 503
    assert exchange("GET", "/pulsarbox/v1/top/clients", None).status == 503
    after = sorted((str(path), path.stat().st_mtime_ns) for path in own_box.data.rglob("*") if path.is_file())
    assert after == before, "nothing is written"
    client.close()


def test_what_is_damaged_ends_the_look_with_words_and_not_the_process(own_box: BoxProcess) -> None:
    own_box.start()
    own_box.stop()
    assert answered(dead_box(own_box.data), "GET", "/pulsarbox/v1/top/topics").status == 200
    file = own_box.data / "meta" / "data.mdb"
    data = bytearray(file.read_bytes())
    for at in range(2 * 4096, len(data), 64):
        data[at] ^= 0xFF
    file.write_bytes(bytes(data))
    with pytest.raises(PersistenceError, match="storage check"):
        dead_box(own_box.data)
