"""The live views: current rows of topics, subscriptions and others, filtered and sorted by the box.

Below ``/pulsarbox/v1/top``. Of many thousand rows, only those in view are transferred.
"""

from collections.abc import Callable, Generator
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from pulsarbox.broker.broker import Broker
from pulsarbox.clock import Now
from pulsarbox.errors import NotFound, PulsarBoxError
from pulsarbox.server.http.box.history import recorded
from pulsarbox.server.http.framework.request import DeferredAnswer, HttpRequest, answer
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.live import overview
from pulsarbox.server.live.answering import Choices, ViewAnswer, answers, ready
from pulsarbox.server.live.asking import ViewRequest, asked, columns_of, scope_of
from pulsarbox.server.live.clients import CLIENTS
from pulsarbox.server.live.table import VIEWS
from pulsarbox.server.live.view import ViewScope

T = TypeVar("T")

STORAGE: Final = "storage"
"""The view that ``box.store`` serves."""
_CHOICES: Final[WeakKeyDictionary[Broker, Choices]] = WeakKeyDictionary()


def top(call: HttpRequest) -> DeferredAnswer:
    """Return the requested rows of a view, or the overview.

    Raises NotFound for an unknown view, BadRequest.
    """
    name = call.path["view"]
    if call.query.get("at"):
        return recorded(call)
    if name == overview.NAME:
        scope = scope_of(call.query)
        columns = columns_of(call.query, name, overview.COLUMNS)
        return _in_turns(call, _overviewed(call, scope, columns), lambda found, now: _overview(call, scope, found, now))
    view = VIEWS.get(name)
    if view is None:
        raise NotFound(f"Unknown view {name!r}; available: {', '.join((overview.NAME, *VIEWS, STORAGE))}")
    question = asked(view, call.query)
    choices = _CHOICES.setdefault(call.broker, Choices())
    work = answers(call.broker, question, choices, call.now)
    return _in_turns(call, work, lambda found, now: _told(call, question, found, now))


def _in_turns(
    call: HttpRequest, work: Generator[None, Now, T], told: Callable[[T, Now], dict[str, Any]]
) -> DeferredAnswer:
    """Run work over many turns of the loop; then answer with its result."""
    later = DeferredAnswer()

    def turn(now: Now, step: Callable[[], object]) -> None:
        try:
            step()
        except StopIteration as stop:
            later.complete(answer(told(stop.value, now)))
        except Exception as error:
            later.failed(error)
        else:
            call.broker.timers.at(now.monotonic, go_on)

    def go_on(now: Now) -> None:
        turn(now, lambda: work.send(now))

    turn(call.now, lambda: next(work))
    return later


def _told(call: HttpRequest, question: ViewRequest, found: ViewAnswer, now: Now) -> dict[str, Any]:
    return around(call, question.view.name, question.scope, now) | {
        "total": found.total,
        "matching": found.matching,
        "offset": question.offset,
        "rows": found.rows,
    }


def _overviewed(call: HttpRequest, scope: ViewScope, columns: tuple[str, ...]) -> Generator[None, Now, dict[str, Any]]:
    now = yield from ready(call.broker, call.now)
    return (yield from overview.overviewed(call.broker, scope, now, columns))


def _overview(call: HttpRequest, scope: ViewScope, found: dict[str, Any], now: Now) -> dict[str, Any]:
    nothing = {"total": 0, "matching": 0, "offset": 0, "rows": []}
    return around(call, overview.NAME, scope, now) | nothing | found


def around(call: HttpRequest, view: str, scope: ViewScope, now: Now) -> dict[str, Any]:
    """Return the common members of all answers."""
    broker = call.broker
    return {
        "view": view,
        "now": now.wall,
        "sampled": broker.samples.passed_at.wall,
        "complete": broker.samples.stored.complete,
        "virtualClock": broker.clock.offset if broker.clock.is_virtual else None,
        "readOnly": _is_read_only(call, view, scope),
    }


def _is_read_only(call: HttpRequest, view: str, scope: ViewScope) -> bool:
    """Return whether the client may not change what is shown."""
    authorization = call.broker.authorization
    try:
        if scope.tenant and view != CLIENTS.name:  # a client may also be connected to topics of other tenants
            authorization.require_tenant_admin(call.principal, scope.tenant)
        else:
            authorization.require_superuser(call.principal)
    except PulsarBoxError:
        return True
    return False


ROUTES = (HttpRoute("GET", "/pulsarbox/v1/top/{view}", Permission.WATCHER, top),)
