"""Statistics of the broker: all topics by bundle, metrics as JSON, load."""

from collections.abc import Iterator
from typing import Any, Final

from pulsarbox.broker.broker import Broker
from pulsarbox.broker.stats.commit_stats import LATENCY_MS, SIZES
from pulsarbox.broker.stats.rate_window import WINDOW_SECONDS
from pulsarbox.broker.topic.topic import Topic
from pulsarbox.clock import Now
from pulsarbox.protocol.features import COMPATIBLE_PULSAR_VERSION
from pulsarbox.server.http.framework.cooperative_work import in_turns
from pulsarbox.server.http.framework.request import DeferredAnswer, HttpRequest, HttpResponse, answer, compact
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.http.resources.bundles import AllBundles
from pulsarbox.server.http.statistics.topic_digest import digest, text
from pulsarbox.server.metrics import box, process
from pulsarbox.server.metrics.process import PROCESS
from pulsarbox.server.metrics.rows import TopicRow, look

Stats = dict[str, Any]

AT_ONCE: Final = 20
"""Topics processed per turn."""


def topics(call: HttpRequest) -> DeferredAnswer:
    """Return the loaded topics: by namespace, by bundle, by domain.

    Each is formatted in the turn that reads it: formatting all of them at once would be a long turn.
    """
    bundles = AllBundles(call.tenants)
    found: dict[str, dict[str, dict[str, list[bytes]]]] = {}

    def work(topic: Topic, now: Now) -> None:
        name = topic.name
        bundle = bundles.of(name)
        if bundle is not None:
            domains = found.setdefault(name.namespace, {}).setdefault(bundle, {})
            domain = domains.setdefault("persistent" if name.persistent else "non-persistent", [])
            domain.append(f"{text(str(name))}:{digest(topic, now)}".encode(errors="replace"))

    def finish(now: Now, later: DeferredAnswer) -> None:
        later.complete(HttpResponse(200, b"".join(_nested(found))))

    return in_turns(call, call.topics, work, finish, AT_ONCE)


def _nested(found: Any) -> Iterator[bytes]:
    """Yield nested dictionaries as JSON, the innermost from formatted pieces. Joined only once: they may be many MB."""
    if isinstance(found, list):
        yield from (b"{", b",".join(found), b"}")
        return
    before = b"{"
    for name, each in found.items():
        yield before + compact(name).encode(errors="replace") + b":"
        yield from _nested(each)
        before = b","
    yield b"}" if found else b"{}"


def metrics(call: HttpRequest) -> DeferredAnswer:
    """Return Pulsar's metrics in JSON, except those about Java."""
    broker, rows = call.broker, dict[tuple[str, bool], TopicRow]()
    latencies = broker.commits.times.last_minute(call.now)

    def work(topic: Topic, now: Now) -> None:
        key = topic.name.namespace, topic.name.persistent
        row = look(topic, latencies, now).topic
        rows[key] = rows[key].plus(row) if key in rows else row

    def finish(now: Now, later: DeferredAnswer) -> None:
        told = [_cache(broker, list(rows.values()), now)]
        told += [_told_as(_stored(row), namespace=f"{key[0]}/persistent") for key, row in rows.items() if key[1]]
        of = {"broker": _host(broker), "cluster": broker.settings.clusterName}
        told.append(_told_as({"brk_health": 1}, **of, metric="broker_health"))
        told.append(_told_as(_connections(broker), **of, metric="broker_connection"))
        for namespace in sorted({key[0] for key in rows}):
            both = [row for key, row in rows.items() if key[0] == namespace]
            told.append(_told_as(_traffic(both[0] if len(both) == 1 else both[0].plus(both[1])), namespace=namespace))
        usage = {f"brk_lb_{name}": value for name, value in box.usage().items()}
        told.append(_told_as(usage, broker=of["broker"], metric="loadBalancing"))
        later.complete(answer(told))

    return in_turns(call, broker.topics, work, finish, AT_ONCE)


def _told_as(values: Stats, **dimensions: str) -> Stats:
    return {"metrics": values, "dimensions": dimensions}


def _cache(broker: Broker, rows: list[TopicRow], now: Now) -> Stats:
    values = {f"brk_ml_cache_{name}": value for name, _, value in box.cache_values(broker, rows, now)}
    stored = sum(topic.name.persistent for topic in broker.topics)
    return _told_as(values | {"brk_ml_count": stored})


def _stored(row: TopicRow) -> Stats:
    return {
        "brk_ml_AddEntryBytesRate": row.entry_bytes / WINDOW_SECONDS,
        "brk_ml_AddEntryErrors": 0.0,
        **_buckets("brk_ml_AddEntryLatencyBuckets", LATENCY_MS, row.latencies),
        "brk_ml_AddEntryMessagesRate": row.entries_in,
        "brk_ml_AddEntrySucceed": float(row.entries),
        **_buckets("brk_ml_EntrySizeBuckets", SIZES, row.sizes),
        "brk_ml_NumberOfMessagesInBacklog": float(row.backlog),
        "brk_ml_ReadEntriesBytesRate": row.stored_bytes_out,
        "brk_ml_ReadEntriesErrors": 0.0,
        "brk_ml_ReadEntriesRate": row.entries_out,
        "brk_ml_StoredMessagesSize": float(row.storage),
    }


