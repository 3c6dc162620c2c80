"""Transactions over HTTP: responses to Pulsar's tools, and abort."""

from typing import Any

import pytest

from pulsarbox.protocol.commands import encode_payload_frame
from pulsarbox.protocol.metadata import encode_entry
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandSend, MessageMetadata, Subscription
from pulsarbox.server.http.box import epochs
from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import Got, HttpBox, running_box

V3 = "/admin/v3/transactions"
T = "persistent://public/default/t"
PATH = "public/default/t"


def open_one(box: HttpBox) -> tuple[Client, int, tuple[int, int]]:
    """Return the ID of a transaction with a message and an acknowledgement, and the acknowledged position."""
    client = Client(box)
    at = client.publish(T, 1)[0]
    consumer = client.subscribe(T, "s", 10)
    producer = client.producer(T)
    client.ask("newTxn", request_id=70, txn_ttl_seconds=60_000, tc_id=0)
    least = box.broker.transactions.last_id
    bits: dict[str, Any] = {"txnid_least_bits": least, "txnid_most_bits": 0}
    client.ask("addPartitionToTxn", request_id=71, partitions=["t"], **bits)
    on = [Subscription(topic="t", subscription="s")]
    client.ask("addSubscriptionToTxn", request_id=72, subscription=on, **bits)
    send = CommandSend(producer_id=producer, sequence_id=1, num_messages=1, **bits)
    payload = encode_entry(MessageMetadata(producer_name="p", sequence_id=1, publish_time=1), b"x")
    client.raw(encode_payload_frame(BaseCommand(type=BaseCommand.SEND, send=send), payload))
    which = [{"ledgerId": at[0], "entryId": at[1]}]
    client.ask("ack", consumer_id=consumer, request_id=73, ack_type=0, message_id=which, **bits)
    return client, least, at


async def get(box: HttpBox, path: str) -> Any:
    got = await box.ask("GET", f"{V3}{path}")
    assert got.status == 200, got
    return got.value


async def test_what_is_open_is_shown(box: HttpBox) -> None:
    _, least, at = open_one(box)
    assert await get(box, "/coordinators") == [{"id": 0, "brokerServiceUrl": "pulsar://box:6650"}]
    stats = await get(box, "/coordinatorStats")
    assert (stats["0"]["state"], stats["0"]["ongoingTxnSize"], stats["0"]["leastSigBits"]) == ("Ready", 1, least)
    assert await get(box, "/coordinatorStats?coordinatorId=0") == stats["0"]
    found = await get(box, f"/transactionMetadata/0/{least}")
    assert (found["txnId"], found["status"], found["timeoutAt"]) == (f"(0,{least})", "OPEN", 60_000)
    first = f"{at[0]}:{at[1] + 1}"
    assert found["producedPartitions"] == {"t": {"startPosition": first, "aborted": False}}
    assert found["ackedPartitions"] == {"t": {"s": {}}}
    assert await get(box, "/slowTransactions/0") == {f"(0,{least})": found}
    assert await get(box, "/slowTransactions/1000") == {}
    assert (await get(box, f"/transactionInBufferStats/{PATH}/0/{least}"))["startPosition"] == first
    assert await get(box, f"/transactionInPendingAckStats/{PATH}/s/0/{least}") == {}
    buffer = await get(box, f"/transactionBufferStats/{PATH}")
    assert (buffer["ongoingTxnSize"], buffer["maxReadPosition"]) == (1, f"{at[0]}:{at[1]}")
    assert (await get(box, f"/pendingAckStats/{PATH}/s"))["ongoingTxnSize"] == 1
    where = f"/positionStatsInPendingAck/{PATH}/s/{at[0]}"
    assert await get(box, f"{where}/{at[1]}") == {"state": "PendingAck"}
    assert await get(box, f"{where}/{at[1] + 1}") == {"state": "NotInPendingAck"}
    assert await get(box, f"{where}/99") == {"state": "NotInPendingAck"}
    assert await get(box, f"{where}/{at[1]}?batchIndex=0") == {"state": "PendingAck"}
    # As a bit count, each value would exhaust the memory or exceed the digit limit of int().
    for index in ("9" * 12, "9" * 18):
        assert await get(box, f"{where}/{at[1]}?batchIndex={index}") == {"state": "NotInPendingAck"}
    for index in ("9" * 19, "9" * 5000, "-1", "x"):
        assert await get(box, f"{where}/{at[1]}?batchIndex={index}") == {"state": "PendingAck"}


