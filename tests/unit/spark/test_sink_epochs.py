"""The epochs of a sink, asked for again while the box is away; what a refusal means for who runs the query."""

from collections.abc import Callable
from typing import Any

import pytest

from pulsarbox.client.admin import AdminRefused
from pulsarbox.client.errors import NoAnswer, NotConnected
from pulsarbox.spark.connect import connections
from pulsarbox.spark.sink import epoch_client
from pulsarbox.spark.sink.epoch_client import Sink, SinkEpochs, SinkError

SINK = Sink("public/default/s", "query", "run")


class Box:
    """Answers what the test says, one after the other."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []

    def stage_epoch(self, sink: str, epoch: int, body: dict[str, Any]) -> Any:
        return self._next(("stage", sink, epoch, body))

    def commit_epoch(self, sink: str, epoch: int, transactions: list[str], who: dict[str, Any]) -> Any:
        return self._next(("commit", sink, epoch, transactions, who))

    def last_epoch(self, sink: str) -> Any:
        return self._next(("last", sink))

    def _next(self, asked: Any) -> Any:
        self.asked.append(asked)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        pass


def asked(box: Box, seconds: float = 5.0, sink: Sink = SINK) -> SinkEpochs:
    make: Callable[[], Any] = lambda: box  # noqa: E731
    return SinkEpochs(make, sink, seconds)


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epoch_client, "PAUSE_SECONDS", 0.0)


def test_who_writes_is_said() -> None:
    box = Box("0:1", True)
    found = asked(box, sink=SINK._replace(takes_over=True))
    assert found.begin(4, 1000) == "0:1"
    assert found.commit(4, ["0:1"])
    who = {"writer": "query", "run": "run", "takeOver": True}
    assert box.asked == [
        ("stage", "public/default/s", 4, who | {"timeoutMs": 1000}),
        ("commit", "public/default/s", 4, ["0:1"], who),
    ]


def test_a_box_that_is_away_is_asked_again() -> None:
    box = Box(NotConnected("gone"), NoAnswer("slow"), AdminRefused(503, "not ready", "POST"), False)
    assert asked(box).commit(0, []) is False
    assert len(box.asked) == 4


def test_that_a_box_is_waited_for_is_told_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(connections, "_QUIET_SECONDS", 0.0)
    asked(Box(NotConnected("gone"), NotConnected("gone"), True)).commit(0, [])
    assert capsys.readouterr().err == "pulsarbox: gone: retrying for 5 s (pollTimeoutMs)\n"
    monkeypatch.setattr(connections, "_QUIET_SECONDS", 60.0)
    asked(Box(NotConnected("gone"), True)).commit(0, [])
    assert capsys.readouterr().err == ""


def test_a_box_that_stays_away_is_told() -> None:
    with pytest.raises(SinkError, match=r"has not responded for 0 s: gone. Is admin\.url"):
        asked(Box(NotConnected("gone")), seconds=0.0).begin(0, 0)


@pytest.mark.parametrize(
    ("status", "told", "words"),
    [
        (409, "Epoch 3 of sink s is behind its last epoch, 7", "sinkEpoch=reset"),
        (409, "Sink s belongs to writer q, at epoch 7: p is another", "another sinkId; or, .* sinkEpoch=reset"),
        (409, "Run a of sink s is over: run b has begun since", "this one must stop"),
        (409, "Transaction 0:3 is ABORTED: nothing can be added to it", "longer than stageTimeout"),
        (404, "Transaction 0:3 not found: it has ended, or was never begun", "longer than stageTimeout"),
        (404, "HTTP 404 Not Found", "requires the epoch commit of a box.*at-least-once.*dedup"),
        (404, "Namespace not found", "Create it: `pulsarbox admin namespaces create public/default`"),
        (403, "no", "sink public/default/s: no"),
        (409, "Sink s was taken over by q: p can no longer write to it", "Choose another sinkId"),
    ],
)
def test_a_refusal_says_what_to_do(status: int, told: str, words: str) -> None:
    box = Box(AdminRefused(status, told, "POST"))
    with pytest.raises(SinkError, match=words):
        asked(box).begin(3, 0)


def test_a_part_of_a_job_that_is_behind_is_told_as_such() -> None:
    box = Box(AdminRefused(409, "Epoch 3 of sink job-j.parts is behind its last epoch, 7", "POST"))
    with pytest.raises(SinkError, match="The parts of a job are written in order"):
        asked(box, sink=Sink("public/default/job-j.parts", "j.parts", "r")).begin(3, 0)


def test_whether_a_broker_knows_of_epochs_is_asked_without_changing_anything() -> None:
    box = Box(None)
    asked(box).check()
    assert box.asked == [("last", "public/default/s")]
    with pytest.raises(SinkError, match="exactly-once requires the epoch commit of a box"):
        asked(Box(AdminRefused(404, "HTTP 404 Not Found", "GET"))).check()
