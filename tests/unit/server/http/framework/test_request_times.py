"""Times far beyond any calendar are rejected with 400 by every request parameter."""

from pathlib import Path

import pytest

from pulsarbox.broker.host import Host
from pulsarbox.config import Settings
from tests.unit.server.http.harness import ADMIN, HttpBox

TOPIC = "persistent/public/default/t"
BROWSED = "public/default/t"
OWN = "/pulsarbox/v1"
ASKED = (
    *(f"{OWN}/top/{view}?at=" for view in ("overview", "topics", "subscriptions", "quotas", "deadletters")),
    *(f"{OWN}/history?{name}=" for name in ("from", "to")),
    *(f"{OWN}/events?{query}since=" for query in ("", "after=0&", "follow=true&")),
    f"{OWN}/places/{BROWSED}?time=",
    f"{OWN}/browse/{BROWSED}?from=",
)
FILTERED = (f"{OWN}/events?filter=", f"{OWN}/top/topics?filter=", f"{OWN}/browse/{BROWSED}?filter=")
FAR = (
    *("-99999999999d", "%2B99999999999d", "-30000d", "-" + "9" * 400 + "w", "%2B" + "9" * 4000 + "d"),
    *("1969-12-31T00:00:00Z", "0001-01-01T00:00:00%2B14:00", "9999-12-31T23:59:59-14:00"),
)


@pytest.mark.parametrize("far", FAR, ids=lambda text: text[:30])
async def test_a_time_that_overflows_is_a_bad_request(box: HttpBox, far: str, tmp_path: Path) -> None:
    box.broker.host = Host(folder=str(tmp_path))
    assert (await box.put(f"/{TOPIC}")).status == 204
    for path in ASKED:
        got = await box.ask("GET", path + far)
        assert got.status == 400, (path, got.text)
        assert path.rpartition("?")[2].rpartition("&")[2][:-1] in got.reason, (path, got.reason)
    for path in FILTERED:
        got = await box.ask("GET", f'{path}time("{far}")')
        assert got.status in (400, 422) and "filter" in got.reason.lower(), (path, got.text)


@pytest.mark.parametrize(
    "far", ["99999999999d", "9" * 400 + "w", -(2**70), 2**70, "9999-12-31T23:59:59-14:00"], ids=str
)
@pytest.mark.settings(Settings(brokerClock="virtual", faultInjectionEnabled=True))
async def test_the_clock_is_not_moved_out_of_the_calendar(box: HttpBox, far: str | int) -> None:
    for method, path, name in (("POST", "/clock/advance", "by"), ("PUT", "/clock", "to")):
        assert (await box.ask(method, OWN + path, {name: far})).status == 400
    assert (await box.ask("GET", f"{OWN}/clock")).value["offset"] == 0
    if isinstance(far, str):
        rule = {"kind": "delay", "command": "send", "delay": far}
        assert (await box.ask("POST", f"{OWN}/faults", rule)).status == 400


@pytest.mark.parametrize("far", ["9" * 19, "-" + "9" * 19, "9" * 400, "9" * 5000], ids=lambda text: text[:25])
async def test_a_number_of_a_path_that_is_no_time_breaks_nothing(box: HttpBox, far: str) -> None:
    assert (await box.put(f"/{TOPIC}")).status == 204
    assert (await box.put(f"/{TOPIC}/subscription/s")).status == 204
    for method, path in (
        ("POST", f"{TOPIC}/subscription/s/resetcursor/{far}"),
        ("POST", f"{TOPIC}/subscription/s/expireMessages/{far}"),
        ("GET", f"{TOPIC}/messageid/{far}"),
    ):
        got = await box.ask(method, f"{ADMIN}/{path}")
        assert got.status < 500, (path, got.text)