async def test_an_abort(box: HttpBox) -> None:
    _, least, _ = open_one(box)
    assert (await box.ask("POST", f"{V3}/abortTransaction/0/{least}")).status == 204
    found = await get(box, f"/transactionMetadata/0/{least}")
    assert (found["status"], found["producedPartitions"]) == ("ABORTED", {"t": {"aborted": True}})
    assert await get(box, f"/transactionInBufferStats/{PATH}/0/{least}") == {"aborted": True}
    assert await get(box, f"/transactionInBufferStats/{PATH}/0/{least + 1}") == {"aborted": False}
    assert await get(box, "/slowTransactions/0") == {}
    assert (await get(box, f"/transactionBufferStats/{PATH}"))["totalAbortedTransactions"] == 1
    assert (await get(box, f"/pendingAckStats/{PATH}/s"))["state"] == "None"


async def test_the_statistics_of_a_topic_count_them(box: HttpBox) -> None:
    async def counts(path: str = "/admin/v2/persistent/public/default/t/stats") -> tuple[int, ...]:
        stats = (await box.ask("GET", path)).value
        return tuple(stats[f"{which}TxnCount"] for which in ("ongoing", "aborted", "committed"))

    client, least, _ = open_one(box)
    assert await counts() == (1, 0, 0)
    await box.ask("POST", f"{V3}/abortTransaction/0/{least}")
    assert await counts() == (0, 1, 0)
    _, least, _ = open_one(box)
    assert await counts() == (1, 1, 0)
    client.ask("endTxn", request_id=90, txnid_least_bits=least, txnid_most_bits=0, txn_action=0)
    assert await counts() == (0, 1, 1)


async def test_what_is_not_there(box: HttpBox) -> None:
    open_one(box)
    for path in (
        "/transactionMetadata/0/99999",
        "/transactionMetadata/1/1",
        "/coordinatorStats?coordinatorId=1",
        "/coordinatorStats?coordinatorId=x",
    ):
        assert (await box.ask("GET", f"{V3}{path}")).status == 404, path
    assert (await box.ask("GET", f"{V3}/pendingAckStats/{PATH}/other")).status == 404
    assert (await box.ask("POST", f"{V3}/abortTransaction/0/99999")).status == 404
    assert (await box.ask("POST", f"{V3}/transactionCoordinator/replicas", 1)).status == 204
    assert (await box.ask("POST", f"{V3}/transactionCoordinator/replicas", 2)).status == 405
    assert (await box.ask("POST", f"{V3}/transactionCoordinator/replicas", 0)).status == 406
    assert (await box.ask("POST", f"{V3}/transactionCoordinator/replicas", "x")).status == 400


def code_of(refused: Got) -> tuple[int, str]:
    """Return the status and code of an error."""
    return refused.status, refused.headers["X-Pulsarbox-Error"]


async def test_an_epoch_is_committed_once(box: HttpBox) -> None:
    _, least, _ = open_one(box)
    path, body = "/pulsarbox/v1/epochs/public/default/sales", {"transactions": [f"0:{least}"]}
    assert code_of(await box.ask("GET", path)) == (404, "SinkUnused")
    got = await box.ask("POST", f"{path}/7", body)
    assert (got.status, got.value) == (200, {"sink": "public/default/sales", "epoch": 7, "committed": True})
    again = await box.ask("POST", f"{path}/7", body)
    assert (again.status, again.value["committed"]) == (200, False)
    assert (await get(box, f"/transactionMetadata/0/{least}"))["status"] == "COMMITTED"
    assert (await box.ask("GET", path)).value["epoch"] == 7
    behind = await box.ask("POST", f"{path}/6", {"transactions": []})
    assert "behind its last epoch, 7" in behind.reason
    assert code_of(behind) == (409, "EpochBehind")
    assert (await box.ask("POST", f"{path}/8", {"transactions": ["0:99999"]})).status == 404
    for wrong in ({}, {"transactions": "0:1"}, {"transactions": ["1"]}, {"transactions": [1]}):
        assert (await box.ask("POST", f"{path}/8", wrong)).status == 400, wrong
    assert code_of(await box.ask("GET", path.replace("default", "missing"))) == (404, "NamespaceNotFound")
    assert (await box.ask("DELETE", path)).status == 204
    assert (await box.ask("GET", path)).status == 404


