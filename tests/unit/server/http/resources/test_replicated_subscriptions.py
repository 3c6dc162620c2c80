"""The flag of replicated subscriptions: set by requests and consumers, stored, shown, copied to new partitions."""

from typing import Any, Final

import pytest

from pulsarbox.errors import WARNING_HEADER
from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import HttpBox

T: Final = "/persistent/public/default/t"
NAME: Final = "persistent://public/default/t"
S: Final = f"{T}/subscription/s"
STATUS: Final = "replicatedSubscriptionStatus"


async def flags(box: HttpBox) -> tuple[bool, bool]:
    """Return both flags in the statistics of the subscription."""
    stats = (await box.get(f"{T}/stats")).value["subscriptions"]["s"]
    return stats["isReplicated"], stats["replicated"]


async def test_the_status_of_a_subscription(box: HttpBox) -> None:
    await box.put(T)
    await box.put(S)
    assert (await box.get(f"{S}/{STATUS}")).value == {NAME: False}
    for body, replicated in ((True, True), (b"null", False), ("true", True), (False, False)):
        got = await box.post(f"{S}/{STATUS}", body)
        assert (got.status, WARNING_HEADER in got.headers) == (204, replicated)
        assert (await box.get(f"{S}/{STATUS}")).value == {NAME: replicated}
        assert await flags(box) == (replicated, replicated)
        cursor = (await box.get(f"{T}/internalStats")).value["cursors"]["s"]
        assert cursor["properties"] == ({"pulsar.replicated.subscription": 1} if replicated else {})


@pytest.mark.parametrize(
    ("body", "reason"),
    [(None, "The request entity cannot be empty."), ("x", "replicatedSubscriptionStatus must be true or false")],
)
async def test_bodies_that_are_no_status(box: HttpBox, body: Any, reason: str) -> None:
    await box.put(T)
    await box.put(S)
    got = await box.post(f"{S}/{STATUS}", body)
    assert (got.status, got.reason[: len(reason)]) == (400, reason)


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        (f"{T}/subscription/none", 404, f"Subscription none not found for topic {NAME}"),
        (f"{T}-none/subscription/s", 404, f"Topic {NAME}-none not found"),
        (
            "/non-persistent/public/default/n/subscription/s",
            405,
            "Cannot {} replicated subscriptions on non-persistent",
        ),
    ],
)
async def test_subscriptions_without_a_status(box: HttpBox, path: str, status: int, reason: str) -> None:
    await box.put(T)
    for word, got in (("get", box.get(f"{path}/{STATUS}")), ("enable/disable", box.post(f"{path}/{STATUS}", True))):
        expected = reason.format(word)
        found = await got
        assert (found.status, found.reason[: len(expected)]) == (status, expected)


async def test_partitions_of_today_and_tomorrow(box: HttpBox) -> None:
    path = "/persistent/public/default/p"
    await box.put(f"{path}/partitions", 2)
    await box.put(f"{path}/subscription/s")
    await box.post(f"{path}/subscription/s/{STATUS}", True)
    await box.post(f"{path}/partitions", 3)
    parts = [f"persistent://public/default/p-partition-{number}" for number in range(3)]
    assert (await box.get(f"{path}/subscription/s/{STATUS}")).value == dict.fromkeys(parts, True)
    await box.post(f"{path}-partition-1/subscription/s/{STATUS}", False)
    got = (await box.get(f"{path}/subscription/s/{STATUS}")).value
    assert got == dict.fromkeys(parts, True) | {parts[1]: False}


async def test_creation_with_the_flag(box: HttpBox) -> None:
    await box.put(T)
    got = await box.put(f"{S}?replicated=true")
    assert (got.status, got.headers[WARNING_HEADER]) == (
        204,
        "replicated-subscription: stored, without effect: a box does not replicate messages to other clusters",
    )
    assert await flags(box) == (True, True)


async def test_it_stays_when_the_topic_is_unloaded(box: HttpBox) -> None:
    await box.put(T)
    await box.put(f"{S}?replicated=true")
    await box.put(f"{S}/properties", {"a": "b"})
    await box.put(f"{T}/unload")
    assert (await box.get(f"{S}/{STATUS}")).value == {NAME: True}
    await box.post(f"{S}/{STATUS}", False)
    await box.put(f"{T}/unload")
    assert (await box.get(f"{S}/{STATUS}")).value == {NAME: False}
    assert (await box.get(f"{S}/properties")).value == {"a": "b"}


async def test_a_consumer_turns_it_on_and_not_off(box: HttpBox) -> None:
    await box.put(T)
    Client(box).subscribe(NAME, replicate_subscription_state=True)
    name = next(iter((await box.get(f"{T}/stats")).value["subscriptions"]))
    path = f"{T}/subscription/{name}/{STATUS}"
    assert (await box.get(path)).value == {NAME: True}


async def test_a_replicated_subscription_does_not_expire(box: HttpBox) -> None:
    await box.post("/namespaces/public/default/subscriptionExpirationTime", 1)
    await box.put(T)
    await box.put(f"{S}?replicated=true")
    await box.put(f"{T}/subscription/other")
    box.shell.core.advance(120)
    assert (await box.get(f"{T}/subscriptions")).value == ["s"]
    await box.post(f"{S}/{STATUS}", False)
    box.shell.core.advance(120)
    assert (await box.get(f"{T}/subscriptions")).status == 404, "deleted, and then its topic"
