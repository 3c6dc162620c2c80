"""Status reports of a runner to the box, and brokers that receive none."""

import threading
from typing import Any

import pytest

from pulsarbox.client.admin import AdminRefused
from pulsarbox.client.errors import NotConnected
from pulsarbox.errors import AuthenticationError
from pulsarbox.spark.pipelines import status_report
from pulsarbox.spark.pipelines.status_report import Reporter


class Told:
    """Substitute for the Admin API; ``answers`` lists the exception to raise, if any, for each call."""

    def __init__(self, *answers: Exception | None) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.names: list[str] = []
        self.told = threading.Semaphore(0)
        self.closed = False
        self._answers = list(answers)

    def report_pipeline(self, name: str, body: dict[str, Any]) -> None:
        self.names.append(name)
        self.bodies.append(body)
        self.told.release()
        answer = self._answers.pop(0) if self._answers else None
        if answer is not None:
            raise answer

    def close(self) -> None:
        self.closed = True


def reporter(admin: Told, states: list[str], said: list[str] | None = None) -> Reporter:
    say = [].append if said is None else said.append
    return Reporter(admin, "shop", "local[2]", lambda: [{"state": states[0]}], say)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_report, "EVERY_SECONDS", 0.01)


def test_it_tells_again_and_again_and_how_it_ended() -> None:
    admin, states = Told(NotConnected("away"), AdminRefused(503, "not yet", "PUT")), ["running"]
    with reporter(admin, states):
        for _ in range(4):
            assert admin.told.acquire(timeout=60)
        states[0] = "stopped"
    assert [each["queries"][0]["state"] for each in admin.bodies[:4]] == ["running"] * 4
    assert admin.bodies[-1]["queries"] == [{"state": "stopped"}]
    assert set(admin.names) == {"shop"}
    assert set(admin.bodies[0]) == {"master", "host", "pid", "startedAt", "ui", "queries"}
    assert admin.closed


@pytest.mark.parametrize(
    "refusal", [AdminRefused(401, "expired", "PUT"), AdminRefused(403, "no", "PUT"), AuthenticationError("no")]
)
def test_who_is_refused_says_so_once_and_tells_again_when_it_may(
    refusal: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_report, "REFUSED_SECONDS", 0.01)
    monkeypatch.setattr(status_report, "EVERY_SECONDS", 600.0)  # the test ends before the next regular report
    admin, said = Told(refusal, refusal, None, refusal), list[str]()
    with reporter(admin, ["running"], said):
        for _ in range(3):
            assert admin.told.acquire(timeout=60)
    assert len(admin.bodies) == 4
    assert [str(refusal) in each for each in said] == [True, True], "it was told in between"


@pytest.mark.parametrize("status", [404, 405])
def test_who_does_not_listen_is_let_be(status: int) -> None:
    admin = Told(AdminRefused(status, "no", "PUT"))
    with reporter(admin, ["running"]) as told:
        told._thread.join(60)
        assert not told._thread.is_alive()
    assert len(admin.bodies) == 1
