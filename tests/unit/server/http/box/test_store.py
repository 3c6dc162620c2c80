"""The live view of the store."""

from typing import Any

from pulsarbox.errors import PersistenceError
from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import Box, with_box

STORE = "/pulsarbox/v1/top/storage"


def test_commits_are_told_without_a_disk_too() -> None:
    async def scenario(box: Box) -> None:
        Client(box).publish("persistent://public/default/t", 5)
        found = (await box.ask("GET", STORE)).value
        assert (found["view"], found["rows"], found["readOnly"]) == ("storage", [], False)
        totals = found["totals"]
        assert totals["commits"] > 4
        assert (totals["commitsFailed"], totals["refusal"]) == (0, None)
        assert totals["groupEntries"] <= 1
        assert totals["commitP99"] >= totals["commitP50"] > 0

    with_box(scenario)


def test_volumes_are_rows() -> None:
    async def scenario(box: Box) -> None:
        document: dict[str, Any] = {"rows": [{"name": "volumes/00000001"}], "volumes": 1, "diskFree": 7}
        box.broker.standing = lambda: document
        found = (await box.ask("GET", STORE)).value
        assert (found["total"], found["rows"]) == (1, [{"name": "volumes/00000001"}])
        assert found["totals"]["diskFree"] == 7
        assert (await box.ask("GET", f"{STORE}?tenant=public")).status == 403

        def fails() -> Any:
            raise PersistenceError("no")

        box.broker.standing = fails
        assert (await box.ask("GET", STORE)).status == 500

    with_box(scenario)
