"""The code in docs/plugins.md, and the plugins in examples/plugins."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pulsarbox.plugins.probe import probe
from pulsarbox.plugins.registry import find, load
from tests.newcomer.pages import File, sections
from tests.unit.plugins import test_probe

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "plugins.md").read_text("utf-8")
FILES = [step for section in sections(PAGE) for step in section.steps if isinstance(step, File)]
NAMED = {file.name: file.text for file in FILES if file.name}
SELECTOR, TESTS = (file.text for file in FILES if not file.name)
EXAMPLES = {each.name: each for each in find(ROOT / "examples" / "plugins") if each.source.endswith(".py")}


@pytest.fixture(scope="module")
def of_the_page(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The plugins from the page, by name, as loaded from its directory."""
    folder = tmp_path_factory.mktemp("page")
    for name, text in NAMED.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return {each.name: each for each in find(folder / "mine") if each.source.endswith(".py")}


def test_the_page_builds_all_the_examples(of_the_page: dict[str, Any]) -> None:
    assert of_the_page.keys() == EXAMPLES.keys()
    assert all(of_the_page[name].kind == EXAMPLES[name].kind for name in EXAMPLES)
    assert {"send.py", "work.py", "pulsarbox.toml"} < NAMED.keys()  # tests/e2e/pages/test_plugins_page.py runs them


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_plugin_of_the_page_is_good(of_the_page: dict[str, Any], name: str) -> None:
    assert probe(of_the_page[name]).problems == []


def test_the_hash_of_the_page_is_that_of_the_examples(of_the_page: dict[str, Any]) -> None:
    ours, theirs = load(of_the_page["hash-tag"]), load(EXAMPLES["hash-tag"])
    for key in (b"", b"a", b"{a}b", b"x{a}", b"{}", b"{a", b"}a{", b"{a}{b}"):
        assert ours.hash32(key) == theirs.hash32(key)
    assert ours.hash32(b"{a}b") == ours.hash32(b"a") != ours.hash32(b"{}a")


def test_the_choice_of_the_page_is_that_of_the_examples(of_the_page: dict[str, Any]) -> None:
    ours, theirs = load(of_the_page["weighted"]).choose, load(EXAMPLES["weighted"]).choose
    for weights in (("1", "3", "2"), ("0", "", "4"), ("-1", "no number", "10")):
        ready = [SimpleNamespace(unacked=0, metadata={"weight": each}) for each in weights]
        for _ in range(60):
            chosen = ours(ready)
            assert chosen is theirs(ready)
            chosen.unacked += 1
    assert load(of_the_page["weighted"]).choose([SimpleNamespace(unacked=1, metadata={})]).unacked == 1


def test_the_codec_of_the_page_reads_what_that_of_the_examples_wrote(of_the_page: dict[str, Any]) -> None:
    ours, theirs = load(of_the_page["xz"]), load(EXAMPLES["xz"])
    assert ours.rest_tag == theirs.rest_tag
    body = b"order 17: tea, by the usual way, " * 50
    for one, other in ((ours.open(), theirs.open()), (theirs.open(), ours.open())):
        assert other.decompress(one.compress(body), len(body)) == body
        with pytest.raises(ValueError, match="these are not 7 bytes"):
            other.decompress(one.compress(body), 7)


def test_the_tests_of_the_page_pass() -> None:
    made: dict[str, Any] = {"Plugin": type(load(EXAMPLES["hash-tag"]))}
    exec(TESTS, made)  # noqa: S102
    made["TestMine"]().test_vectors()


def test_the_selector_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "by_weight.py").write_text(SELECTOR)
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
