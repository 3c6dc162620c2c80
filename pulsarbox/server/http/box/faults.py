"""Fault injection rules, on boxes started with fault injection. Below ``/pulsarbox/v1``."""

from pulsarbox.broker.faults.faults import Faults
from pulsarbox.broker.faults.rule import rule_of
from pulsarbox.errors import BadRequest, Conflict
from pulsarbox.server.http.framework.request import DONE, HttpRequest, HttpResponse, answer, long_of
from pulsarbox.server.http.framework.routes import HttpRoute, Permission


def listing(call: HttpRequest) -> HttpResponse:
    """Return the rules in evaluation order, with their counters."""
    return answer([counted.document() for counted in _faults(call).rules.values()])


def add(call: HttpRequest) -> HttpResponse:
    """Append a rule. The body is the rule; the answer is the rule with its number, ``id``."""
    faults = _faults(call)
    body = call.json_object()
    if not body:
        raise BadRequest('The body must be a rule, such as {"command": "send", "action": "error"}')
    return answer(faults.add(rule_of(body)).document())


def get(call: HttpRequest) -> HttpResponse:
    """Return a rule with its counters."""
    return answer(_faults(call).get(_number(call)).document())


def remove(call: HttpRequest) -> HttpResponse:
    """Remove a rule; return it with its counters."""
    return answer(_faults(call).remove(_number(call)).document())


def clear(call: HttpRequest) -> HttpResponse:
    """Remove all rules."""
    _faults(call).clear()
    return DONE


def _faults(call: HttpRequest) -> Faults:
    faults = call.broker.faults
    if faults is None:
        raise Conflict("This box has fault injection disabled: start it with --faults (in Python, with faults=True)")
    return faults


def _number(call: HttpRequest) -> int:
    number = long_of(call.path["id"])
    if number is None or number < 0:
        raise BadRequest(f"{call.path['id'][:40]!r} is not the number of a fault")
    return number


_PATH = "/pulsarbox/v1/faults"

ROUTES = (
    HttpRoute("GET", _PATH, Permission.SUPERUSER, listing),
    HttpRoute("POST", _PATH, Permission.SUPERUSER, add),
    HttpRoute("DELETE", _PATH, Permission.SUPERUSER, clear),
    HttpRoute("GET", f"{_PATH}/{{id}}", Permission.SUPERUSER, get),
    HttpRoute("DELETE", f"{_PATH}/{{id}}", Permission.SUPERUSER, remove),
)
