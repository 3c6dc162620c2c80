"""The plugins that this box uses, what they cost, and who goes by them. Below ``/pulsarbox/v1``."""

from typing import Any

from pulsarbox.broker.key_hashes import rows
from pulsarbox.server.http.call import Answer, Call, answer
from pulsarbox.server.http.routes import Permission, Route


def plugins(call: Call) -> Answer:
    """Plugins that were asked for since the start, that subscriptions go by, or that are disabled, by kind and name.

    Times are those of one call in 256, in nanoseconds. The built-in ones are no plugins here, unless a name of theirs
    is a setting's.
    """
    core = call.broker.core
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for (kind, name), guard in core.plugins.guards.items():
        cost = guard.cost()
        _of(found, kind, name).update(
            state="not asked any more" if cost.tripped else "in use",
            calls=cost.calls,
            errors=cost.errors,
            p50Nanos=cost.p50_ns,
            p99Nanos=cost.p99_ns,
            lastError=cost.last_error,
        )
    for (kind, name), reason in core.plugins.missing.items():
        _of(found, kind, name).update(state="missing", lastError=reason)
    for kind, name in core.plugins.disabled:
        _of(found, kind, name)["state"] = "disabled"
    for _, row in rows(core.catalog):
        of = {"topic": row["topic"], "subscription": row["subscription"]}
        _of(found, "hashing", row["hashing"])["subscriptions"].append(of)
    return answer([found[key] for key in sorted(found)])


def _of(found: dict[tuple[str, str], dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    nothing = {"calls": 0, "errors": 0, "p50Nanos": 0, "p99Nanos": 0, "lastError": "", "subscriptions": []}
    return found.setdefault((kind, name), {"kind": kind, "name": name, "state": "idle"} | nothing)


ROUTES = (Route("GET", "/pulsarbox/v1/plugins", Permission.SUPERUSER, plugins),)
