"""Answers of the live views: rows are selected and built over as many turns of the loop as necessary."""

from collections import OrderedDict
from collections.abc import Generator
from typing import Any, Final, NamedTuple

from pulsarbox.broker.broker import Broker
from pulsarbox.clock import Now
from pulsarbox.server.live.asking import ViewRequest, order_of, wanted_of
from pulsarbox.server.live.choosing import Chosen, choose, chunk_of
from pulsarbox.server.live.view import Row

TOPICS_AT_ONCE: Final = 1000
"""Topics sampled per turn, if due."""
STORED_AT_ONCE: Final = 25
"""Unloaded topics whose rows are read per turn ..."""
STORED_TURNS: Final = 40
"""... and the maximum number of turns that a request waits for them; a later request continues."""
ROWS_AT_ONCE: Final = 100
REMEMBERED: Final = 32
"""Requests whose selection is cached until the next sampling pass."""
KEPT_SECONDS: Final = 1.0
"""Minimum seconds to cache a selection that computed a value for each item."""


DEAR_A_SECOND: Final = 1000
"""Maximum sort keys computed per second for repeated requests.

With 6 us for the cause of a subscription's backlog and 13 for a limit, that is about a hundredth of a core.
"""
LOOKED_A_SECOND: Final = 4000
"""Maximum steps per second over skipped items, such as subscriptions without a limit, 1 us each."""


class _Remembered(NamedTuple):
    version: tuple[int, int]
    until: float
    chosen: Chosen


class Choices:
    """Cache of selections: repeated requests need not sort 10,000 items each time."""

    def __init__(self) -> None:
        self._choices: OrderedDict[tuple[Any, ...], _Remembered] = OrderedDict()

    def get(self, question: ViewRequest, version: tuple[int, int], now: Now) -> Chosen | None:
        """Return the cached selection for a request, or None if it has expired, or samples or policies have changed."""
        found = self._choices.get(question.order)
        if found is None or found.version != version or now.monotonic >= found.until:
            return None
        return found.chosen

    def put(self, question: ViewRequest, version: tuple[int, int], now: Now, seconds: float, chosen: Chosen) -> None:
        """Cache a selection for a number of seconds."""
        self._choices[question.order] = _Remembered(version, now.monotonic + seconds, chosen)
        self._choices.move_to_end(question.order)
        while len(self._choices) > REMEMBERED:
            self._choices.popitem(last=False)


class ViewAnswer(NamedTuple):
    """The answer to a request."""

    total: int
    matching: int
    rows: list[Row]


def ready(broker: Broker, now: Now) -> Generator[None, Now, Now]:
    """Sample everything that is due, since a client is watching. Return the time afterwards."""
    samples = broker.samples
    samples.watch(now)
    while not samples.step(now, TOPICS_AT_ONCE):
        now = yield
    for _ in range(STORED_TURNS):
        if samples.stored.step(STORED_AT_ONCE):
            break
        now = yield
    return now


def cache_seconds(chosen: Chosen) -> float:
    """Return how long to cache a selection that computed a value for each item."""
    passed = chosen.looked - chosen.total
    return max(KEPT_SECONDS, chosen.total / DEAR_A_SECOND + passed / LOOKED_A_SECOND)


def answers(broker: Broker, question: ViewRequest, choices: Choices, now: Now) -> Generator[None, Now, ViewAnswer]:
    """Compute the answer. Yields to serve others, and is sent the current time.

    Raises BadRequest for an invalid filter.
    """
    wanted, filter_is_dear = wanted_of(question, now)
    samples = broker.samples
    now = yield from ready(broker, now)
    order, order_is_dear = order_of(question, now)
    dear = filter_is_dear or order_is_dear
    version = 0 if dear else samples.passes, broker.policies.changes  # sampling does not order computed values
    chosen = choices.get(question, version, now)
    if chosen is None:
        things = question.view.things(broker, question.scope, now)
        at_once = chunk_of(question.filter, dear=dear)
        choice = choose(things, wanted, order, (question.offset, question.limit), at_once=at_once)
        while True:
            try:
                next(choice)
            except StopIteration as stop:
                chosen = stop.value
                break
            now = yield
        seconds = cache_seconds(chosen) if dear else samples.period(now)
        choices.put(question, version, now, seconds, chosen)
    rows: list[Row] = []
    for at, thing in enumerate(chosen.things):
        if at and at % ROWS_AT_ONCE == 0:
            now = yield
        rows.append(question.view.row(thing, now, question.columns))
    return ViewAnswer(chosen.total, chosen.matching, rows)
