"""Failure domains, with the statuses and texts of Pulsar 4.2.4."""

from typing import Any

from pulsarbox.errors import WARNING_HEADER
from tests.unit.server.http.harness import HttpBox

DOMAINS = "/clusters/standalone/failureDomains"


async def test_the_life_of_failure_domains(box: HttpBox) -> None:
    assert (await box.get(DOMAINS)).value == {}
    done = await box.post(f"{DOMAINS}/a", {"brokers": ["b2", "b1"], "unknown": 1})
    assert (done.status, WARNING_HEADER in done.headers) == (204, True)
    taken = await box.post(f"{DOMAINS}/b", {"brokers": ["b3", "b2"]})
    assert (taken.status, taken.reason) == (409, "[b2] already exists in a")
    assert (await box.post(f"{DOMAINS}/b%2Fc", {"brokers": ["b3"]})).status == 204
    assert (await box.post(f"{DOMAINS}/a", {"brokers": ["b1"]})).status == 204
    assert (await box.post(f"{DOMAINS}/empty", {})).status == 204
    shown = {"a": {"brokers": ["b1"]}, "b/c": {"brokers": ["b3"]}, "empty": {}}
    assert (await box.get(DOMAINS)).value == shown
    assert (await box.get(f"{DOMAINS}/b%2Fc")).value == {"brokers": ["b3"]}
    assert (await box.delete(f"{DOMAINS}/a")).status == 200
    missing = await box.delete(f"{DOMAINS}/a")
    assert (missing.status, missing.reason) == (404, "Domain-name a or cluster standalone does not exist")
    missing = await box.get(f"{DOMAINS}/a")
    assert (missing.status, missing.reason) == (404, "Domain a for cluster standalone does not exist")


async def test_failure_domains_of_a_missing_cluster(box: HttpBox) -> None:
    assert (await box.get("/clusters/none/failureDomains")).value == {}
    for method, body in (("GET", None), ("POST", {"brokers": []}), ("DELETE", None)):
        refused = await box.ask(method, "/admin/v2/clusters/none/failureDomains/a", body)
        assert (refused.status, refused.reason) == (412, "Cluster none does not exist.")


async def test_invalid_failure_domains(box: HttpBox) -> None:
    invalid: tuple[Any, ...] = (None, [], {"brokers": "b1"}, {"brokers": [1]})
    for body in invalid:
        assert (await box.post(f"{DOMAINS}/a", body)).status == 400
    large = await box.post(f"{DOMAINS}/a", {"brokers": ["b" * 8000 + str(number) for number in range(9)]})
    assert (large.status, large.reason.startswith("The value is too large")) == (412, True)
    assert (await box.get(DOMAINS)).value == {}
