"""Migration of the metadata store, with the statuses of Pulsar 4.2.4."""

from tests.unit.server.http.harness import HttpBox


async def test_no_migration_is_possible(box: HttpBox) -> None:
    assert (await box.get("/metadata/migration/status")).value == {"phase": "NOT_STARTED"}
    for path in ("start", "start?target=%20"):
        refused = await box.post(f"/metadata/migration/{path}")
        assert (refused.status, refused.reason) == (400, "Target URL is required")
    refused = await box.post("/metadata/migration/start?target=zk:x")
    assert (refused.status, refused.reason.partition(":")[0]) == (
        400,
        "Metadata store is not configured for migration",
    )
