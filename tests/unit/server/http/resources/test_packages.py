"""Packages over HTTP: stored, listed, returned and deleted, with the codes of Pulsar 4.2.4."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from pulsarbox.config import Settings
from pulsarbox.errors import PersistenceError
from pulsarbox.server.http.framework import upload
from pulsarbox.server.tasks import spawn
from pulsarbox.storage.catalog import PACKAGE_DATA, PACKAGES
from pulsarbox.storage.package_content import ENTRY_BYTES
from tests.unit.broker.security.signing import GUARDED
from tests.unit.server.http.harness import Got, HttpBox, until

P = "/admin/v3/packages/function/public/default"
METADATA: dict[str, Any] = {"description": "d", "contact": "c", "properties": {"a": "b"}}
FORM = {"Content-Type": "multipart/form-data; boundary=xyz"}
LARGE = bytes(range(128)) * (10 * ENTRY_BYTES // 512)
"""Two entries and a half."""


def field(name: str, data: bytes) -> bytes:
    """Return a part of a form."""
    return b'--xyz\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (name.encode(), data)


def form(content: bytes = b"code", metadata: Any = METADATA) -> bytes:
    """Return the form of an upload."""
    return field("metadata", json.dumps(metadata).encode()) + field("file", content) + b"--xyz--\r\n"


async def put(box: HttpBox, path: str, body: bytes | None = None) -> Got:
    """Upload a package."""
    return await box.ask("POST", path, form() if body is None else body, headers=FORM)


async def send_part(box: HttpBox, path: str, body: bytes, length: int | None = None) -> asyncio.StreamWriter:
    """Send the headers of an upload and the beginning of its body."""
    _, writer = await asyncio.open_connection("127.0.0.1", box.port)
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {FORM['Content-Type']}\r\n"
    writer.write(f"{head}Content-Length: {length or 10 * len(body)}\r\n\r\n".encode() + body)
    return writer


def leftovers(box: HttpBox) -> list[str]:
    """Return the rows of all packages."""
    return list(box.broker.catalog.keys("package"))


@pytest.mark.parametrize("content", [b"", b"code", LARGE, LARGE[: 2 * ENTRY_BYTES]])
async def test_a_package_is_returned_as_it_was_uploaded(box: HttpBox, content: bytes) -> None:
    assert (await put(box, f"{P}/a/1", form(content))).status == 204
    got = await box.ask("GET", f"{P}/a/1")
    assert (got.status, got.headers["Content-Type"]) == (200, "application/octet-stream")
    assert int(got.headers["Content-Length"]) == len(content)
    assert got.text.encode() == content


async def test_lists(box: HttpBox) -> None:
    assert (await box.ask("GET", P)).value == (await box.ask("GET", f"{P}/a")).value == []
    for path in ("a/1", "a/2%2F3", "a/latest", "b/1"):
        assert (await put(box, f"{P}/{path}")).status == 204
    assert (await box.ask("GET", P)).value == ["a", "b"]
    assert (await box.ask("GET", P.replace("function", "FUNCTION"))).value == ["a", "b"]
    assert (await box.ask("GET", f"{P}/a")).value == ["1", "2/3", "latest"]
    assert (await box.ask("GET", f"{P}/a/2%2F3")).text == "code"
    assert (await box.ask("GET", P.replace("function", "sink"))).value == []


async def test_metadata(box: HttpBox) -> None:
    await put(box, f"{P}/a/1")
    now = box.shell.now().wall
    times = {"createTime": now, "modificationTime": now}
    assert (await box.ask("GET", f"{P}/a/1/metadata")).value == METADATA | times
    box.shell.core.advance(1)
    body = {"description": "new", "createTime": 5, "unknown": 1, "properties": {"n": 1}}
    assert (await box.ask("PUT", f"{P}/a/1/metadata", body)).status == 204
    assert (await box.ask("GET", f"{P}/a/1/metadata")).text == json.dumps(
        {"description": "new", "createTime": now, "modificationTime": now + 1000, "properties": {"n": "1"}},
        separators=(",", ":"),
    )


@pytest.mark.parametrize("body", [b"", b"null"])
async def test_an_update_without_metadata(box: HttpBox, body: bytes) -> None:
    await put(box, f"{P}/a/1")
    got = await box.ask("PUT", f"{P}/a/1/metadata", body)
    assert (got.status, got.reason.partition(",")[0]) == (400, "Unknown error")


@pytest.mark.parametrize(
    ("method", "path", "reason"),
    [
        ("GET", "a/1", "Package 'function://public/default/a@1' does not exist"),
        ("DELETE", "a/1", "Package 'function://public/default/a@1' does not exist"),
        ("GET", "a/1/metadata", "Package 'function://public/default/a@1' metadata does not exist"),
        ("PUT", "a/1/metadata", "Package 'function://public/default/a@1' metadata does not exist"),
    ],
)
async def test_an_unknown_package(box: HttpBox, method: str, path: str, reason: str) -> None:
    got = await box.ask(method, f"{P}/{path}", {} if method == "PUT" else None)
    assert (got.status, got.reason) == (404, reason)


async def test_a_package_is_never_replaced(box: HttpBox) -> None:
    await put(box, f"{P}/a/1")
    got = await put(box, f"{P}/a/1", form(b"other"))
    assert (got.status, got.reason) == (409, "Package 'function://public/default/a@1' metadata already exists")
    assert (await box.ask("GET", f"{P}/a/1")).text == "code"


async def test_delete(box: HttpBox) -> None:
    await put(box, f"{P}/a/1", form(LARGE))
    assert (await box.ask("DELETE", f"{P}/a/1")).status == 204
    assert leftovers(box) == [PACKAGES]
    assert box.broker.catalog.get(PACKAGES) == {"count": 0, "bytes": 0}
    assert (await put(box, f"{P}/a/1")).status == 204


@pytest.mark.parametrize(
    "path",
    [
        "/admin/v3/packages/bad/public/default/a/1",
        f"{P}/a@b/1",
        f"{P}/a/1@2",
        f"{P}/a%2Fb/1",
        f"{P}/a%2F..%2F..%2Fb/1",
        f"{P}/a%0A/1",
        f"{P}/{'a' * 256}/1",
        f"{P}/a/{'1' * 256}",
        "/admin/v3/packages/function/public/bad%20name/a/1",
        "/admin/v3/packages/function/public/..%2F..%2Fetc/a/1",
    ],
)
async def test_an_invalid_name(box: HttpBox, path: str) -> None:
    assert (await put(box, path)).status == 412
    assert (await box.ask("GET", path)).status == 412
    assert not leftovers(box)


@pytest.mark.parametrize("name", ["..", "a%20b", "%C3%A9", "metadata"])
async def test_names_that_no_file_system_is_asked_for(box: HttpBox, name: str) -> None:
    assert (await put(box, f"{P}/{name}/{name}")).status == 204
    assert (await box.ask("GET", f"{P}/{name}/{name}")).text == "code"


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (field("file", b"x") + b"--xyz--", 400, "metadata is null"),
        (field("metadata", b"null") + field("file", b"x") + b"--xyz--", 400, "metadata is null"),
        (field("metadata", b"{") + field("file", b"x") + b"--xyz--", 400, "not JSON"),
        (field("metadata", b"[" * 5000) + field("file", b"x") + b"--xyz--", 400, "not JSON"),
        (field("metadata", b"[]") + field("file", b"x") + b"--xyz--", 400, "must be a JSON object"),
        (form(metadata={"description": {}}), 400, "description must be text"),
        (form(metadata={"properties": {"a": {}}}), 400, "properties must be"),
        (form(metadata={"description": "x" * 70_000}), 413, "metadata of a package"),
        (field("metadata", b"{}") + b"--xyz--", 400, "no part with the name file"),
        (field("metadata", b"{}") + field("file", b"x") * 2 + b"--xyz--", 400, "more than one part"),
        (form()[:-10], 400, "ends before"),
        (b"", 400, "ends before"),
        (field("other", b"") * 10_000 + form(), 400, "more than 16 parts"),
        (field("metadata", b"{}") + field("file", LARGE), 400, "ends before"),
    ],
)
async def test_a_form_that_is_no_package(box: HttpBox, body: bytes, status: int, reason: str) -> None:
    got = await put(box, f"{P}/a/1", body)
    assert got.status == status
    assert reason in got.reason
    assert not leftovers(box)
    assert (await put(box, f"{P}/a/1")).status == 204, "nothing holds the name"


async def test_media_types(box: HttpBox) -> None:
    for headers, status in (
        ({"Content-Type": "application/json"}, 415),
        ({**FORM, "Content-Encoding": "gzip"}, 415),
        ({"Content-Type": "multipart/form-data"}, 400),
    ):
        assert (await box.ask("POST", f"{P}/a/1", form(), headers=headers)).status == status
    assert not leftovers(box)


async def test_parts_of_other_names_are_ignored(box: HttpBox) -> None:
    assert (await put(box, f"{P}/a/1", field("path", b"/etc/passwd") + form())).status == 204


@pytest.mark.settings(Settings(maxPackageSizeMbytes=1, maxPackagesTotalMbytes=1))
async def test_sizes_are_bounded(box: HttpBox) -> None:
    got = await put(box, f"{P}/a/1", form(bytes((1 << 20) + 1)))
    assert (got.status, "maxPackageSizeMbytes" in got.reason) == (413, True)
    writer = await send_part(box, f"{P}/a/1", field("metadata", b"{}"), 1 << 30)
    await until(lambda: not box.broker.packages.total)
    writer.close()
    assert (await put(box, f"{P}/a/1", form(bytes(1 << 20)))).status == 204
    got = await put(box, f"{P}/b/1", form(b"x"))
    assert (got.status, "maxPackagesTotalMbytes" in got.reason) == (413, True)
    await box.ask("DELETE", f"{P}/a/1")
    assert (await put(box, f"{P}/b/1", form(b"x"))).status == 204


async def test_an_interrupted_upload_leaves_nothing(box: HttpBox) -> None:
    writer = await send_part(box, f"{P}/a/1", field("metadata", b"{}") + field("file", LARGE)[:-2])
    await until(lambda: box.broker.packages.total >= 2 * ENTRY_BYTES)
    assert (await put(box, f"{P}/a/1")).status == 409, "it is being uploaded"
    assert len(leftovers(box)) == 1
    assert (await box.ask("GET", f"{P}/a/1")).status == 404
    writer.close()
    await until(lambda: not box.broker.packages.total)
    assert not leftovers(box)
    assert (await put(box, f"{P}/a/1")).status == 204


async def test_uploads_at_the_same_time_are_bounded(box: HttpBox) -> None:
    body = field("file", LARGE[: ENTRY_BYTES + 100])
    writers = [await send_part(box, f"{P}/a/{number}", body) for number in range(16)]
    await until(lambda: box.broker.packages.total == 16 * ENTRY_BYTES)
    assert (await put(box, f"{P}/b/1")).status == 503
    for writer in writers:
        writer.close()
    await until(lambda: not box.broker.packages.total)
    assert (await put(box, f"{P}/b/1")).status == 204


async def test_an_upload_has_limited_time(box: HttpBox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload, "UPLOAD_SECONDS_MAX", 0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", box.port)
    writer.write(f"POST {P}/a/1 HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n".encode())
    writer.write(f"Content-Type: {FORM['Content-Type']}\r\n\r\n--xyz".encode())
    assert (await reader.readline()).startswith(b"HTTP/1.1 408")
    writer.close()


async def test_a_client_that_asks_is_invited_to_send_the_body(box: HttpBox) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", box.port)
    head = f"POST {P}/a/1 HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(form())}\r\nExpect: 100-continue\r\n"
    writer.write(f"{head}Content-Type: {FORM['Content-Type']}\r\n\r\n".encode())
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(form())
    assert (await reader.readline()).startswith(b"HTTP/1.1 204")
    writer.close()


async def test_a_commit_that_fails_cancels_the_upload(box: HttpBox) -> None:
    box.shell.held = True
    asking = spawn("an upload", put(box, f"{P}/a/1", form(LARGE)))
    await until(lambda: box.broker.packages.total)
    box.shell.core.commit(PersistenceError("the disk is gone"))
    box.shell.held = False
    while not asking.done():
        box.shell.core.advance(0.2)  # to the retry
        await asyncio.sleep(0)
    got = await asking
    assert (got.status, "the disk is gone" in got.reason) == (500, True)
    assert not leftovers(box)


async def test_a_full_disk_is_reported(box: HttpBox) -> None:
    box.broker.commits.housekeeping.refusal = "no space left on device"
    got = await put(box, f"{P}/a/1")
    assert (got.status, got.reason) == (500, "The package cannot be stored: no space left on device")
    assert not leftovers(box)


async def test_it_is_deleted_with_its_namespace(box: HttpBox) -> None:
    await box.put("/namespaces/public/n")
    path = "/admin/v3/packages/sink/public/n"
    await put(box, f"{path}/a/1", form(LARGE))
    writer = await send_part(box, f"{path}/b/1", field("file", LARGE[: ENTRY_BYTES + 100]))
    await until(lambda: box.broker.packages.total > len(LARGE))
    assert (await box.delete("/namespaces/public/n")).status == 204
    writer.close()
    await until(lambda: not box.broker.packages.total)
    assert leftovers(box) == [PACKAGES]
    got = await put(box, f"{path}/a/1")
    assert (got.status, got.reason) == (404, "Namespace public/n not found")


async def test_an_upload_that_its_namespace_does_not_outlive(box: HttpBox) -> None:
    await box.put("/namespaces/public/n")
    path = "/admin/v3/packages/sink/public/n"
    reader, writer = await asyncio.open_connection("127.0.0.1", box.port)
    head = f"POST {path}/a/1 HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(form(LARGE))}\r\n"
    writer.write(f"{head}Content-Type: {FORM['Content-Type']}\r\n\r\n".encode() + form(LARGE)[:-5])
    await until(lambda: box.broker.packages.total)
    await box.delete("/namespaces/public/n")
    writer.write(form(LARGE)[-5:])
    assert (await reader.readline()).startswith(b"HTTP/1.1 404")
    writer.close()
    assert not leftovers(box)


@pytest.mark.settings(Settings(enablePackagesManagement=False))
async def test_it_can_be_disabled(box: HttpBox) -> None:
    for method, path in (("GET", P), ("GET", f"{P}/a"), ("GET", f"{P}/a/1"), ("DELETE", f"{P}/a/1")):
        got = await box.ask(method, path)
        assert got.status == 503
        assert got.reason.startswith("Package Management Service is not enabled in the broker")
    assert (await put(box, f"{P}/a/1")).status == 503


async def test_a_head_has_the_size(box: HttpBox) -> None:
    await put(box, f"{P}/a/1", form(LARGE))
    got = await box.ask("HEAD", f"{P}/a/1")
    assert (got.status, got.headers["Content-Length"]) == (200, str(len(LARGE)))


async def test_damaged_content_is_an_error(box: HttpBox) -> None:
    await put(box, f"{P}/a/1")
    ledger = int(next(box.broker.catalog.keys(PACKAGE_DATA)).removeprefix(PACKAGE_DATA), 16)
    box.broker.catalog.note("package/public/default/function/a/1", {"ledger": ledger + 7, "entries": 1, "size": 4})
    got = await box.ask("GET", f"{P}/a/1")
    assert got.status == 500


async def test_a_download_that_cannot_continue_is_cut_off(box: HttpBox) -> None:
    await put(box, f"{P}/a/1", form(LARGE))
    key = "package/public/default/function/a/1"
    row = box.broker.catalog.get(key)
    assert row is not None
    box.broker.catalog.note(key, row | {"entries": row["entries"] + 1, "size": row["size"] + 1})
    with pytest.raises(aiohttp.ClientPayloadError):
        await box.ask("GET", f"{P}/a/1")


@pytest.mark.settings(Settings(**GUARDED))
async def test_a_client_without_permission_is_refused_before_its_body(box: HttpBox) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", box.port)
    head = f"POST {P}/a/1 HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n"
    writer.write(f"{head}Content-Type: {FORM['Content-Type']}\r\n\r\n".encode())
    assert (await reader.readline()).startswith(b"HTTP/1.1 401")
    writer.close()
    assert not box.broker.packages.total
