"""Plugins of a box over HTTP: their cost and users."""

import pytest

from pulsarbox.broker.dispatch.consumer_choice import round_robin
from pulsarbox.broker.plugins import Plugins
from pulsarbox.config import Settings
from pulsarbox.plugins.registry import get
from pulsarbox.server.metrics.exposition import text_of
from pulsarbox.server.metrics.plugins import costs
from tests.unit.server.http.harness import HttpBox

PLUGINS = "/pulsarbox/v1/plugins"


async def test_a_box_without_plugins(box: HttpBox) -> None:
    assert (await box.ask("GET", PLUGINS)).value == []
    assert not list(costs(box.broker.plugins, ""))


@pytest.mark.settings(Settings(pluginsDisabled="routing:off"))
async def test_what_is_disabled_or_missing(box: HttpBox) -> None:
    core = box.broker
    assert core.plugins.choice_of("gone", {}) is round_robin
    shown = {each["name"]: each for each in (await box.ask("GET", PLUGINS)).value}
    assert shown["off"]["state"] == "disabled"
    assert (shown["gone"]["kind"], shown["gone"]["state"]) == ("routing", "missing")
    assert "there is no plugin 'gone'" in shown["gone"]["lastError"]
    assert (await box.ask("GET", f"{PLUGINS}?tenant=public")).value == []


def test_what_a_plugin_costs_is_a_metric() -> None:
    ticks = iter(range(0, 1_000_000, 500))
    plugins = Plugins(get, lambda: next(ticks))
    hash32 = plugins.key_hash("xxhash")
    assert hash32 is not None
    for _ in range(256):
        hash32(b"k")
    text = b"".join(text_of(costs(plugins, 'cluster="c"'))).decode()
    of = 'cluster="c",kind="hashing",plugin="xxhash"'
    assert f"pulsarbox_plugin_calls_total{{{of}}} 256" in text
    assert f"pulsarbox_plugin_errors_total{{{of}}} 0" in text
    assert f"pulsarbox_plugin_tripped{{{of}}} 0" in text
    assert f'pulsarbox_plugin_seconds{{{of},quantile="0.99"}} 5e-07' in text
