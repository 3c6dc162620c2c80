"""Warnings about changes without effect."""

import logging

import pytest

from pulsarbox.errors import WARNING_HEADER
from pulsarbox.server.http.framework.request import HttpResponse
from pulsarbox.server.http.framework.stored_only import stored_only


def test_every_answer_has_the_warning_and_the_log_has_it_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        first = stored_only("test domains", "there is one broker")
        second = stored_only("test domains", "there is one broker", HttpResponse(200, b"{}", headers={"ETag": "1"}))
    assert first.headers == {WARNING_HEADER: "test domains: stored, without effect: there is one broker"}
    assert (first.status, second.status, second.body) == (204, 200, b"{}")
    assert second.headers == {"ETag": "1", **first.headers}
    assert [record.getMessage() for record in caplog.records] == [first.headers[WARNING_HEADER]]
