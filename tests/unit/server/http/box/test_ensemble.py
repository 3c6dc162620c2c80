"""The data directories of a box over HTTP."""

from typing import Any

import pytest

from pulsarbox.broker.host import Host
from pulsarbox.errors import PersistenceError
from pulsarbox.storage.ensemble.watch import WatchedEnsemble
from tests.unit.server.http.harness import HttpBox
from tests.unit.storage.ensemble.fake import LOST, FakeEnsemble, member, status

ENSEMBLE = "/pulsarbox/v1/ensemble"


@pytest.fixture
def fake(box: HttpBox) -> FakeEnsemble:
    """The ensemble of the box, of which a directory is lost."""
    fake = FakeEnsemble(LOST)
    watched = WatchedEnsemble(fake)
    watched.look(1000)
    box.broker.host = Host(ensemble=watched, folder="/disk1")
    return fake


async def test_the_status(box: HttpBox, fake: FakeEnsemble) -> None:
    found = (await box.ask("GET", ENSEMBLE)).value
    assert [each["state"] for each in found["members"]] == ["active", "lost", "active"]
    assert found["members"][1]["why"] == "input/output error"
    assert found["segment"]["members"] == ["/disk1", "/disk3"]
    wanted = {"fragments": 2, "entries": 1204, "withoutCopy": 0, "since": 1000, "restoredPercent": 0}
    assert found["underReplicated"] == wanted


async def test_a_box_with_one_directory_lists_it_and_refuses_operations(box: HttpBox) -> None:
    document: dict[str, Any] = {"rows": [], "diskUsed": 5, "diskFree": 7}
    box.broker.host = Host(folder="/data", store_statistics=lambda: document)
    found = (await box.ask("GET", ENSEMBLE)).value
    assert found["several"] is False
    assert [(each["name"], each["bytesFree"]) for each in found["members"]] == [("/data", 7)]
    told = await box.ask("POST", f"{ENSEMBLE}/members", {"directory": "/disk2"})
    assert (told.status, "dataDirectories" in told.reason) == (409, True)
    assert (await box.get("/bookies/all")).value == {"bookies": []}
    box.broker.host = Host()
    assert (await box.ask("GET", ENSEMBLE)).value["members"] == []


async def test_directories_are_bookies(box: HttpBox, fake: FakeEnsemble) -> None:
    fake.now = status(member("/disk1"), member("/disk2", state="lost"), member("/disk3", state="removed"))
    wanted = {"bookies": [{"bookieId": "/disk1"}, {"bookieId": "/disk2"}]}
    assert (await box.get("/bookies/all")).value == wanted


async def test_entries_that_lack_copies(box: HttpBox, fake: FakeEnsemble) -> None:
    found = (await box.ask("GET", f"{ENSEMBLE}/under-replicated")).value
    assert found["total"] == 2
    first = {"ledger": 7, "first": 0, "last": 999, "topic": None, "have": ["/disk1"], "want": 2}
    assert found["fragments"][0] == first
    found = (await box.ask("GET", f"{ENSEMBLE}/under-replicated?member=/disk1")).value
    assert [each["ledger"] for each in found["fragments"]] == [9]


async def test_the_map(box: HttpBox, fake: FakeEnsemble) -> None:
    found = (await box.ask("GET", f"{ENSEMBLE}/map?cells=10")).value
    assert found["rows"] == {"/disk1": "KKC", "/disk2": "L.L", "/disk3": "CKK"}
    assert (found["firsts"], found["ledgers"]) == ([7, 8, 9], 3)
    fake.open = {8}
    found = (await box.ask("GET", f"{ENSEMBLE}/map?cells=10")).value
    assert found["rows"] == {"/disk1": "KWC", "/disk2": "L.L", "/disk3": "CWK"}
    assert (await box.ask("GET", f"{ENSEMBLE}/map?cells=0")).status == 400


