"""Offload policies of namespaces and topics, as Pulsar 4.2.4 answers without an offloader."""

from typing import Any, Final

import pytest

from pulsarbox.errors import WARNING_HEADER
from pulsarbox.protocol.policies.offload_shape import EMPTY_OFFLOAD
from tests.unit.server.http.harness import HttpBox

N: Final = "/namespaces/public/default"
T: Final = "/persistent/public/default/t"
DRIVERS: Final = "S3,aws-s3,google-cloud-storage,filesystem,azureblob,aliyun-oss"
BUCKET: Final = "The bucket must be specified for namespace offload."
S3: Final = {"managedLedgerOffloadDriver": "aws-s3", "managedLedgerOffloadBucket": "b"}
WARNING: Final = "offload-policies: stored, without effect: a box stores all messages in its data directory"


async def test_without_any_each_read_has_its_default(box: HttpBox) -> None:
    await box.put(T)
    for path, text in (
        (f"{N}/offloadPolicies", ""),
        (f"{N}/offloadThreshold", "-1"),
        (f"{N}/offloadThresholdInSeconds", "-1"),
        (f"{N}/offloadDeletionLagMs", ""),
        (f"{T}/offloadPolicies", ""),
        (f"{T}/offloadPolicies?applied=true", ""),
        (f"{N}/scanOffloadedLedgers", '{"objects":[],"total":0,"errors":0,"unknown":0}'),
    ):
        assert (await box.get(path))[:2] == (200, text), path
    assert (await box.get("/namespaces/public/none/scanOffloadedLedgers")).status == 404
    assert (await box.get("/namespaces/public/none/offloadThreshold")).status == 404


@pytest.mark.parametrize("of", [N, T])
@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"", 412, "The offloadPolicies must be specified for namespace offload."),
        (b"null", 412, "The offloadPolicies must be specified for namespace offload."),
        ({}, 412, f"The driver is not supported, support value: {DRIVERS}"),
        ({"managedLedgerOffloadDriver": "x"}, 412, f"The driver is not supported, support value: {DRIVERS}"),
        ({"managedLedgerOffloadDriver": "aws-s3"}, 412, BUCKET),
        ({"managedLedgerOffloadDriver": "azureblob", "s3ManagedLedgerOffloadBucket": "b"}, 412, BUCKET),
        ({"managedLedgerOffloadDriver": "google-cloud-storage", "s3ManagedLedgerOffloadBucket": "b"}, 412, BUCKET),
        ([], 400, "offloadPolicies must be an object"),
        (
            S3 | {"managedLedgerOffloadMaxThreads": "z"},
            400,
            "managedLedgerOffloadMaxThreads of offloadPolicies",
        ),
        (S3 | {"managedLedgerExtraConfigurations": {"a": []}}, 400, "a of managedLedgerExtraConfigurations of"),
        (S3 | {"managedLedgerOffloadRegion": "x" * 8193}, 400, "managedLedgerOffloadRegion of offloadPolicies must be"),
        (
            S3 | {"managedLedgerExtraConfigurations": dict.fromkeys(map(str, range(1001)), "")},
            400,
            "managedLedgerExtraConfigurations of offloadPolicies must have at most 1000 elements, not 1001",
        ),
    ],
)
async def test_what_is_refused(box: HttpBox, of: str, body: Any, status: int, reason: str) -> None:
    await box.put(T)
    got = await box.post(f"{of}/offloadPolicies", body)
    assert (got.status, got.reason[: len(reason)]) == (status, reason)
    assert (await box.get(f"{of}/offloadPolicies")).text == ""


@pytest.mark.parametrize(
    ("given", "flag"),
    [
        ({"managedLedgerOffloadDriver": "FileSystem"}, "fileSystemDriver"),
        ({"managedLedgerOffloadDriver": "S3", "s3ManagedLedgerOffloadBucket": "b"}, "s3Driver"),
        ({"managedLedgerOffloadDriver": "aliyun-oss", "managedLedgerOffloadBucket": "b"}, "s3Driver"),
        (
            {"managedLedgerOffloadDriver": "google-cloud-storage", "gcsManagedLedgerOffloadBucket": "b"},
            "gcsDriver",
        ),
        (S3 | {"managedLedgerOffloadThresholdInBytes": 11, "managedLedgerExtraConfigurations": {"a": "b"}}, "s3Driver"),
    ],
)
async def test_what_is_stored_is_shown_with_defaults_and_deleted(box: HttpBox, given: Any, flag: str) -> None:
    await box.put(T)
    for of, removal in ((N, "removeOffloadPolicies"), (T, "offloadPolicies")):
        got = await box.post(f"{of}/offloadPolicies", given | {"bogus": 1, flag: False})
        assert (got.status, got.headers[WARNING_HEADER]) == (204, WARNING)
        assert (await box.get(f"{of}/offloadPolicies")).value == {**EMPTY_OFFLOAD, **given, flag: True}
        gone = await box.delete(f"{of}/{removal}")
        assert (gone.status, WARNING_HEADER in gone.headers) == (204, False)
        assert (await box.get(f"{of}/offloadPolicies")).text == ""
        assert (await box.delete(f"{of}/{removal}")).status == 204


