"""/metrics: what Prometheus reads, and what waits for a Pulsar asks for."""

import re

from pulsarbox.config import Settings
from tests.unit.server.http.harness import Box, with_box

LINE = re.compile(r'(?P<name>[a-z_]+)\{cluster="(?P<cluster>(\\.|[^"\\])*)"\} (?P<value>[0-9.]+)')


def test_numbers_are_told_in_prometheus_form() -> None:
    async def scenario(box: Box) -> None:
        got = await box.ask("GET", "/metrics")
        assert got.status == 200
        assert got.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        numbers = {}
        for line in got.text.splitlines():
            if not line.startswith("#"):
                found = LINE.fullmatch(line)
                assert found is not None, line
                assert found["cluster"] == 'a\\"b'
                numbers[found["name"]] = float(found["value"])
        assert numbers["pulsar_active_connections"] == 0
        box.broker.connected(box.broker.new_outbox(), "127.0.0.1:1", box.shell.now())
        assert 'pulsar_active_connections{cluster="a\\"b"} 1' in (await box.ask("GET", "/metrics")).text
        assert numbers.keys() == {
            "pulsar_active_connections",
            "pulsar_broker_topics_count",
            "pulsar_broker_producers_count",
            "pulsar_broker_consumers_count",
        }

    with_box(scenario, Settings(clusterName='a"b'))