def _buckets(name: str, bounds: tuple[float, ...], counts: tuple[int, ...]) -> Stats:
    """Return rates by bucket, with Pulsar's bucket names."""
    pairs = zip((0.0, *bounds[:-1]), bounds, strict=True)
    names = [*(f"{name}_{float(low)}_{float(high)}" for low, high in pairs), f"{name}_OVERFLOW"]
    return {each: count / WINDOW_SECONDS for each, count in zip(names, counts, strict=True)}


def _connections(broker: Broker) -> Stats:
    here, made = len(broker.cnxs), broker.connections_made
    return {
        "brk_active_connections": here,
        "brk_connection_closed_total_count": made - here,
        "brk_connection_create_fail_count": 0,
        "brk_connection_create_success_count": made,
        "brk_connection_created_total_count": made,
    }


def _traffic(row: TopicRow) -> Stats:
    return {
        "brk_in_rate": row.messages_in,
        "brk_in_tp_rate": row.bytes_in,
        "brk_max_replication_delay_second": 0.0,
        "brk_msg_backlog": float(row.backlog),
        "brk_no_of_consumers": row.consumers,
        "brk_no_of_producers": row.producers,
        "brk_no_of_replicators": 0,
        "brk_no_of_subscriptions": row.subscriptions,
        "brk_out_rate": row.messages_out,
        "brk_out_tp_rate": row.bytes_out,
        "brk_replication_backlog": 0.0,
        "brk_storage_size": float(row.storage),
    }


def load_report(call: HttpRequest) -> DeferredAnswer:
    """Return the load report for a load balancer."""
    broker, bundles, all_bundles = call.broker, dict[str, Stats](), AllBundles(call.tenants)
    latencies = broker.commits.times.last_minute(call.now)

    def work(topic: Topic, now: Now) -> None:
        of = all_bundles.of(topic.name)
        if of is None:
            return
        row = look(topic, latencies, now).topic
        name = f"{topic.name.namespace}/{of}"
        bundle = bundles.setdefault(name, dict(_EMPTY_BUNDLE))
        for key, value in zip(_EMPTY_BUNDLE, (row.messages_in, row.bytes_in, row.messages_out, row.bytes_out,
                                              row.consumers, row.producers, 1, 0), strict=True):  # fmt: skip
            bundle[key] += value

    return in_turns(
        call, broker.topics, work, lambda now, later: later.complete(answer(_report(broker, bundles, now))), AT_ONCE
    )


_EMPTY_BUNDLE: Final[Stats] = {
    "msgRateIn": 0.0, "msgThroughputIn": 0.0, "msgRateOut": 0.0, "msgThroughputOut": 0.0, "consumerCount": 0,
    "producerCount": 0, "topics": 0, "cacheSize": 0,
}  # fmt: skip


def _report(broker: Broker, bundles: dict[str, Stats], now: Now) -> Stats:
    def total(name: str) -> float:
        found: float = sum((bundle[name] for bundle in bundles.values()), 0)
        return found

    processors, memory = process.processors(), process.machine_memory()
    resident = process.memory()[1]
    cpu = PROCESS.percent()
    unlimited = {"usage": 0.0, "limit": -1000.0}
    names = sorted(bundles)
    found = broker.endpoints
    urls = {"webServiceUrl": found.web_url, "webServiceUrlTls": found.web_url_tls}
    urls |= {"pulsarServiceUrl": found.broker_url, "pulsarServiceUrlTls": found.broker_url_tls}
    return {
        **{name: url for name, url in urls.items() if url},
        "persistentTopicsEnabled": True,
        "nonPersistentTopicsEnabled": broker.settings.enableNonPersistentTopics,
        "cpu": {"usage": cpu * processors, "limit": 100.0 * processors},
        "memory": {"usage": resident / 2**20, "limit": memory / 2**20},
        "directMemory": {"usage": 0.0, "limit": 0.0},
        "bandwidthIn": unlimited,
        "bandwidthOut": unlimited,
        "msgThroughputIn": total("msgThroughputIn"),
        "msgThroughputOut": total("msgThroughputOut"),
        "msgRateIn": total("msgRateIn"),
        "msgRateOut": total("msgRateOut"),
        "lastUpdate": now.wall,
        "lastStats": bundles,
        "numTopics": total("topics"),
        "numBundles": len(bundles),
        "numConsumers": total("consumerCount"),
        "numProducers": total("producerCount"),
        "bundles": names,
        "lastBundleGains": [],
        "lastBundleLosses": [],
        "brokerVersionString": COMPATIBLE_PULSAR_VERSION,
        "protocols": {},
        "advertisedListeners": {},
        "loadManagerClassName": "",
        "startTimestamp": broker.started,
        "maxResourceUsage": max(cpu / 100, resident / memory),
        "loadReportType": "LocalBrokerData",
    }


def _host(broker: Broker) -> str:
    return broker.endpoints.host


ROUTES = (
    HttpRoute("GET", "/admin/v2/broker-stats/topics", Permission.SUPERUSER, topics),
    HttpRoute("GET", "/admin/v2/broker-stats/destinations", Permission.SUPERUSER, topics),
    HttpRoute("GET", "/admin/v2/broker-stats/metrics", Permission.SUPERUSER, metrics),
    HttpRoute("GET", "/admin/v2/broker-stats/load-report", Permission.SUPERUSER, load_report),
)
