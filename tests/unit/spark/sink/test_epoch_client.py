"""Epochs of a sink: retries while the box is unavailable, and the meaning of refusals for the user."""

from collections.abc import Callable
from typing import Any

import pytest

from pulsarbox.client.admin import AdminRefused
from pulsarbox.client.errors import NoAnswer, NotConnected
from pulsarbox.spark.connect import connections
from pulsarbox.spark.sink import epoch_client
from pulsarbox.spark.sink.epoch_client import Sink, SinkEpochs, SinkError

SINK = Sink("public/default/s", "query", "run")


class ScriptedAnswers:
    """Scripted responses, in order."""

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


def asked(box: ScriptedAnswers, seconds: float = 5.0, sink: Sink = SINK) -> SinkEpochs:
    make: Callable[[], Any] = lambda: box  # noqa: E731
    return SinkEpochs(make, sink, seconds)


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epoch_client, "PAUSE_SECONDS", 0.0)


def test_who_writes_is_said() -> None:
    box = ScriptedAnswers("0:1", True)
    found = asked(box, sink=SINK._replace(takes_over=True))
    assert found.begin(4, 1000) == "0:1"
    assert found.commit(4, ["0:1"])
    who = {"writer": "query", "run": "run", "takeOver": True}
    assert box.asked == [
        ("stage", "public/default/s", 4, who | {"timeoutMs": 1000}),
        ("commit", "public/default/s", 4, ["0:1"], who),
    ]


def test_a_box_that_is_away_is_asked_again() -> None:
    box = ScriptedAnswers(NotConnected("gone"), NoAnswer("slow"), AdminRefused(503, "not ready", "POST"), False)
    assert asked(box).commit(0, []) is False
    assert len(box.asked) == 4


def test_that_a_box_is_waited_for_is_told_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(connections, "_QUIET_SECONDS", 0.0)
    asked(ScriptedAnswers(NotConnected("gone"), NotConnected("gone"), True)).commit(0, [])
    assert capsys.readouterr().err == "pulsarbox: gone: retrying for 5 s (pollTimeoutMs)\n"
    monkeypatch.setattr(connections, "_QUIET_SECONDS", 60.0)
    asked(ScriptedAnswers(NotConnected("gone"), True)).commit(0, [])
    assert capsys.readouterr().err == ""


def test_a_box_that_stays_away_is_told() -> None:
    with pytest.raises(SinkError, match=r"has not responded for 0 s: gone. Is admin\.url"):
        asked(ScriptedAnswers(NotConnected("gone")), seconds=0.0).begin(0, 0)


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (409, "EpochBehind", "sinkEpoch=reset"),
        (409, "SinkOfAnotherWriter", "another sinkId; or, .* sinkEpoch=reset"),
        (409, "RunReplaced", "this one must stop"),
        (409, "InvalidTxnStatus", "longer than stageTimeout"),
        (404, "TransactionNotFound", "longer than stageTimeout"),
        (404, "", "requires the epoch commit of a box.*at-least-once"),
        (404, "NamespaceNotFound", "Create it: `pulsarbox admin namespaces create public/default`"),
        (403, "", "sink public/default/s: no"),
        (409, "SinkTakenOver", "Choose another sinkId"),
        (405, "TransactionTimeoutTooLong", "Lower stageTimeout"),
        (405, "TransactionsDisabled", "Enable transactionCoordinatorEnabled"),
    ],
)
def test_a_refusal_says_what_to_do(status: int, code: str, words: str) -> None:
    box = ScriptedAnswers(AdminRefused(status, "no", "POST", code))
    with pytest.raises(SinkError, match=words) as caught:
        asked(box).begin(3, 0)
    assert caught.value.code == code


def test_a_part_of_a_job_that_is_behind_is_told_as_such() -> None:
    box = ScriptedAnswers(
        AdminRefused(409, "Epoch 3 of sink job-j.parts is behind its last epoch, 7", "POST", "EpochBehind")
    )
    with pytest.raises(SinkError, match="The parts of a job are written in order"):
        asked(box, sink=Sink("public/default/job-j.parts", "j.parts", "r")).begin(3, 0)


def test_whether_a_broker_knows_of_epochs_is_asked_without_changing_anything() -> None:
    box = ScriptedAnswers(None)
    asked(box).check()
    assert box.asked == [("last", "public/default/s")]
    with pytest.raises(SinkError, match="exactly-once requires the epoch commit of a box"):
        asked(ScriptedAnswers(AdminRefused(404, "HTTP 404 Not Found", "GET"))).check()
