"""The paths of the WebSocket API."""

import pytest

from pulsarbox.errors import BadRequest, NotFound
from pulsarbox.names import parse_topic
from pulsarbox.server.websocket.endpoint import TOPICS_MAX, SocketEndpoint, parse_endpoint

TOPIC = parse_topic("persistent://public/default/orders")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/ws/v2/producer/persistent/public/default/orders", SocketEndpoint("producer", (TOPIC,))),
        ("/ws/v2/producer/persistent/public/default/orders/more", SocketEndpoint("producer", (TOPIC,))),
        ("/ws/v2/reader/persistent/public/default/orders", SocketEndpoint("reader", (TOPIC,))),
        ("/ws/v2/consumer/persistent/public/default/orders/billing", SocketEndpoint("consumer", (TOPIC,), "billing")),
        ("/ws/v2/consumer/persistent/public/default/orders/a%2Fb", SocketEndpoint("consumer", (TOPIC,), "a/b")),
        (
            "/ws/v2/reader/non-persistent/t/n/a+b",
            SocketEndpoint("reader", (parse_topic("non-persistent://t/n/a b"),)),
        ),
    ],
)
def test_a_path_names_a_topic(path: str, expected: SocketEndpoint) -> None:
    assert parse_endpoint(path, {}) == expected


def test_a_consumer_of_several_topics() -> None:
    found = parse_endpoint("/ws/v3/consumer/billing", {"topics": "orders,persistent://t/n/a,orders"})
    assert found == SocketEndpoint("consumer", (TOPIC, parse_topic("persistent://t/n/a")), "billing")


def test_a_consumer_of_a_pattern() -> None:
    found = parse_endpoint("/ws/v3/consumer/billing", {"topicsPattern": "persistent://t/n/.*"})
    assert found == SocketEndpoint("consumer", (), "billing", "persistent://t/n/.*")


@pytest.mark.parametrize("path", ["/ws/", "/ws/v2", "/ws/v2/pingpong", "/ws/v3/producer/x", "/ws/producer/persistent"])
def test_other_paths_do_not_exist(path: str) -> None:
    with pytest.raises(NotFound):
        parse_endpoint(path, {})


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/ws/v2/producer/persistent/public/default", {}),
        ("/ws/v2/producer/persistent/public/default/", {}),
        ("/ws/v2/producer/other/public/default/orders", {}),
        ("/ws/v2/producer/persistent/pub%20lic/default/orders", {}),
        ("/ws/v2/producer/persistent/public/default/a%2Fb", {}),
        ("/ws/v2/consumer/persistent/public/default/orders", {}),
        ("/ws/v2/consumer/persistent/public/default/orders/", {}),
        ("/ws/v2/consumer/persistent/public/default/orders/s/more", {}),
        ("/ws/v3/consumer/s", {}),
        ("/ws/v3/consumer/", {"topics": "a"}),
        ("/ws/v3/consumer/s", {"topics": "a", "topicsPattern": "b"}),
        ("/ws/v3/consumer/s", {"topics": ""}),
        ("/ws/v3/consumer/s", {"topics": ",".join(["a"] * (TOPICS_MAX + 1))}),
        ("/ws/v2/producer/persistent/public/default/%zz", {}),
    ],
)
def test_invalid_paths_are_refused(path: str, query: dict[str, str]) -> None:
    with pytest.raises(BadRequest):
        parse_endpoint(path, query)
