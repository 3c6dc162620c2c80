"""Groups of dead letters as a table: by reason, and with the shapes of each."""

from typing import Any

from pulsarbox.cli.commands.dead_letters.dlq import folded


def group(fingerprint: str, count: int, reason: str, shape: str) -> dict[str, Any]:
    own = {"fingerprint": fingerprint, "count": count, "reason": reason, "shape": shape}
    return own | {"origin": "orders", "subscription": "billing", "first": 1, "last": 2, "sample": "3:4:-1:-1"}


GROUPS = [group("a", 5, "timeout", "text"), group("b", 4, "refused", "text"), group("c", 1, "timeout", "binary")]


def shown(*, with_shapes: bool) -> list[tuple[int, str, str, str]]:
    rows = folded(GROUPS, with_shapes=with_shapes)
    return [(row["count"], row["reason"], row["shape"], row["fingerprint"]) for row in rows]


def test_a_reason_is_one_row_with_the_sum_of_its_shapes() -> None:
    assert shown(with_shapes=False) == [(6, "timeout", "2 shapes", ""), (4, "refused", "text", "b")]


def test_a_wide_table_has_the_shapes_below_their_reason() -> None:
    assert shown(with_shapes=True) == [
        (6, "timeout", "2 shapes", ""),
        (5, "└ of these", "text", "a"),
        (1, "└ of these", "binary", "c"),
        (4, "refused", "text", "b"),
    ]
