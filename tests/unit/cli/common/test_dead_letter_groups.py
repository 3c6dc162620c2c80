"""Groups of dead letters: a table by reason, and with the shapes of each; all groups in the other formats."""

from typing import Any

import pytest

from pulsarbox.cli.common.dead_letter_groups import COLUMNS, groups_output
from pulsarbox.cli.common.output import FORMS, OutputOptions


def group(fingerprint: str, count: int, reason: str, shape: str, **more: Any) -> dict[str, Any]:
    own = {"fingerprint": fingerprint, "count": count, "reason": reason, "shape": shape}
    topics = {"origin": "persistent://public/default/orders", "sampleTopic": "persistent://acme/shop/orders-DLQ"}
    return own | topics | {"subscription": "billing", "first": 1, "last": 2, "sample": "3:4:-1:-1"} | more


GROUPS = [group("a", 5, "timeout", "text"), group("b", 4, "refused", "text"), group("c", 1, "timeout", "binary")]


def as_form(form: str) -> OutputOptions:
    return OutputOptions(form, None, None)


def shown(form: str) -> list[tuple[int, str, str, str]]:
    rows = groups_output(GROUPS, as_form(form)).rows
    return [(row["count"], row["reason"], row["shape"], row["fingerprint"]) for row in rows]


def test_a_reason_is_one_row_with_the_sum_of_its_shapes() -> None:
    assert shown("table") == [(6, "timeout", "2 shapes", ""), (4, "refused", "text", "b")]


def test_a_wide_table_has_the_shapes_below_their_reason() -> None:
    assert shown("wide") == [
        (6, "timeout", "2 shapes", ""),
        (5, "└ of these", "text", "a"),
        (1, "└ of these", "binary", "c"),
        (4, "refused", "text", "b"),
    ]


@pytest.mark.parametrize("form", sorted(set(FORMS) - {"table", "wide"}))
def test_other_formats_have_the_groups(form: str) -> None:
    assert shown(form) == [(each["count"], each["reason"], each["shape"], each["fingerprint"]) for each in GROUPS]


def test_topics_have_their_short_names() -> None:
    for form in ("table", "json"):
        row = groups_output([group("a", 5, "timeout", "text"), group("d", 1, "timeout", "none")], as_form(form)).rows[0]
        assert (row["origin"], row["sampleTopic"]) == ("orders", "acme/shop/orders-DLQ")
    assert groups_output([group("d", 1, "timeout", "none", origin=None)], as_form("csv")).rows[0]["origin"] == ""


def test_a_row_of_a_triage_has_the_returned_messages_of_all_shapes() -> None:
    letters = [
        group("a", 5, "timeout", "text", returned=1, replays=4),
        group("c", 3, "timeout", "binary", returned=2, replays=1),
    ]
    found = groups_output(letters, as_form("table"), ("count", "returned"))
    assert [(row["count"], row["returned"], row["replays"]) for row in found.rows] == [(8, 3, 4)]
    assert (found.columns, groups_output(letters, as_form("table")).columns) == (("count", "returned"), COLUMNS)
