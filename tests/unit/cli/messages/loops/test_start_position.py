"""The position of a subscription, from the Admin API."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from pulsarbox.cli.common.exits import Denied, Failed, Misused, NotThere, Unreachable
from pulsarbox.cli.common.position_options import From
from pulsarbox.cli.connect.target import Target
from pulsarbox.cli.messages.loops.start_position import check_place, place_of
from pulsarbox.client.places import EARLIEST, MessageId, Start

ANSWERS: dict[str, tuple[int, Any]] = {
    "/admin/v2/persistent/public/default/orders/internalStats": (200, {"cursors": {
        "s": {"markDeletePosition": "3:7", "individuallyDeletedMessages": "[(3:9..3:11],(4:-1..4:2]]"},
        "new": {"markDeletePosition": "3:-1", "individuallyDeletedMessages": "[]"},
    }}),
    "/admin/v2/persistent/public/default/batched/internalStats": (200, {"cursors": {
        "s": {"markDeletePosition": "3:-1"},
    }}),
    "/pulsarbox/v1/places/public/default/batched?subscription=s&after=-1%3A-1": (200, {
        "batches": [{"ledger": 3, "entry": 0, "left": "2"}], "redelivered": [{"ledger": 3, "entry": 1, "count": 4}],
    }),
    "/admin/v2/persistent/public/default/a%20b/internalStats": (200, {"cursors": {}}),
    "/admin/v2/persistent/public/default/secret/internalStats": (403, {"reason": "not yours"}),
    "/admin/v2/persistent/public/default/strange/internalStats": (200, []),
}  # fmt: skip

requested: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:  # name from http.server
        requested.append(self.path)
        status, document = ANSWERS.get(self.path, (404, {"reason": "Topic not found"}))
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: Any) -> None:
        """Discard log messages."""


@pytest.fixture(scope="module")
def admin() -> Iterator[Target]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        port = server.server_address[1]
        yield Target(f"http://127.0.0.1:{port}", "--admin-url", (("127.0.0.1", 1), ("127.0.0.1", port)))
        server.shutdown()
        thread.join()


def test_what_a_subscription_has_not_acknowledged(admin: Target) -> None:
    place = place_of(admin, "orders", "s")
    assert place.mark == MessageId(3, 7)
    told = [(3, 7), (3, 8), (3, 9), (3, 10), (3, 11), (3, 12), (4, 0), (4, 2), (4, 3), (2, 99)]
    assert [place.is_open(MessageId(*each)) for each in told] == [
        False, True, True, False, False, True, False, False, True, False,
    ]  # fmt: skip
    assert place_of(admin, "orders", "new").is_open(MessageId(3, 0, 5))


def test_a_request_returns_partially_acknowledged_batches_and_the_first_counts(admin: Target) -> None:
    requested.clear()
    place = place_of(admin, "batched", "s")
    messages = [MessageId(3, 0, batch_index=0), MessageId(3, 0, batch_index=1), MessageId(3, 1)]
    assert [(place.is_open(each), place.redeliveries(each)) for each in messages] == [(False, 0), (True, 0), (True, 4)]
    assert len(requested) == 2, requested


def test_what_cannot_be_told(admin: Target) -> None:
    with pytest.raises(NotThere, match="no subscription 'other' on orders; existing subscriptions: new, s"):
        place_of(admin, "orders", "other")
    with pytest.raises(NotThere, match="existing subscriptions: none"):
        place_of(admin, "a b", "s")
    with pytest.raises(NotThere, match="Topic not found"):
        place_of(admin, "missing", "s")
    with pytest.raises(Denied, match="not yours"):
        place_of(admin, "secret", "s")
    with pytest.raises(Failed, match="the response is not topic statistics"):
        place_of(admin, "strange", "s")
    with pytest.raises(Misused, match="is not persistent"):
        place_of(admin, "non-persistent://public/default/x", "s")


def test_nobody_answers() -> None:
    with pytest.raises(Unreachable, match=r"cannot connect to http://a:1 \(--admin-url\)"):
        place_of(Target("http://a:1", "--admin-url", (("127.0.0.1", 1),)), "orders", "s")


def test_an_id_is_of_one_topic() -> None:
    check_place(From(Start(MessageId(1, 2))), 1)
    check_place(From(Start(EARLIEST, 5)), 2)
    with pytest.raises(Misused, match="requires a single topic"):
        check_place(From(Start(MessageId(1, 2))), 2)
