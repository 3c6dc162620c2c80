"""The migration flag of namespaces."""

from tests.unit.server.http.harness import HttpBox

PATH = "/namespaces/public/default/migration"


async def test_a_namespace_is_not_migrated(box: HttpBox) -> None:
    assert (await box.post(PATH, False)).status == 204
    refused = await box.post(PATH, True)
    assert (refused.status, "cannot redirect the clients" in refused.reason) == (501, True)
    assert (await box.get("/namespaces/public/default")).value["migrated"] is False
    assert (await box.post(PATH, "x")).status == 400
    missing = await box.post("/namespaces/public/none/migration", True)
    assert (missing.status, missing.reason) == (404, "Namespace not found")