async def test_operations(box: HttpBox, fake: FakeEnsemble) -> None:
    told = await box.ask("POST", f"{ENSEMBLE}/members", {"directory": "/disk4"})
    assert (told.status, told.value["generation"]) == (200, 2)
    await box.ask("DELETE", f"{ENSEMBLE}/members?directory=/disk3")
    await box.ask("POST", f"{ENSEMBLE}/replace", {"old": "/disk2", "new": "/disk2"})
    await box.ask("POST", f"{ENSEMBLE}/replace", {"old": "/disk2", "new": "/disk5"})
    await box.ask("POST", f"{ENSEMBLE}/scrub", {"directory": "/disk1"})
    assert fake.called == [
        ("add", "/disk4"),
        ("remove", "/disk3"),
        ("replace", "/disk2", "/disk2"),
        ("replace", "/disk2", "/disk5"),
        ("scrub", "/disk1"),
    ]
    fake.called.clear()
    await box.ask("POST", f"{ENSEMBLE}/scrub")
    assert fake.called == [("scrub", "/disk1"), ("scrub", "/disk3")]


async def test_forced_operations(box: HttpBox, fake: FakeEnsemble) -> None:
    await box.ask("DELETE", f"{ENSEMBLE}/members?directory=/disk3&force=true")
    await box.ask("POST", f"{ENSEMBLE}/replace?force=true", {"old": "/disk2", "new": "/disk2"})
    assert fake.called == [("remove", "/disk3", "force"), ("replace", "/disk2", "/disk2", "force")]


REFUSED = [
    ("POST", "/members", {"directory": "disk4"}, 412, "'disk4' is not an absolute path"),
    ("POST", "/members", {"directory": "/disk2"}, 409, "it is lost"),
    ("POST", "/members", {"directory": 3}, 400, "strings directory"),
    ("POST", "/members", {"directory": "/d", "more": 1}, 400, "nothing else"),
    ("POST", "/members", {"directory": "/" + 5000 * "d"}, 412, "not a path"),
    ("DELETE", "/members?directory=/disk9", None, 404, "they are /disk1, /disk2, /disk3"),
    ("DELETE", "/members", None, 404, "is not a data directory"),
    ("POST", "/replace", {"old": "/disk9", "new": "/disk4"}, 404, "is not a data directory"),
    ("POST", "/replace", {"old": "/disk2", "new": "/disk1"}, 409, "already a data directory"),
    ("POST", "/replace", {"old": "/disk2", "new": "here"}, 412, "absolute"),
    ("POST", "/scrub", {"directory": "/disk2"}, 409, "/disk2 is lost"),
    ("POST", "/scrub", {"member": "/disk2"}, 400, "may only be"),
]


@pytest.mark.parametrize(("method", "path", "body", "code", "words"), REFUSED)
async def test_refusals(
    box: HttpBox, fake: FakeEnsemble, method: str, path: str, body: Any, code: int, words: str
) -> None:
    told = await box.ask(method, ENSEMBLE + path, body)
    assert (told.status, words in told.reason) == (code, True), told.text
    assert not fake.called


async def test_the_last_directory_in_use_cannot_be_removed(box: HttpBox, fake: FakeEnsemble) -> None:
    fake.now = status(member("/disk1"), member("/disk2", state="lost"))
    told = await box.ask("DELETE", f"{ENSEMBLE}/members?directory=/disk1")
    assert (told.status, "pulsarbox storage add" in told.reason) == (409, True)
    assert (await box.ask("DELETE", f"{ENSEMBLE}/members?directory=/disk2")).status == 200


async def test_a_failed_operation_is_told(box: HttpBox, fake: FakeEnsemble) -> None:
    fake.refusal = PersistenceError("cannot write to /disk4: read-only file system")
    told = await box.ask("POST", f"{ENSEMBLE}/members", {"directory": "/disk4"})
    assert (told.status, told.reason) == (500, "cannot write to /disk4: read-only file system")