@pytest.mark.parametrize(
    ("word", "member", "unset", "done"),
    [
        ("offloadThreshold", "managedLedgerOffloadThresholdInBytes", "-1", 204),
        ("offloadThresholdInSeconds", "managedLedgerOffloadThresholdInSeconds", "-1", 200),
        ("offloadDeletionLagMs", "managedLedgerOffloadDeletionLagInMillis", "", 204),
    ],
)
async def test_a_threshold_is_a_member_of_the_policies(
    box: HttpBox, word: str, member: str, unset: str, done: int
) -> None:
    for body, shown in ((b"null", "0"), (5, "5"), (-7, "-7"), ("9", "9"), (1.5, "1")):
        got = await box.put(f"{N}/{word}", body)
        assert (got.status, got.headers[WARNING_HEADER]) == (done, WARNING)
        assert (await box.get(f"{N}/{word}")).text == shown
    assert (await box.get(f"{N}/offloadPolicies")).value == {**EMPTY_OFFLOAD, member: 1}
    assert (await box.put(f"{N}/{word}")).reason == "The request entity cannot be empty."
    assert (await box.put(f"{N}/{word}", {})).status == 400
    assert (await box.put(f"{N}/{word}", 1 << 63)).status == 400
    await box.post(f"{N}/offloadPolicies", S3)
    assert (await box.get(f"{N}/{word}")).text == unset, "the policies replace it"
    await box.put(f"{N}/{word}", 3)
    assert (await box.get(f"{N}/offloadPolicies")).value == {**EMPTY_OFFLOAD, **S3, "s3Driver": True, member: 3}
    await box.delete(f"{N}/removeOffloadPolicies")
    assert (await box.get(f"{N}/{word}")).text == unset


async def test_the_deletion_lag_is_cleared_alone(box: HttpBox) -> None:
    await box.put(f"{N}/offloadDeletionLagMs", 5)
    await box.put(f"{N}/offloadThreshold", 6)
    assert (await box.delete(f"{N}/offloadDeletionLagMs")).status == 204
    assert (await box.get(f"{N}/offloadDeletionLagMs")).text == ""
    assert (await box.get(f"{N}/offloadThreshold")).text == "6"


async def test_legacy_members_of_a_new_namespace_move_with_the_first_change(box: HttpBox) -> None:
    made = await box.put("/namespaces/public/n", {"offload_threshold": 5, "offload_deletion_lag_ms": 9})
    assert (made.status, made.headers[WARNING_HEADER]) == (204, f"{WARNING}; {WARNING}")
    policies = (await box.get("/namespaces/public/n")).value
    assert (policies["offload_threshold"], policies["offload_threshold_in_seconds"]) == (5, -1)
    assert "offload_policies" not in policies
    assert (await box.get("/namespaces/public/n/offloadPolicies")).text == ""
    assert (await box.get("/namespaces/public/n/offloadThreshold")).text == "5"
    await box.put("/persistent/public/n/t")
    applied = (await box.get("/persistent/public/n/t/offloadPolicies?applied=true")).value
    assert applied["managedLedgerOffloadThresholdInBytes"] == 5
    await box.put("/namespaces/public/n/offloadThresholdInSeconds", 77)
    policies = (await box.get("/namespaces/public/n")).value
    assert (policies["offload_threshold"], "offload_deletion_lag_ms" in policies) == (-1, False)
    assert policies["offload_policies"] == {
        **EMPTY_OFFLOAD,
        "managedLedgerOffloadThresholdInBytes": 5,
        "managedLedgerOffloadDeletionLagInMillis": 9,
        "managedLedgerOffloadThresholdInSeconds": 77,
    }
    await box.delete("/namespaces/public/n/removeOffloadPolicies")
    assert (await box.get("/namespaces/public/n/offloadThreshold")).text == "-1"


async def test_a_topic_has_the_members_of_its_namespace_that_it_does_not_set(box: HttpBox) -> None:
    await box.put(T)
    await box.put(f"{N}/offloadThreshold", 5)
    await box.post(f"{N}/offloadPolicies", S3 | {"managedLedgerExtraConfigurations": {"a": "1", "b": "1"}})
    await box.put(f"{N}/offloadThreshold", 5)
    own = {"managedLedgerOffloadDriver": "filesystem", "managedLedgerExtraConfigurations": {"b": "2"}}
    await box.post(f"{T}/offloadPolicies", own)
    assert (await box.get(f"{T}/offloadPolicies?applied=true")).value == {
        **EMPTY_OFFLOAD,
        "managedLedgerOffloadDriver": "filesystem",
        "managedLedgerOffloadBucket": "b",
        "managedLedgerOffloadThresholdInBytes": 5,
        "managedLedgerExtraConfigurations": {"a": "1", "b": "2"},
        "fileSystemDriver": True,
    }


# Topics


async def test_an_offload_of_a_topic_fails_at_once(box: HttpBox) -> None:
    await box.put(T)
    nowhere = {"ledgerId": -1, "entryId": -1, "partitionIndex": -1, "batchIndex": -1, "batchSize": 0}
    status = {"status": "NOT_RUN", "lastError": "", "firstUnoffloadedMessage": nowhere}
    assert (await box.get(f"{T}/offload")).value == status
    assert (await box.put(f"{T}/offload")).reason == "messageId is null"
    assert (await box.put(f"{T}/offload", 5)).status == 400
    assert (await box.get(f"{T}/offload")).value == status
    assert (await box.put(f"{T}/offload", {"ledgerId": 1, "entryId": 0})).status == 204
    error = "Offloading is not supported: a box stores all messages in its data directory"
    assert (await box.get(f"{T}/offload")).value == status | {"status": "ERROR", "lastError": error}


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/persistent/public/default/none", 404),
        ("/persistent/public/default/p", 404),
        ("/persistent/public/default/p-partition-1", 200),
        ("/non-persistent/public/default/t", 405),
    ],
)
async def test_topics_that_can_be_offloaded(box: HttpBox, path: str, status: int) -> None:
    await box.put("/persistent/public/default/p/partitions", 2)
    await box.put("/non-persistent/public/default/t")
    assert (await box.get(f"{path}/offload")).status == status
    got = await box.put(f"{path}/offload", {"ledgerId": 1, "entryId": 0})
    assert got.status == (204 if status == 200 else status)
