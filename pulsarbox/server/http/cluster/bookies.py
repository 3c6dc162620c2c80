"""Bookies: several data directories act as bookies; with one, a box has none. Their racks are stored.

So are the bookie affinity groups of namespaces.

Source: https://pulsar.apache.org/docs/4.2.x/administration-isolation-bookie/.
"""

from typing import Final

from pulsarbox.errors import NamespaceNotFound, NotFound, PreconditionFailed
from pulsarbox.protocol.policies.shapes import ObjectShape, Text
from pulsarbox.server.http.cluster.body_values import object_in
from pulsarbox.server.http.framework.request import DONE, HttpRequest, HttpResponse, answer, plain
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.http.framework.stored_only import stored_only
from pulsarbox.storage.ensemble.member import MemberState

_INFO: Final = ObjectShape(dict.fromkeys(("rack", "hostname"), (Text(), None)))
_AFFINITY: Final = ObjectShape(
    dict.fromkeys(("bookkeeperAffinityGroupPrimary", "bookkeeperAffinityGroupSecondary"), (Text(), None))
)
_NO_BOOKIES: Final = "pulsarbox stores ledgers itself and has no bookies"


def bookies(call: HttpRequest) -> HttpResponse:
    """Return the data directories as bookies if there are several, otherwise none."""
    watched = call.broker.host.ensemble
    names = (
        [] if watched is None else [each.name for each in watched.status().members if each.state != MemberState.REMOVED]
    )
    return answer({"bookies": [{"bookieId": name} for name in names]})


def racks(call: HttpRequest) -> HttpResponse:
    """Return the racks of bookies by group."""
    return answer(call.broker.clusters.racks.groups())


def rack(call: HttpRequest) -> HttpResponse:
    """Return the rack of a bookie."""
    found = call.broker.clusters.racks.get(call.path["bookie"])
    if found is None:
        raise _missing(call)
    return answer(found)


def put_rack(call: HttpRequest) -> HttpResponse:
    """Store the rack and group of a bookie, which need not exist."""
    group = call.query.get("group")
    if group is None:
        raise PreconditionFailed("Bookie 'group' parameters is missing")
    info = object_in(call, _INFO, "the bookie info")
    if "/" in info.get("rack", "").strip("/"):
        raise PreconditionFailed(
            "Bookie 'rack' parameter is invalid: a rack name may contain a slash only at its beginning and end"
        )
    call.broker.clusters.racks.put(group, call.path["bookie"], info)
    return stored_only("racks of bookies", _NO_BOOKIES)


def delete_rack(call: HttpRequest) -> HttpResponse:
    """Delete the rack of a bookie."""
    if not call.broker.clusters.racks.delete(call.path["bookie"]):
        raise _missing(call)
    return DONE


def _missing(call: HttpRequest) -> NotFound:
    return NotFound(f"Bookie rack placement configuration not found: {call.path['bookie']}")


# Namespaces


def affinity(call: HttpRequest) -> HttpResponse:
    """Return the bookie affinity group of a namespace; an empty body if it has none."""
    found = call.broker.clusters.racks.affinity_groups.get(_namespace(call))
    return plain("") if found is None else answer(found)


def set_affinity(call: HttpRequest) -> HttpResponse:
    """Store the bookie affinity group of a namespace; without a body, remove it."""
    namespace = _namespace(call)
    if call.json() is None:
        call.broker.clusters.racks.affinity_groups.delete(namespace)
    else:
        group = object_in(call, _AFFINITY, "the bookie affinity group")
        call.broker.clusters.racks.affinity_groups.put(namespace, group)
    return stored_only("bookie affinity groups", _NO_BOOKIES)


def delete_affinity(call: HttpRequest) -> HttpResponse:
    """Remove the bookie affinity group of a namespace."""
    call.broker.clusters.racks.affinity_groups.delete(_namespace(call))
    return DONE


def _namespace(call: HttpRequest) -> str:
    namespace = call.namespace()
    if not call.tenants.has_namespace(namespace):
        raise NamespaceNotFound("Namespace not found")
    return namespace


_RACKS: Final = "/admin/v2/bookies/racks-info"
_AFFINITY_PATH: Final = "/admin/v2/namespaces/{tenant}/{namespace}/persistence/bookieAffinity"

ROUTES = (
    HttpRoute("GET", "/admin/v2/bookies/all", Permission.SUPERUSER, bookies),
    HttpRoute("GET", _RACKS, Permission.SUPERUSER, racks),
    HttpRoute("GET", f"{_RACKS}/{{bookie}}", Permission.SUPERUSER, rack),
    HttpRoute("POST", f"{_RACKS}/{{bookie}}", Permission.SUPERUSER, put_rack),
    HttpRoute("DELETE", f"{_RACKS}/{{bookie}}", Permission.SUPERUSER, delete_rack),
    HttpRoute("GET", _AFFINITY_PATH, Permission.SUPERUSER, affinity),
    HttpRoute("POST", _AFFINITY_PATH, Permission.SUPERUSER, set_affinity),
    HttpRoute("DELETE", _AFFINITY_PATH, Permission.SUPERUSER, delete_affinity),
)
