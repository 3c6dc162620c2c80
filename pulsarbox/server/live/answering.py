"""The answer of a live view: what is in view chosen, its rows made, in as many turns of the loop as that takes."""

from collections import OrderedDict
from collections.abc import Generator
from typing import Any, Final, NamedTuple

from pulsarbox.broker.broker import Broker
from pulsarbox.clock import Now
from pulsarbox.server.live.asking import Asked, order_of, wanted_of
from pulsarbox.server.live.choosing import Chosen, choose, chunk_of
from pulsarbox.server.live.view import Row

TOPICS_AT_ONCE: Final = 1000
"""Topics that one turn looks at, where it is time to."""
STORED_AT_ONCE: Final = 25
"""Topics that are not in memory, of which one turn reads the rows ..."""
STORED_TURNS: Final = 40
"""... and for how many turns somebody waits for that; the rest is found out when they ask again."""
ROWS_AT_ONCE: Final = 100
REMEMBERED: Final = 32
"""Questions whose choice is kept until everything was looked at again."""
KEPT_SECONDS: Final = 1.0
"""How long the choice of a question may be kept at most where nothing was looked at since."""


DEAR_A_SECOND: Final = 1000
"""Things that a value is made of a second for their order, at most, for who asks the same again and again. With 6 us
for why a subscription stands, and 13 for a limit, that is about a hundredth of a core."""
LOOKED_A_SECOND: Final = 4000
"""Steps a second past what is no such thing, at most: past subscriptions that have no limit, say, 1 us each."""


class _Remembered(NamedTuple):
    version: tuple[int, int]
    until: float
    chosen: Chosen


class Choices:
    """What was chosen a moment ago: who asks twice a second need not have 10,000 things ordered as often."""

    def __init__(self) -> None:
        self._choices: OrderedDict[tuple[Any, ...], _Remembered] = OrderedDict()

    def get(self, question: Asked, version: tuple[int, int], now: Now) -> Chosen | None:
        """What was chosen for the question, None where things may stand otherwise now: everything was looked at again,
        a policy is another one, or it is long ago."""
        found = self._choices.get(question.order)
        if found is None or found.version != version or now.monotonic >= found.until:
            return None
        return found.chosen

    def put(self, question: Asked, version: tuple[int, int], now: Now, seconds: float, chosen: Chosen) -> None:
        """This was chosen; it may stand for so many seconds."""
        self._choices[question.order] = _Remembered(version, now.monotonic + seconds, chosen)
        self._choices.move_to_end(question.order)
        while len(self._choices) > REMEMBERED:
            self._choices.popitem(last=False)


class Found(NamedTuple):
    """The answer to a question."""

    total: int
    matching: int
    rows: list[Row]


def ready(broker: Broker, now: Now) -> Generator[None, Now, Now]:
    """Somebody is watching: have everything looked at that it is time to look at. The time behind it."""
    samples = broker.samples
    samples.watch(now)
    while not samples.step(now, TOPICS_AT_ONCE):
        now = yield
    for _ in range(STORED_TURNS):
        if samples.stored.step(STORED_AT_ONCE):
            break
        now = yield
    return now


def dear_seconds(chosen: Chosen) -> float:
    """How long a choice may stand for which a value was made of each thing."""
    passed = chosen.looked - chosen.total
    return max(KEPT_SECONDS, chosen.total / DEAR_A_SECOND + passed / LOOKED_A_SECOND)


def answers(broker: Broker, question: Asked, choices: Choices, now: Now) -> Generator[None, Now, Found]:
    """Find the answer; where it yields, others may be served, and it is sent the time.

    Raises BadRequest for a filter that cannot be read.
    """
    wanted, filter_is_dear = wanted_of(question, now)
    samples = broker.samples
    now = yield from ready(broker, now)
    order, order_is_dear = order_of(question, now)
    dear = filter_is_dear or order_is_dear
    version = 0 if dear else samples.passes, broker.core.policies.changes  # by what is dear no look has ordered them
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
        seconds = dear_seconds(chosen) if dear else samples.period(now)
        choices.put(question, version, now, seconds, chosen)
    rows: list[Row] = []
    for at, thing in enumerate(chosen.things):
        if at and at % ROWS_AT_ONCE == 0:
            now = yield
        rows.append(question.view.row(thing, now, question.columns))
    return Found(chosen.total, chosen.matching, rows)
