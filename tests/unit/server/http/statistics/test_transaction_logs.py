"""Internal statistics of transaction logs, with the format, statuses and texts of Pulsar 4.2.4."""

import pytest

from pulsarbox.config import Settings
from tests.unit.server.http.harness import Got, HttpBox

transactional = pytest.mark.settings(Settings(transactionCoordinatorEnabled=True))


async def ask(box: HttpBox, path: str) -> Got:
    """Ask for internal statistics."""
    return await box.ask("GET", f"/admin/v3/transactions/{path}")


@transactional
async def test_the_log_of_the_coordinator(box: HttpBox) -> None:
    log = (await ask(box, "coordinatorInternalStats/0?metadata=true")).value["transactionLogStats"]
    assert log["managedLedgerName"] == "pulsar/system/persistent/__transaction_log_0"
    stats = log["managedLedgerInternalStats"]
    assert (stats["numberOfEntries"], stats["state"], stats["ledgers"], stats["cursors"]) == (0, "None", [], {})
    missing = await ask(box, "coordinatorInternalStats/1")
    assert (missing.status, missing.reason) == (404, "Transaction coordinator not found! coordinator id : 1")
    assert (await ask(box, "coordinatorInternalStats/x")).status == 404


@transactional
async def test_the_log_of_pending_acknowledgements(box: HttpBox) -> None:
    await box.put("/persistent/public/default/t")
    await box.put("/persistent/public/default/t/subscription/s")
    log = (await ask(box, "pendingAckInternalStats/public/default/t/s")).value["pendingAckLogStats"]
    assert log["managedLedgerName"] == "public/default/persistent/t-s__transaction_pending_ack"
    assert log["managedLedgerInternalStats"]["totalSize"] == 0
    for path in ("t/none", "none/s"):
        assert (await ask(box, f"pendingAckInternalStats/public/default/{path}")).status == 404


@transactional
async def test_there_is_no_snapshot_of_a_transaction_buffer(box: HttpBox) -> None:
    await box.put("/persistent/public/default/t")
    missing = await ask(box, "transactionBufferInternalStats/public/default/t")
    reason = "Transaction buffer Snapshot for the topic does not exist"
    assert (missing.status, missing.reason) == (404, reason)
    assert (await ask(box, "transactionBufferInternalStats/public/default/none")).reason != reason


@pytest.mark.settings(Settings(transactionCoordinatorEnabled=False))
async def test_logs_without_transactions(box: HttpBox) -> None:
    await box.put("/persistent/public/default/t")
    await box.put("/persistent/public/default/t/subscription/s")
    status = (await box.ask("GET", "/admin/v3/transactions/coordinatorStats")).status
    for path in ("coordinatorInternalStats/0", "pendingAckInternalStats/public/default/t/s"):
        assert (await ask(box, path)).status == status
