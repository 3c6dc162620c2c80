"""The live view of the storage."""

from typing import Any

from pulsarbox.broker.host import Host
from pulsarbox.errors import PersistenceError
from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import HttpBox

STORE = "/pulsarbox/v1/top/storage"


async def test_commits_are_told_without_a_disk_too(box: HttpBox) -> None:
    Client(box).publish("persistent://public/default/t", 5)
    found = (await box.ask("GET", STORE)).value
    assert (found["view"], found["rows"], found["readOnly"]) == ("storage", [], False)
    totals = found["totals"]
    assert totals["commits"] > 4
    assert (totals["commitsFailed"], totals["refusal"]) == (0, None)
    assert totals["groupEntries"] <= 1
    assert totals["commitP99"] >= totals["commitP50"] > 0


async def test_volumes_are_rows(box: HttpBox) -> None:
    document: dict[str, Any] = {"rows": [{"name": "volumes/00000001"}], "volumes": 1, "diskFree": 7}
    box.broker.host = Host(store_statistics=lambda: document)
    found = (await box.ask("GET", STORE)).value
    assert (found["total"], found["rows"]) == (1, [{"name": "volumes/00000001"}])
    assert found["totals"]["diskFree"] == 7
    assert (await box.ask("GET", f"{STORE}?tenant=public")).status == 403

    def fails() -> Any:
        raise PersistenceError("no")

    box.broker.host = Host(store_statistics=fails)
    assert (await box.ask("GET", STORE)).status == 500
