"""The plugins that this box uses, what they cost, and who goes by them. Below ``/pulsarbox/v1``."""

from pulsarbox.server.http.framework.request import Answer, Call, answer
from pulsarbox.server.http.framework.routes import Permission, Route
from pulsarbox.server.live.asking import scope_of
from pulsarbox.server.live.plugins import used


def plugins(call: Call) -> Answer:
    """See ``used``; a tenant has none. The built-in ones are none either, unless a name of theirs is a setting's."""
    if scope_of(call.query).prefix:
        return answer([])
    found = used(call.broker)
    return answer([found[key] for key in sorted(found)])


ROUTES = (Route("GET", "/pulsarbox/v1/plugins", Permission.WATCHER, plugins),)
