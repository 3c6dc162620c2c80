"""Queries that --follow accepts."""

import pytest

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.sql.following import check_rows_only


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM orders",
        'SELECT upper(item) AS i, total * 2 FROM "t/n/orders" o WHERE total > 3 AND list_sum([1, 2]) = 3',
        "FROM orders",
    ],
)
def test_rows_of_one_topic_can_be_followed(query: str) -> None:
    check_rows_only(query)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT count(*) FROM orders", "count_star"),
        ("SELECT max(total) + 1 FROM orders", "max"),
        ("SELECT item FROM orders GROUP BY item", "GROUP BY"),
        ("SELECT item, sum(total) FROM orders GROUP BY ALL", "GROUP BY"),
        ("SELECT * FROM orders ORDER BY item", "ORDER BY"),
        ("SELECT * FROM orders LIMIT 3", "LIMIT"),
        ("SELECT DISTINCT item FROM orders", "DISTINCT"),
        ("SELECT row_number() OVER () FROM orders", "window"),
        ("SELECT * FROM orders JOIN bills USING (id)", "one topic"),
        ("SELECT * FROM orders WHERE id IN (SELECT id FROM bills)", "subquery"),
        ("SELECT * FROM (SELECT * FROM orders)", "one topic"),
        ("WITH x AS (FROM orders) FROM x", "WITH"),
        ("SELECT 1", "one topic"),
        ("FROM a UNION ALL FROM b", "one topic"),
        ("EXPLAIN FROM orders", "one topic"),
    ],
)
def test_a_query_over_all_rows_is_refused_with_the_reason(query: str, reason: str) -> None:
    with pytest.raises(Misused, match="--follow cannot run this query") as raised:
        check_rows_only(query)
    assert reason in raised.value.message
