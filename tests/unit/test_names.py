"""Topic names, and the properties derived from them."""

import pytest

from pulsarbox.names import origin_of, parse_topic


@pytest.mark.parametrize(
    ("topics", "letters", "origin"),
    [
        (["orders"], "orders-billing-DLQ", ("orders", "billing")),
        (["orders", "orders-eu"], "orders-eu-billing-DLQ", ("orders-eu", "billing")),
        (["orders"], "orders-eu-billing-DLQ", ("orders", "eu-billing")),
        (["orders", "orders-billing"], "orders-billing-DLQ", ("orders", "billing")),
        (["orders", "orders-billing-DLQ"], "orders-billing-DLQ", ("orders", "billing")),
        (["orders"], "orders-DLQ", None),
        (["orders"], "orders-billing-RETRY", ("orders", "billing")),
        (["orders"], "-orders-DLQ", None),
        ([], "orders-billing-DLQ", None),
    ],
)
def test_a_dead_letter_topic_is_named_after_an_existing_topic_and_a_subscription(
    topics: list[str], letters: str, origin: tuple[str, str] | None
) -> None:
    existing = {parse_topic(topic) for topic in topics}
    found = origin_of(parse_topic(letters), existing.__contains__)
    assert found == (None if origin is None else (parse_topic(origin[0]), origin[1]))
