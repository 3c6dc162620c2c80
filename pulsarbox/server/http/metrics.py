"""Numbers for Prometheus, under the names that Pulsar gives them.

Source: Pulsar documentation, "Reference: metrics". What needs statistics of each topic is not among them yet.
"""

from collections.abc import Iterable
from typing import NamedTuple

from pulsarbox.server.http.call import Answer, Call
from pulsarbox.server.http.routes import Permission, Route

TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metric(NamedTuple):
    """One number."""

    name: str
    meaning: str
    value: float


def metrics(call: Call) -> Answer:
    """All numbers, each with the label ``cluster``."""
    cluster = _escaped(call.broker.core.settings.clusterName)
    lines = [
        f'# HELP {each.name} {each.meaning}\n# TYPE {each.name} gauge\n{each.name}{{cluster="{cluster}"}} {each.value}'
        for each in _numbers(call)
    ]
    return Answer(200, ("\n".join(lines) + "\n").encode(), TYPE)


def _numbers(call: Call) -> Iterable[Metric]:
    cnxs = call.broker.cnxs
    yield Metric("pulsar_active_connections", "Connections of clients", len(cnxs))
    yield Metric("pulsar_broker_topics_count", "Topics that are in use", sum(1 for _ in call.broker.topics))
    yield Metric("pulsar_broker_producers_count", "Producers", sum(len(cnx.producers) for cnx in cnxs))
    yield Metric("pulsar_broker_consumers_count", "Consumers", sum(len(cnx.consumers) for cnx in cnxs))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


ROUTES = (Route("GET", "/metrics", Permission.ANYONE, metrics),)
