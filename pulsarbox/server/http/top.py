"""The live views: what topics, subscriptions and others do right now, only the rows that somebody sees. Below
``/pulsarbox/v1/top``.

The filter and the order are the box's affair, so that of many thousand rows only those in view travel.
"""

from collections.abc import Callable
from typing import Any, Final
from weakref import WeakKeyDictionary

from pulsarbox.broker.broker import Broker
from pulsarbox.clock import Now
from pulsarbox.errors import NotFound, PulsarBoxError
from pulsarbox.server.http.call import Call, Later, answer
from pulsarbox.server.http.routes import Permission, Route
from pulsarbox.server.live.answering import Choices, Found, answers
from pulsarbox.server.live.asking import Asked, asked
from pulsarbox.server.live.table import VIEWS

_CHOICES: Final[WeakKeyDictionary[Broker, Choices]] = WeakKeyDictionary()


def top(call: Call) -> Later:
    """The rows of a view that are asked for. Raises NotFound for one that there is not, BadRequest."""
    name = call.path["view"]
    view = VIEWS.get(name)
    if view is None:
        raise NotFound(f"There is no view {name!r}; there are {', '.join(VIEWS)}")
    if call.query.get("at"):
        raise NotFound("There is no recorded history: ask without `at` for what is now")
    question = asked(view, call.query)
    later = Later()
    choices = _CHOICES.setdefault(call.broker, Choices())
    work = answers(call.broker, question, choices, call.now)

    def turn(now: Now, step: Callable[[], object]) -> None:
        try:
            step()
        except StopIteration as stop:
            later.give(answer(_told(call, question, stop.value, now)))
        except PulsarBoxError as error:
            later.failed(error)
        else:
            call.broker.core.timers.at(now.monotonic, go_on)

    def go_on(now: Now) -> None:
        turn(now, lambda: work.send(now))

    turn(call.now, lambda: next(work))
    return later


def _told(call: Call, question: Asked, found: Found, now: Now) -> dict[str, Any]:
    broker = call.broker
    return {
        "view": question.view.name,
        "now": now.wall,
        "total": found.total,
        "matching": found.matching,
        "offset": question.offset,
        "rows": found.rows,
        "complete": broker.samples.stored.complete,
        "sampled": broker.samples.passed_at.wall,
        "virtualClock": broker.clock.offset if broker.clock.is_virtual else None,
        "readOnly": _is_read_only(call, question),
    }


def _is_read_only(call: Call, question: Asked) -> bool:
    """Whether the one who asks may not change what is shown."""
    authorization = call.broker.core.authorization
    try:
        if question.scope.tenant:
            authorization.require_tenant_admin(call.principal, question.scope.tenant)
        else:
            authorization.require_superuser(call.principal)
    except PulsarBoxError:
        return True
    return False


ROUTES = (Route("GET", "/pulsarbox/v1/top/{view}", Permission.WATCHER, top),)
