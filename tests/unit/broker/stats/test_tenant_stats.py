"""Numbers and series of a tenant, maintained while a client requests them."""

import math

from pulsarbox.broker.stats.tenant_stats import KEPT_SECONDS, SCOPES_MAX, WATCHED_SECONDS, Scopes
from pulsarbox.broker.stats.topic_totals import Totals
from pulsarbox.clock import Now


def test_a_series_has_what_was_there_while_somebody_watched() -> None:
    scopes = Scopes()
    part = scopes.watched("shop/", Now(0.0, 0))
    scopes.tick(Now(1.0, 0))
    part.totals, part.passes = Totals(backlog=7, publish_rate=2.5), 1
    scopes.tick(Now(2.0, 0))
    scopes.tick(Now(WATCHED_SECONDS + 1, 0))
    assert scopes.watched("shop/", Now(WATCHED_SECONDS + 2, 0)) is part
    scopes.tick(Now(WATCHED_SECONDS + 3, 0))
    assert part.series.values() == {
        "publishRate": [None, 2.5, None, 2.5],
        "deliverRate": [None, 0.0, None, 0.0],
        "backlog": [None, 7.0, None, 7.0],
    }
    assert not any(math.isnan(value or 0) for value in part.series.values()["backlog"])


def test_what_nobody_watches_any_more_is_let_go() -> None:
    scopes = Scopes()
    part = scopes.watched("shop/", Now(0.0, 0))
    scopes.tick(Now(KEPT_SECONDS, 0))
    assert scopes.watched("shop/", Now(KEPT_SECONDS, 0)) is part
    scopes.tick(Now(2 * KEPT_SECONDS + 1, 0))
    assert scopes.watched("shop/", Now(2 * KEPT_SECONDS + 1, 0)) is not part


def test_no_more_than_some_are_kept() -> None:
    scopes = Scopes()
    first = scopes.watched("0/", Now(0.0, 0))
    second = scopes.watched("1/", Now(0.0, 0))
    for number in range(2, SCOPES_MAX):
        scopes.watched(f"{number}/", Now(0.0, 0))
    assert scopes.watched("0/", Now(1.0, 0)) is first
    scopes.watched("one more/", Now(1.0, 0))
    assert scopes.watched("0/", Now(1.0, 0)) is first
    assert scopes.watched("1/", Now(1.0, 0)) is not second
