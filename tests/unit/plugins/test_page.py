"""docs/plugins.md as it stands, and the plugins of examples/plugins."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pulsarbox.plugins.probe import probe
from pulsarbox.plugins.registry import find, load
from tests.unit.plugins import test_probe

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "plugins.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
EXAMPLES = {each.name: each for each in find(ROOT / "examples" / "plugins") if each.source.endswith(".py")}


def test_the_plugin_of_the_page_is_good_and_as_that_of_the_examples(tmp_path: Path) -> None:
    (tmp_path / "hash_tag.py").write_text(BLOCKS[0])
    (found,) = (each for each in find(tmp_path) if each.name == "hash-tag")
    assert probe(found).problems == []
    ours, theirs = load(found), load(EXAMPLES["hash-tag"])
    for key in (b"", b"a", b"{a}b", b"x{a}", b"{}", b"{a", b"}a{", b"{a}{b}"):
        assert ours.hash32(key) == theirs.hash32(key)
    assert ours.hash32(b"{a}b") == ours.hash32(b"a") != ours.hash32(b"{}a")


def test_the_programs_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "hash_tag.py").write_text(BLOCKS[0])
    made: dict[str, Any] = {}
    client = SimpleNamespace(create_producer=lambda topic, message_router: message_router)
    text = BLOCKS[1].replace('"mine"', repr(str(tmp_path / "mine")))
    exec(text, {"client": client}, made)  # noqa: S102
    message = SimpleNamespace(partition_key=lambda: "{a}b", properties=dict, data=lambda: b"")
    assert made["producer"](message, 1 << 31) == load(EXAMPLES["hash-tag"]).hash32(b"a")
    exec(BLOCKS[3], made | {"Plugin": type(load(EXAMPLES["hash-tag"]))}, made)  # noqa: S102
    made["TestMine"]().test_vectors()


def test_the_selector_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "by_weight.py").write_text(BLOCKS[2])
    (found,) = (each for each in find(tmp_path) if each.name == "by-weight")
    assert probe(found).problems == []
    small, large = (SimpleNamespace(name=each, metadata={"weight": each}) for each in ("1", "3"))
    division = load(found).divide()
    division.add(small)
    division.add(large)
    assert [division.select(slot) for slot in range(4)] == [small, large, large, large]
    division.remove(small)
    assert {division.select(slot).name for slot in range(4)} == {"3"}


def test_each_bad_plugin_has_a_row() -> None:
    rows = PAGE.partition("## Ten bad plugins")[2].partition("## ")[0].count("\n| ") - 1
    (cases,) = (mark.args[1] for mark in test_probe.test_a_bad_plugin.pytestmark)  # type: ignore[attr-defined]
    assert rows == len(cases) == 10


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example(name: str) -> None:
    assert probe(EXAMPLES[name]).problems == []


def test_there_is_one_example_of_each_kind() -> None:
    assert sorted(each.kind for each in EXAMPLES.values()) == ["compression", "hashing", "routing"]


def test_work_by_weight() -> None:
    consumers = [
        SimpleNamespace(name=name, unacked=unacked, metadata={"weight": weight} if weight else {})
        for name, unacked, weight in (("a", 3, ""), ("b", 8, "4"), ("c", 2, "no number"))
    ]
    choose = load(EXAMPLES["weighted"]).choose
    assert choose(consumers).name == "b"
    consumers[1].unacked = 9
    assert choose(consumers).name == "c"
    assert choose(consumers[:1]).name == "a"