async def test_the_sinks_of_a_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epochs, "SINKS_AT_ONCE", 2)
    async with running_box() as box:
        path = "/pulsarbox/v1/epochs/public/default"
        assert (await box.ask("GET", path)).value == {"sinks": [], "next": None}
        for number, name in enumerate(("c", "a", "b")):
            assert (await box.ask("POST", f"{path}/{name}/{number}", {"transactions": []})).status == 200
        assert (await box.ask("POST", f"{path}/d/0/stages", {"writer": "q", "run": "r"})).status == 200
        some = (await box.ask("GET", path)).value
        assert [(each["sink"], each["epoch"]) for each in some["sinks"]] == [
            ("public/default/a", 1), ("public/default/b", 2)
        ]  # fmt: skip
        rest = (await box.ask("GET", f"{path}?after={some['next']}")).value
        assert rest["sinks"] == [(await box.ask("GET", f"{path}/c")).value]
        assert rest["next"] is None, "d has no committed epoch"
        assert (await box.ask("GET", path.replace("default", "missing"))).status == 404


async def test_parts_of_an_epoch_are_begun_and_committed_for_a_writer(box: HttpBox) -> None:
    path = "/pulsarbox/v1/epochs/public/default/sales"
    who = {"writer": "query", "run": "first"}
    begun = await box.ask("POST", f"{path}/0/stages", who | {"timeoutMs": 60_000})
    assert (begun.status, begun.value["committed"]) == (200, False)
    assert (await box.ask("GET", path)).status == 404, "nothing is committed yet"
    least = begun.value["transaction"].split(":")[1]
    assert (await get(box, f"/transactionMetadata/0/{least}"))["timeoutAt"] == 60_000
    body = {"transactions": [begun.value["transaction"]]}
    assert (await box.ask("POST", f"{path}/0", body | who)).value["committed"] is True
    told = await box.ask("POST", f"{path}/0/stages", who)
    assert told.value == {"transaction": None, "committed": True}
    assert {"writer": "query", "run": "first"}.items() <= (await box.ask("GET", path)).value.items()
    other = {"writer": "other", "run": "second"}
    refused = await box.ask("POST", f"{path}/1/stages", other)
    assert "belongs to writer query" in refused.reason
    assert code_of(refused) == (409, "SinkOfAnotherWriter")
    assert (await box.ask("POST", f"{path}/1", {"transactions": []} | other)).status == 409
    assert (await box.ask("POST", f"{path}/0/stages", other | {"takeOver": True})).value["committed"] is False
    assert code_of(await box.ask("POST", f"{path}/1/stages", who)) == (409, "SinkTakenOver")
    assert (await box.ask("POST", f"{path}/1/stages", other | {"run": "third"})).status == 200
    assert code_of(await box.ask("POST", f"{path}/1/stages", other)) == (409, "RunReplaced")
    long = {"writer": "other", "run": "third", "timeoutMs": 10**9}
    assert code_of(await box.ask("POST", f"{path}/1/stages", long)) == (405, "TransactionTimeoutTooLong")
    assert (await box.ask("POST", f"{path}/-1/stages", {})).status == 400
    assert (await box.ask("POST", f"{path}/x/stages", {})).status == 404
    for wrong in (
        {"writer": "query"},
        {"run": "first"},
        {"writer": 1, "run": "first"},
        {"writer": "w" * 257, "run": "first"},
        {"takeOver": True},
        {"takeOver": "yes"} | who,
        {"timeoutMs": -1},
        {"timeoutMs": True},
        {"timeoutMs": "1m"},
    ):
        assert (await box.ask("POST", f"{path}/1/stages", wrong)).status == 400, wrong
