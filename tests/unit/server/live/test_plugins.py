"""The live view of plugins."""

from pathlib import Path

from pulsarbox.broker.plugins import Plugins
from pulsarbox.plugins.registry import get
from tests.unit.broker.playbook import Box
from tests.unit.server.live.views import rows


def test_all_that_there_are_and_what_those_in_use_cost(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("class Plugin:\n    kind = 'hashing'\n")
    ticks = iter(range(0, 1_000_000_000, 500))
    plugins = Plugins(get, lambda: next(ticks))
    box = Box(plugins=plugins, pluginsDirectory=str(tmp_path), pluginsDisabled="routing:off")
    hash32 = plugins.key_hash("xxhash")
    assert hash32 is not None
    for _ in range(512):
        hash32(b"k")
    found = {(row["kind"], row["name"]): row for row in rows(box, "plugins")}
    row = found["hashing", "xxhash"]
    assert (row["state"], row["calls"], row["errors"]) == ("in use", 512, 0)
    assert (row["p99Nanos"], row["lastError"]) == (500, None)
    assert row["source"] == "built-in"
    assert found["compression", "zstd"]["state"] == "idle"
    assert (found["routing", "off"]["state"], found["routing", "off"]["source"]) == ("disabled", None)
    assert any("mine.py" in str(row["source"]) or row["name"] == "mine" for row in found.values())
    assert rows(box, "plugins")[0]["name"] == "xxhash", "the busiest first"
    assert rows(box, "plugins", tenant="public") == []
