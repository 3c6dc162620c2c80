"""The request that the quota view returns for changing a limit works when sent with another number."""

from typing import Any
from urllib.parse import urlencode

import pytest

from pulsarbox.cli.main import main
from pulsarbox.config import Settings
from tests.unit.server.http.harness import ADMIN, HttpBox, running_box
from tests.unit.test_docs import parse, words

NAMESPACE, TOPIC = "/namespaces/public/default", "/persistent/public/default/t"
RATE = {"dispatchThrottlingRateInMsg": 50, "dispatchThrottlingRateInByte": 0, "ratePeriodInSecond": 1}
QUOTA = {"limitSize": 5000, "limitTime": -1, "policy": "producer_request_hold"}
AGE = {"limitSize": -1, "limitTime": 600, "policy": "producer_exception"}

SET = {
    "topic-dispatch": ("POST", f"{TOPIC}/dispatchRate", RATE, "dispatch-rate", "topic"),
    "namespace-dispatch": ("POST", f"{NAMESPACE}/dispatchRate", RATE, "dispatch-rate", "namespace"),
    "one-subscription": ("POST", f"{TOPIC}/s/dispatchRate", RATE, "subscription-dispatch-rate", "topic"),
    "subscriptions": ("POST", f"{TOPIC}/subscriptionDispatchRate", RATE, "subscription-dispatch-rate", "topic"),
    "publish": (
        "POST", f"{NAMESPACE}/publishRate", {"publishThrottlingRateInMsg": -1, "publishThrottlingRateInByte": 70},
        "publish-rate", "namespace",
    ),
    "quota": ("POST", f"{TOPIC}/backlogQuota", QUOTA, "backlog-quota:destination_storage", "topic"),
    "quota-of-age": (
        "POST", f"{NAMESPACE}/backlogQuota?backlogQuotaType=message_age", AGE, "backlog-quota:message_age", "namespace",
    ),
    "producers": ("POST", f"{TOPIC}/maxProducers", 3, "max-producers", "topic"),
    "consumers": ("POST", f"{NAMESPACE}/maxConsumersPerSubscription", 3, "max-consumers-per-subscription", "namespace"),
    "subscribing": (
        "POST", f"{TOPIC}/subscribeRate", {"subscribeThrottlingRatePerConsumer": 5, "ratePeriodInSecond": 30},
        "subscribe-rate", "topic",
    ),
    "topics": ("POST", f"{NAMESPACE}/maxTopicsPerNamespace", 7, "max-topics-per-namespace", "namespace"),
}  # fmt: skip


async def the_row(box: HttpBox, policy: str, columns: str = "policy,limit,level,change") -> dict[str, Any]:
    query = urlencode({"columns": columns, "filter": f'policy == "{policy}"'})
    rows = (await box.ask("GET", f"/pulsarbox/v1/top/quotas?{query}")).value["rows"]
    assert len(rows) == 1, rows
    found: dict[str, Any] = rows[0]
    return found


async def a_topic(box: HttpBox) -> None:
    await box.put(TOPIC)
    await box.ask("PUT", f"{ADMIN}{TOPIC}/subscription/s")


async def carry_out(box: HttpBox, change: dict[str, Any], limit: int) -> None:
    """Send the request in the view with another number."""
    body = change["body"]
    if change["field"] is not None:
        body = body | {change["field"]: limit}
    elif body is not None:
        body = limit
    query = f"?{urlencode(change['query'])}" if change["query"] else ""
    got = await box.ask(change["method"], change["path"] + query, body)
    assert got.status in (200, 204), got.text


@pytest.mark.parametrize("which", SET)
async def test_a_limit_is_changed_where_it_was_set(which: str) -> None:
    method, path, value, policy, level = SET[which]
    async with running_box() as box:
        await a_topic(box)
        assert (await box.ask(method, ADMIN + path, value)).status == 204
        row = await the_row(box, policy)
        assert row["level"] == level
        parse(main, words(row["change"]["command"]))
        assert row["change"]["setting"] is None
        await carry_out(box, row["change"], 20)
        again = await the_row(box, policy)
        assert (again["limit"], again["level"]) == (20, level)


@pytest.mark.parametrize(
    ("which", "command"),
    [
        ("topic-dispatch", "pulsarbox topic policy persistent://public/default/t dispatch-rate 50/s"),
        ("publish", "pulsarbox ns policy public/default publish-rate 70B/s"),
        ("quota", "pulsarbox quota set persistent://public/default/t --size 5000B --then hold"),
        ("quota-of-age", "pulsarbox quota set public/default --age 10m --then refuse"),
        ("producers", "pulsarbox topic policy persistent://public/default/t max-producers 3"),
    ],
)
async def test_the_command_has_values_as_people_write_them(which: str, command: str) -> None:
    method, path, value, policy, _ = SET[which]
    async with running_box() as box:
        await a_topic(box)
        assert (await box.ask(method, ADMIN + path, value)).status == 204
        assert (await the_row(box, policy))["change"]["command"] == command


@pytest.mark.settings(Settings(maxProducersPerTopic=9))
async def test_what_the_broker_says_is_changed_for_the_topic(box: HttpBox) -> None:
    await a_topic(box)
    row = await the_row(box, "max-producers")
    assert (row["level"], row["limit"], row["change"]["setting"]) == ("broker", 9, "maxProducersPerTopic")
    await carry_out(box, row["change"], 20)
    again = await the_row(box, "max-producers")
    assert (again["limit"], again["level"]) == (20, "topic")


@pytest.mark.settings(Settings(dispatchThrottlingRateInMsg=40, brokerMaxConnections=100))
async def test_a_limit_of_the_box_is_a_setting(box: HttpBox) -> None:
    row = await the_row(box, "dispatchThrottlingRateInMsg")
    change = row["change"]
    assert (change["of"], change["setting"]) == ("broker", "dispatchThrottlingRateInMsg")
    parse(main, words(change["command"]))
    path = change["path"].rpartition("/")[0]
    assert (await box.ask(change["method"], f"{path}/80")).status == 200
    assert (await the_row(box, "dispatchThrottlingRateInMsg"))["limit"] == 80
    assert (await the_row(box, "brokerMaxConnections"))["change"] is None, "that takes a start"


async def test_the_rate_of_a_resource_group(box: HttpBox) -> None:
    await a_topic(box)
    await box.put("/resourcegroups/g", {"publishRateInMsgs": 30})
    await box.post(f"{NAMESPACE}/resourcegroup/g")
    row = await the_row(box, "publishRateInMsgs")
    parse(main, words(row["change"]["command"]))
    change = row["change"]
    assert (await box.ask(change["method"], change["path"], change["body"] | {change["field"]: 99})).status == 204
    assert (await the_row(box, "publishRateInMsgs"))["limit"] == 99


@pytest.mark.settings(Settings(brokerMaxConnections=100))
async def test_it_comes_only_where_it_is_asked_for(box: HttpBox) -> None:
    found = (await box.ask("GET", "/pulsarbox/v1/top/quotas")).value["rows"]
    assert found
    assert all("change" not in row for row in found)
