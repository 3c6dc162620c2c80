"""Policies that a box stores without effect: replicator rates, entry filters, anti-affinity; and their warnings."""

from typing import Any, Final

import pytest

from pulsarbox.errors import WARNING_HEADER
from pulsarbox.protocol.policies.offload_shape import EMPTY_OFFLOAD
from tests.unit.server.http.harness import HttpBox

N: Final = "/namespaces/public/default"
T: Final = "/persistent/public/default/t"
RATE: Final = {
    "dispatchThrottlingRateInMsg": 5,
    "dispatchThrottlingRateInByte": 0,
    "relativeToPublishRate": False,
    "ratePeriodInSecond": 0,
}
DEFAULT_RATE: Final = RATE | {"dispatchThrottlingRateInMsg": 0, "ratePeriodInSecond": 1}


async def test_replicator_rates(box: HttpBox) -> None:
    await box.put(T)
    assert (await box.get(f"{T}/replicatorDispatchRate?applied=true")).value == DEFAULT_RATE
    for of in (N, T):
        path = f"{of}/replicatorDispatchRate"
        assert (await box.get(path)).text == ""
        got = await box.post(path, {"dispatchThrottlingRateInMsg": 5})
        assert (got.status, got.headers[WARNING_HEADER]) == (
            204,
            "replicator-dispatch-rate: stored, without effect: a box does not replicate messages to other clusters",
        )
        assert (await box.get(path)).value == RATE
        assert (await box.get(f"{T}/replicatorDispatchRate?applied=true")).value == RATE
        assert (await box.post(path, b"null")).status == 204
        assert (await box.get(path)).text == "", "null removes it"
        assert (await box.post(path, {"dispatchThrottlingRateInMsg": "x"})).status == 400
    await box.post(f"{N}/replicatorDispatchRate", RATE)
    assert (await box.get(N)).value["replicatorDispatchRate"] == {"standalone": RATE}
    assert (await box.delete(f"{N}/replicatorDispatchRate")).status == 204
    assert (await box.get(N)).value["replicatorDispatchRate"] == {}
    missing = await box.get("/namespaces/public/none/replicatorDispatchRate")
    assert (missing.status, missing.reason) == (404, "Namespace policies does not exist")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({}, "entryFilterNames can't be empty. To remove entry filters use the remove method."),
        (
            {"entryFilterNames": " , "},
            "entryFilterNames can't be empty. To remove entry filters use the remove method.",
        ),
        ({"entryFilterNames": "abc,def"}, "Entry filter 'abc' not found: entry filters are Java classes, which a box"),
        ([], "entryFilters must be an object such as {entryFilterNames}, not a list"),
    ],
)
async def test_there_are_no_entry_filters(box: HttpBox, body: Any, reason: str) -> None:
    await box.put(T)
    for of in (N, T):
        got = await box.post(f"{of}/entryFilters", body)
        assert (got.status, got.reason[: len(reason)]) == (400, reason)
        assert (await box.get(f"{of}/entryFilters")).text == ""
        for removal in (box.post(f"{of}/entryFilters"), box.delete(f"{of}/entryFilters")):
            assert (await removal).status == 204
    assert (await box.get(f"{T}/entryFilters?applied=true")).value == {"entryFilterNames": ""}


@pytest.mark.parametrize("text", ["g1", '"g1"', " x ", "5", "{", "null", "ü"])
async def test_an_anti_affinity_group_is_plain_text(box: HttpBox, text: str) -> None:
    path = f"{N}/antiAffinity"
    assert (await box.get(path)).text == ""
    got = await box.post(path, text.encode())
    assert (got.status, got.headers[WARNING_HEADER]) == (
        204,
        "anti-affinity-group: stored, without effect: a single broker owns all namespaces",
    )
    assert (await box.get(path))[:2] == (200, text)
    policies = (await box.get(N)).value
    assert not any("ffinity" in name for name in policies), "Pulsar stores it apart"
    await box.put("/namespaces/public/copy", policies)
    assert (await box.get("/namespaces/public/copy/antiAffinity")).text == ""
    assert (await box.delete(path)).status == 204
    assert (await box.get(path)).text == ""


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"", 412, "Anti-affinity group can't be empty"),
        (b" \n ", 412, "Anti-affinity group can't be empty"),
        (b"\xff", 400, "The body is not UTF-8"),
        (b"x" * 8193, 400, "antiAffinity must be a string of at most 8192 characters"),
    ],
)
async def test_texts_that_are_no_group(box: HttpBox, body: bytes, status: int, reason: str) -> None:
    got = await box.post(f"{N}/antiAffinity", body)
    assert (got.status, got.reason) == (status, reason)


async def test_a_namespace_can_be_created_with_all_of_them(box: HttpBox) -> None:
    given = {
        "replicatorDispatchRate": {"standalone": RATE},
        "offload_policies": {**EMPTY_OFFLOAD, "managedLedgerOffloadThresholdInBytes": 3},
        "entryFilters": {"entryFilterNames": "abc"},
        "clusterDispatchRate": {"standalone": RATE},
        "latency_stats_sample_rate": {"standalone": 7},
    }
    made = await box.put("/namespaces/public/n", given)
    assert made.status == 204
    warned = made.headers[WARNING_HEADER]
    for subject in (
        "replicator-dispatch-rate",
        "offload-policies",
        "entry-filters",
        "clusterDispatchRate",
        "latency_stats_sample_rate",
    ):
        assert warned.count(f"{subject}: stored, without effect: ") == 1
    policies = (await box.get("/namespaces/public/n")).value
    assert {name: policies[name] for name in given} == given
    assert (await box.put("/namespaces/public/copy", policies)).status == 204
    assert (await box.get("/namespaces/public/copy")).value == policies


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"offload_threshold": "x"}, 'offload_threshold must be a whole number, not "x"'),
        ({"offload_policies": [1]}, "offload_policies must be an object such as"),
        ({"replicatorDispatchRate": 3}, "replicatorDispatchRate must be an object with a member for each cluster"),
        ({"latency_stats_sample_rate": {"a": "x"}}, "latency_stats_sample_rate of a must be a whole number"),
        ({"entryFilters": 3}, "entryFilters must be an object"),
        ({"clusterDispatchRate": dict.fromkeys(map(str, range(1001)), RATE)}, "clusterDispatchRate must have at most"),
    ],
)
async def test_bodies_that_create_no_namespace(box: HttpBox, body: Any, reason: str) -> None:
    got = await box.put("/namespaces/public/n", body)
    assert (got.status, got.reason[: len(reason)]) == (400, reason)


@pytest.mark.parametrize(
    ("method", "word", "body"),
    [
        ("POST", "persistence", {}),
        ("POST", "deduplicationSnapshotInterval", 5),
        ("POST", "dispatcherPauseOnAckStatePersistent", None),
    ],
)
async def test_every_policy_without_effect_answers_with_a_warning(
    box: HttpBox, method: str, word: str, body: Any
) -> None:
    await box.put(T)
    for of in (N, T):
        got = await box.ask(method, f"/admin/v2{of}/{word}", body)
        assert got.status == 204
        assert ": stored, without effect: a box stores " in got.headers[WARNING_HEADER]
    assert WARNING_HEADER not in (await box.post(f"{N}/retention", {})).headers
