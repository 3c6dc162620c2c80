"""Statistics of the parts of Pulsar's broker that a box lacks or combines: allocators, MBeans, bookies, load manager.

They have Pulsar's format, with the values that are true of a box.
"""

from typing import Any, Final

from pulsarbox.broker.topic.topic import Topic
from pulsarbox.clock import Now
from pulsarbox.errors import Conflict, NotAcceptable
from pulsarbox.server.http.framework.cooperative_work import in_turns
from pulsarbox.server.http.framework.request import DeferredAnswer, HttpRequest, HttpResponse, answer
from pulsarbox.server.http.framework.routes import HttpRoute, Permission

AT_ONCE: Final = 500
"""Topics listed per turn."""

CACHE: Final = "ml-cache"
ALLOCATORS: Final = ("default", CACHE)

_PENDING: Final = dict.fromkeys(
    (
        f"{kind}Ledger{operation}Op"
        for kind in ("data", "cursor")
        for operation in ("Open", "Close", "Create", "Delete")
    ),
    0,
)
"""The pending operations of a topic. Ledgers of a box are records of its journal, which no operation waits for."""


def allocator(call: HttpRequest) -> HttpResponse:
    """Return the memory of an allocator of Netty. Python's has no arenas; that of ``ml-cache`` is the tail cache."""
    name = call.path["allocator"]
    if name not in ALLOCATORS:
        raise NotAcceptable(f"Invalid allocator name : {name}")
    used = call.broker.commits.tail_cache.size if name == CACHE else 0
    shown: dict[str, Any] = dict.fromkeys(
        ("numDirectArenas", "numHeapArenas", "numThreadLocalCaches", "normalCacheSize", "smallCacheSize"), 0
    )
    return answer(shown | {"usedDirectMemory": used, "usedHeapMemory": 0, "directArenas": [], "heapArenas": []})


def bookie_operations(call: HttpRequest) -> DeferredAnswer:
    """Return the pending bookie operations of loaded topics, by namespace."""
    found: dict[str, dict[str, dict[str, int]]] = {}

    def add(topic: Topic, now: Now) -> None:
        if topic.name.persistent:
            found.setdefault(topic.name.namespace, {})[str(topic.name)] = _PENDING

    return in_turns(call, call.topics, add, lambda now, later: later.complete(answer(found)), AT_ONCE)


def mbeans(call: HttpRequest) -> HttpResponse:
    """Return the MBeans of the JVM: none, since a box runs without one."""
    return answer([])


def availability(call: HttpRequest) -> HttpResponse:
    """Refuse, as Pulsar does with every load manager but the one of its early versions."""
    call.namespace()
    raise Conflict("The load manager of a single broker does not support this operation")


_STATS: Final = "/admin/v2/broker-stats"

ROUTES = (
    HttpRoute("GET", f"{_STATS}/allocator-stats/{{allocator}}", Permission.SUPERUSER, allocator),
    HttpRoute("GET", f"{_STATS}/bookieops", Permission.SUPERUSER, bookie_operations),
    HttpRoute("GET", f"{_STATS}/mbeans", Permission.SUPERUSER, mbeans),
    HttpRoute(
        "GET",
        f"{_STATS}/broker-resource-availability/{{tenant}}/{{namespace}}",
        Permission.SUPERUSER,
        availability,
    ),
)
