"""Read-only requests hide messages of open transactions, all messages after them, and aborted messages."""

from base64 import b64decode
from collections.abc import Awaitable, Callable
from typing import Any

from pulsarbox.broker.topic import message_browser
from pulsarbox.protocol.commands import encode_payload_frame
from pulsarbox.protocol.metadata import encode_entry
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandSend, MessageMetadata
from tests.unit.broker.core_driver import START
from tests.unit.server.http.clients import Client
from tests.unit.server.http.harness import HttpBox, running_box

T = "persistent://public/default/t"
PATH = "/persistent/public/default/t"
BROWSE = "/pulsarbox/v1/browse/public/default/t"
MAP = "/pulsarbox/v1/maps/cursor/public/default/t/s?buckets=1000"
COMMIT, ABORT = 0, 1


class Scene:
    """A topic with ordinary and transactional messages."""

    def __init__(self, box: HttpBox) -> None:
        self.box = box
        self.client = Client(box)
        self.client.subscribe(T)
        self.producer = self.client.producer(T)
        self.sent = 0

    def plain(self) -> None:
        self.client.send(self.producer, self.sent, b"m%d" % self.sent)
        self.sent += 1

    def begin(self) -> int:
        self.client.ask("newTxn", request_id=500 + self.sent, txn_ttl_seconds=60_000, tc_id=0)
        return self.box.broker.transactions.last_id

    def send(self, txn: int) -> None:
        bits: dict[str, Any] = {"txnid_least_bits": txn, "txnid_most_bits": 0}
        send = CommandSend(producer_id=self.producer, sequence_id=self.sent, num_messages=1, **bits)
        metadata = MessageMetadata(producer_name="p", sequence_id=self.sent, publish_time=START, **bits)
        payload = encode_entry(metadata, b"m%d" % self.sent)
        self.client.raw(encode_payload_frame(BaseCommand(type=BaseCommand.SEND, send=send), payload))
        self.sent += 1

    def end(self, txn: int, action: int) -> None:
        self.client.ask(
            "endTxn", request_id=900 + self.sent, txnid_least_bits=txn, txnid_most_bits=0, txn_action=action
        )

    def lay_out(self) -> int:
        """Publish m0, m1 and m2 (aborted), m3 and m4 (open transaction), and m5. Return the open transaction."""
        self.plain()
        gone = self.begin()
        self.send(gone)
        self.send(gone)
        self.end(gone, ABORT)
        self.plain()
        opened = self.begin()
        self.send(opened)
        self.plain()
        return opened


async def browsed(box: HttpBox, **query: Any) -> list[str]:
    asked = "&".join(f"{name.removesuffix('_')}={value}" for name, value in query.items())
    got = await box.ask("GET", f"{BROWSE}?{asked}")
    assert got.status == 200, got.text
    return sorted(b64decode(each["payload"]).decode() for each in got.value["messages"])


async def examined(box: HttpBox) -> list[str]:
    """Return every message reachable by examining from either end."""
    found = set()
    for side in ("earliest", "latest"):
        for number in range(1, 9):
            found.add((await box.get(f"{PATH}/examinemessage?initialPosition={side}&messagePosition={number}")).text)
    return sorted(found)


async def peeked(box: HttpBox) -> list[str]:
    answers = [await box.get(f"{PATH}/subscription/s/position/{number}") for number in range(1, 9)]
    return [each.text for each in answers if each.status == 200]


async def last(box: HttpBox) -> str:
    found = (await box.get(f"{PATH}/lastMessageId")).value
    return str((await box.get(f"{PATH}/ledger/{found['ledgerId']}/entry/{found['entryId']}")).text)


async def mapped(box: HttpBox) -> list[str]:
    """Return the messages that the subscription map reports as waiting; entry n is message n here."""
    found = await box.ask("GET", MAP)
    return [f"m{each['first'].partition(':')[2]}" for each in found.value["buckets"] if each["waiting"]]


async def backwards(box: HttpBox) -> list[str]:
    return await browsed(box, from_="latest", direction="backward")


async def analyzed(box: HttpBox) -> list[str]:
    found = (await box.ask("POST", f"/admin/v2{PATH}/subscription/s/analyzeBacklog")).value
    return [str(found["entries"])]


async def check(box: HttpBox, *seen: str) -> None:
    looks: list[Callable[[HttpBox], Awaitable[list[str]]]] = [browsed, backwards, examined, peeked, mapped]
    for look in looks:
        assert await look(box) == list(seen), look.__name__
    assert await last(box) == seen[-1]
    assert await analyzed(box) == [str(len(seen))]


async def test_nothing_half_visible(box: HttpBox) -> None:
    scene = Scene(box)
    opened = scene.lay_out()
    await check(box, "m0", "m3")
    scene.end(opened, COMMIT)
    await check(box, "m0", "m3", "m4", "m5")


async def test_after_an_abort_it_is_as_if_it_had_never_been_sent(box: HttpBox) -> None:
    scene = Scene(box)
    scene.end(scene.lay_out(), ABORT)
    await check(box, "m0", "m3", "m5")


async def test_a_topic_with_nothing_but_an_open_transaction_shows_nothing(box: HttpBox) -> None:
    scene = Scene(box)
    txn = scene.begin()
    scene.send(txn)
    for _ in range(2):
        assert (await browsed(box), await backwards(box), await peeked(box), await mapped(box)) == ([], [], [], [])
        assert (await box.get(f"{PATH}/examinemessage")).status == 412
        assert (await box.get(f"{PATH}/lastMessageId")).value["entryId"] == -1
        scene.end(txn, ABORT)


async def test_pages_pass_by_more_aborted_entries_than_one_read_takes(monkeypatch: Any) -> None:
    monkeypatch.setattr(message_browser, "READ_ENTRIES", 3)
    async with running_box() as box:
        scene = Scene(box)
        scene.plain()
        gone = scene.begin()
        for _ in range(10):
            scene.send(gone)
        scene.end(gone, ABORT)
        scene.plain()
        assert await browsed(box) == ["m0", "m11"] == await backwards(box)


async def test_an_entry_that_is_asked_for_by_its_id_is_marked(box: HttpBox) -> None:
    scene = Scene(box)
    opened = scene.lay_out()
    ledger = (await box.get(f"{PATH}/lastMessageId")).value["ledgerId"]

    async def marks(entry: int) -> tuple[str | None, str | None]:
        headers = (await box.get(f"{PATH}/ledger/{ledger}/entry/{entry}")).headers
        return headers.get("X-Pulsar-txn-uncommitted"), headers.get("X-Pulsar-txn-aborted")

    assert [await marks(entry) for entry in (0, 1, 4, 5)] == [
        ("false", None), ("false", "true"), ("true", "false"), ("false", None),
    ]  # fmt: skip
    scene.end(opened, COMMIT)
    assert await marks(4) == ("false", "false")
