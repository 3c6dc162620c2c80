"""Changes of data directories become events and lines of the log."""

import logging

import pytest

from pulsarbox.server.recording.ensemble_watcher import EnsembleWatcher
from pulsarbox.storage.ensemble.status import MemberEvent
from pulsarbox.storage.ensemble.watch import WatchedEnsemble
from tests.unit.server.http.harness import HttpBox
from tests.unit.storage.ensemble.fake import LOST, FakeEnsemble, status


async def test_changes_are_reported_and_logged(box: HttpBox, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    fake = FakeEnsemble(LOST)
    watcher = EnsembleWatcher(box.shell, WatchedEnsemble(fake))
    fake.on_change(MemberEvent("member-lost", "/disk2", "input/output error"))
    fake.on_change(MemberEvent("segment", "", "segment 5"))
    watcher.start()
    found = box.broker.events.after(0, 100)[-2:]
    assert [(each.kind, each.subject, each.severity) for each in found] == [
        ("member-lost", "/disk2", "error"),
        ("under-replicated", "", "warning"),
    ]
    assert ("ERROR", "/disk2: input/output error") in [(each.levelname, each.message) for each in caplog.records]
    fake.now = status()
    watcher.stop()
    assert box.broker.events.after(0, 100)[-1].kind == "copies-restored"
