"""Shared fixtures for tests of `pulsarbox admin`."""

import pytest

from tests.unit.cli.pulsar_admin.playing import Player


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Player:
    return Player(monkeypatch)
