"""Publishing by a task: in chunks, in consecutive transactions, and again after an interruption of the box."""

from typing import Any

import pytest

from pulsarbox.client.errors import NotConnected
from pulsarbox.client.partition_producer import Options
from pulsarbox.errors import InvalidTxnStatus, NotAllowed, PulsarBoxError
from pulsarbox.protocol.message_encoder import Outgoing
from pulsarbox.spark.sink import staging
from pulsarbox.spark.sink.epoch_client import SinkError
from pulsarbox.spark.sink.staging import Messages, Plain, Staging


class FakeBroker:
    """Broker for tasks that stores rows by transaction and fails as scripted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows: dict[str, list[Any]] = {}
        self.begun = 0
        self.aborted: list[str] = []
        self.published_before = False
        self.fail_at: list[tuple[str, PulsarBoxError]] = []
        """Scheduled failures: at ``service``, ``send``, ``settle`` or ``abort``."""
        self.connections = 0
        monkeypatch.setattr(staging, "_Sending", self.sending)
        monkeypatch.setattr(staging, "PAUSE_SECONDS", 0.0)

    def sending(self, client: object, options: object, subscription: str = "") -> "Sending":
        return Sending(self)

    def begin(self, epoch: int, timeout_ms: int) -> str | None:
        if self.published_before:
            return None
        self.begun += 1
        self.rows[f"0:{self.begun}"] = []
        return f"0:{self.begun}"

    def connected(self) -> "FakeBroker":
        self.connections += 1
        return self

    def service(self) -> None:
        self.failing("service")

    def close(self) -> None:
        self.connections -= 1

    def failing(self, where: str) -> None:
        if self.fail_at and self.fail_at[0][0] == where:
            raise self.fail_at.pop(0)[1]

    def staging(self, seconds: float = 5.0) -> Staging:
        epochs: Any = Asked(self)
        return Staging(self.connected, epochs, 3, 0, lambda topic: Options(), seconds)  # type: ignore[arg-type]


class Asked:
    """Box that records requests about epochs."""

    def __init__(self, box: FakeBroker) -> None:
        self.begin = box.begin

    def close(self) -> None:
        pass


class Sending:
    """One connection with its current transaction."""

    def __init__(self, box: FakeBroker) -> None:
        self.box, self.client = box, box
        self.id = ""
        self.failed: PulsarBoxError | None = None

    def enter(self, txn_id: str) -> "Sending":
        self.id, self.failed = txn_id, None
        return self

    def send(self, topic: str, messages: Messages) -> None:
        self.box.failing("send")
        self.box.rows[self.id] += messages

    def settle(self) -> None:
        self.box.failing("settle")

    def abort(self) -> None:
        self.box.aborted.append(self.id)
        self.box.failing("abort")


@pytest.fixture
def box(monkeypatch: pytest.MonkeyPatch) -> FakeBroker:
    return FakeBroker(monkeypatch)


def test_a_task_stages_in_one_transaction(box: FakeBroker) -> None:
    task = box.staging()
    task.put("t", [b"a", b"b"])
    task.put("t", [Outgoing(b"c")])
    assert task.finish() == ["0:1"]
    assert box.rows == {"0:1": [b"a", b"b", Outgoing(b"c")]}


def test_a_task_without_rows_begins_nothing(box: FakeBroker) -> None:
    task = box.staging()
    task.put("t", [])
    assert (task.finish(), box.begun, box.connections) == ([], 0, 0)


def test_an_epoch_that_was_published_is_not_staged(box: FakeBroker) -> None:
    box.published_before = True
    task = box.staging()
    task.put("t", [b"a"])
    task.put("t", [b"b"])
    assert (task.finish(), task.known) == ([], True)


def test_what_is_kept_is_bounded(box: FakeBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "BYTES_MAX", 100)
    task = box.staging()
    for _ in range(10):
        task.put("t", [b"x" * 30])
    assert task.finish() == ["0:1", "0:2", "0:3"]
    assert [len(rows) for rows in box.rows.values()] == [4, 4, 2]
    monkeypatch.setattr(staging, "ROWS_MAX", 2)
    task = box.staging()
    task.put("t", [b"x"])
    task.put("t", [b"x"])
    assert task.finish() == ["0:4"]


@pytest.mark.parametrize("where", ["send", "settle"])
def test_what_was_on_its_way_is_staged_again_in_another_transaction(box: FakeBroker, where: str) -> None:
    """The broker may or may not have received the messages in flight."""
    task = box.staging()
    task.put("t", [b"a"])
    box.fail_at.append((where, NotConnected("gone")))
    task.put("u", [b"b"])
    assert task.finish() == ["0:2"]
    assert box.rows["0:2"] == [b"a", b"b"]


def test_only_what_is_not_settled_is_sent_again(box: FakeBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "ROWS_MAX", 1)
    task = box.staging()
    task.put("t", [b"a"])
    box.fail_at += [("send", NotConnected("gone")), ("send", NotConnected("gone")), ("settle", NotConnected("gone"))]
    task.put("t", [b"b"])
    staged = task.finish()
    assert [box.rows[each] for each in staged] == [[b"a"], [b"b"]]


def test_an_epoch_that_was_published_meanwhile_is_not_staged_again(box: FakeBroker) -> None:
    task = box.staging()
    task.put("t", [b"a"])
    box.published_before = True
    box.fail_at.append(("settle", NotConnected("gone")))
    assert (task.finish(), task.known) == ([], True)


def test_a_box_is_waited_for_only_so_long(box: FakeBroker) -> None:
    task = box.staging(seconds=0.0)
    box.fail_at.append(("send", NotConnected("the box is gone")))
    with pytest.raises(SinkError, match="the box is gone"):
        task.put("t", [b"a"])
    task.abort()
    task.close()
    assert (box.aborted, box.connections) == (["0:1"], 0)


def test_a_broker_that_cannot_be_reached_takes_no_transaction(box: FakeBroker) -> None:
    box.fail_at += [("service", NotConnected("nobody is there"))] * 5
    task = box.staging()
    task.put("t", [b"a"])
    assert (task.finish(), box.begun) == (["0:1"], 1)


def test_what_is_to_be_aborted_waits_for_a_broker_once(box: FakeBroker) -> None:
    box.fail_at += [("abort", NotAllowed("it has ended")), ("abort", NotConnected("nobody is there"))]
    staging.abort(box.connected, ["0:1", "0:2", "0:3"])  # type: ignore[arg-type]
    assert (box.aborted, box.connections) == (["0:1", "0:2"], 0)
    box.fail_at.append(("service", NotConnected("nobody is there")))
    staging.abort(box.connected, ["0:1"])  # type: ignore[arg-type]
    assert (box.aborted, box.connections) == (["0:1", "0:2"], 0)


def test_what_is_refused_is_not_tried_again(box: FakeBroker) -> None:
    task = box.staging()
    box.fail_at.append(("send", InvalidTxnStatus("Transaction 0:1 is ABORTED: nothing can be added to it")))
    with pytest.raises(SinkError, match="longer than stageTimeout"):
        task.put("t", [b"a"])
    assert box.begun == 1


def test_what_is_large_goes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "_PIECE_BYTES", 5)
    found = list(staging._pieces([b"12", b"34", b"567890", b"1"]))
    assert found == [[b"12", b"34"], [b"567890"], [b"1"]]


def test_what_a_client_refuses_is_told_in_words(box: FakeBroker) -> None:
    class Gone:
        def service(self) -> None:
            raise NotConnected("nobody is there")

        def close(self) -> None:
            pass

    plain = Plain(Gone, lambda topic: Options(), 0.0)  # type: ignore[arg-type]
    with pytest.raises(SinkError, match="nobody is there"):
        plain.put("t", [b"a"])
    plain.close()
