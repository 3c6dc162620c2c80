"""The plugins in use, with their cost and their subscriptions. Below ``/pulsarbox/v1``."""

from pulsarbox.server.http.framework.request import HttpRequest, HttpResponse, answer
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.live.asking import scope_of
from pulsarbox.server.live.plugins import used


def plugins(call: HttpRequest) -> HttpResponse:
    """Return the result of ``used``; empty for a tenant. Built-in plugins are listed only if a setting names them."""
    if scope_of(call.query).prefix:
        return answer([])
    found = used(call.broker)
    return answer([found[key] for key in sorted(found)])


ROUTES = (HttpRoute("GET", "/pulsarbox/v1/plugins", Permission.WATCHER, plugins),)
