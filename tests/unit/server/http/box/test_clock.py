"""The clock over HTTP."""

import pytest

from pulsarbox.config import Settings
from tests.unit.broker.core_driver import START
from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import HttpBox

EARLIEST = {"ledgerId": -1, "entryId": -1}
CLOCK = "/pulsarbox/v1/clock"
DAY = 86_400_000
VIRTUAL = Settings(brokerClock="virtual")


async def test_the_real_clock_is_shown_and_cannot_be_moved(box: HttpBox) -> None:
    shown = await box.ask("GET", CLOCK)
    assert shown.value == {"mode": "real", "now": START, "real": START, "offset": 0}
    for method, path, body in (("POST", f"{CLOCK}/advance", {"by": "1d"}), ("PUT", CLOCK, {"to": START + 1})):
        refused = await box.ask(method, path, body)
        assert (refused.status, "--clock virtual" in refused.reason) == (409, True)


@pytest.mark.settings(VIRTUAL)
async def test_it_is_advanced_and_set(box: HttpBox) -> None:
    moved = await box.ask("POST", f"{CLOCK}/advance", {"by": "10d"})
    assert moved.value == {"mode": "virtual", "now": START + 10 * DAY, "real": START, "offset": 10 * DAY}
    assert (await box.ask("POST", f"{CLOCK}/advance", {"by": 1})).value["offset"] == 10 * DAY + 1
    assert (await box.ask("PUT", CLOCK, {"to": "2030-01-01T00:00:00Z"})).value["now"] == 1_893_456_000_000
    assert (await box.ask("PUT", CLOCK, {"to": "2030-01-01T02:00:00+01:00"})).value["now"] == 1_893_459_600_000
    assert (await box.ask("PUT", CLOCK, {"to": 1_893_459_600_001})).value["now"] == 1_893_459_600_001
    assert (await box.ask("GET", CLOCK)).value["now"] == 1_893_459_600_001


@pytest.mark.parametrize(
    ("method", "path", "body", "why"),
    [
        ("POST", f"{CLOCK}/advance", None, 'The body must be {"by"'),
        ("POST", f"{CLOCK}/advance", {"to": 1}, 'The body must be {"by"'),
        ("POST", f"{CLOCK}/advance", {"by": "soon"}, "expected a number and a unit, such as"),
        ("POST", f"{CLOCK}/advance", {"by": 1.5}, "a whole number"),
        ("POST", f"{CLOCK}/advance", {"by": -1}, "only forward"),
        ("POST", f"{CLOCK}/advance", {"by": "2932000d"}, "year 9999"),
        ("PUT", CLOCK, {"to": "tomorrow"}, "expected the form 2026-12-24"),
        ("PUT", CLOCK, {"to": True}, "a whole number"),
        ("PUT", CLOCK, {"to": "2001-01-01"}, "only forward"),
    ],
)
@pytest.mark.settings(VIRTUAL)
async def test_what_makes_no_sense_is_refused_in_words(
    box: HttpBox, method: str, path: str, body: object, why: str
) -> None:
    refused = await box.ask(method, path, body)
    assert (refused.status, why in refused.reason) == (400, True), refused.reason
    assert (await box.ask("GET", CLOCK)).value["offset"] == 0


@pytest.mark.settings(VIRTUAL)
async def test_times_in_paths_are_clients_times(box: HttpBox) -> None:
    client = Client(box)
    producer = client.producer("persistent://public/default/t")
    client.send(producer, 0, publish_time=START)
    for name in ("s", "holds"):  # messages acknowledged by all subscriptions are old enough to be trimmed
        await box.put(f"/persistent/public/default/t/subscription/{name}", EARLIEST)
    await box.ask("POST", f"{CLOCK}/advance", {"by": "10d"})
    client.send(producer, 1, publish_time=START)  # relative to the client's own clock, without the offset of ten days
    named: list[tuple[int, int]] = []
    for back, left in ((DAY, 1), (11 * DAY, 2)):
        got = await box.post(f"/persistent/public/default/t/subscription/s/resetcursor/{START - back}")
        assert got.status == 204
        stats = (await box.get("/persistent/public/default/t/stats")).value
        assert stats["subscriptions"]["s"]["msgBacklog"] == left
        found = (await box.get(f"/persistent/public/default/t/messageid/{START - back}")).value
        named.append((found["ledgerId"], found["entryId"]))
    assert named[0] > named[1] >= (0, 0)
