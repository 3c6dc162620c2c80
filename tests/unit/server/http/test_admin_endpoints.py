"""The endpoint table is complete, and gives the reason for each unsupported endpoint."""

import re

from pulsarbox.server.http.admin_endpoints import NEVER, endpoints
from tests.tools.generate_endpoints import DOCUMENT, generate


def test_every_row_is_fit() -> None:
    rows = endpoints()
    assert len(rows) > 470
    assert len({(row.method, re.sub(r"{[^}]*}", "{}", row.path)) for row in rows}) == len(rows)
    for row in rows:
        assert row.method in ("GET", "PUT", "POST", "DELETE"), row
        assert re.fullmatch(r"/admin/v[23](/([\w-]+|{\w+}))+", row.path), row
        assert re.fullmatch(r"[a-zA-Z0-9]+", row.operation), row
        assert all(re.fullmatch(r"[\w-]+", each) for each in row.query), row


def test_a_row_that_is_not_served_says_why() -> None:
    for row in endpoints():
        kind, _, word = row.standing.partition(":")
        assert (row.refusal == "") == row.served
        if not row.served:
            assert kind == "never" and word in NEVER, row
            assert row.refusal.startswith(row.operation)


def test_every_reason_has_a_row() -> None:
    assert set(NEVER) == {row.standing.partition(":")[2] for row in endpoints() if not row.served}


def test_the_document_lists_what_is_not_served() -> None:
    text = DOCUMENT.read_text("utf-8")
    assert generate(text) == text, "run `make generate`"
