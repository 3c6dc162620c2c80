"""YAML within bounds: values, lines of problems, and documents that would expand, nest or repeat."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pulsarbox.cli.common.yaml_text import to_yaml
from pulsarbox.declaration import yaml_document
from pulsarbox.declaration.places import InvalidDeclaration
from pulsarbox.declaration.yaml_document import BYTES_MAX, DEPTH_MAX, YamlMap, plain, read_document


def value(text: str) -> Any:
    node = read_document(text, "f")
    return None if node is None else plain(node)


def problem(text: str) -> str:
    with pytest.raises(InvalidDeclaration) as caught:
        read_document(text, "f")
    return str(caught.value)


def test_values_are_those_of_the_core_schema() -> None:
    text = "{a: 1, b: -1, c: 1.5, d: true, e: null, f: ~, g: no, h: 'yes', i: \"1\", j: 1:30, k: 0x10, l: 2026-11-23}"
    assert value(text) == {
        "a": 1, "b": -1, "c": 1.5, "d": True, "e": None, "f": None, "g": "no", "h": "yes", "i": "1", "j": "1:30",
        "k": "0x10", "l": "2026-11-23",
    }  # fmt: skip
    assert value("on: 1\n2: [x, {y: z}]") == {"on": 1, "2": ["x", {"y": "z"}]}
    assert value("") is value("# nothing\n") is value("---\n...\n") is None
    assert isinstance(value("a: " + "9" * 400)["a"], str)


@pytest.mark.parametrize(
    "text", ["8d", "1h30m", "1.5GiB,hold", "100/s,5MiB/s", "600/10s", "7d,10GiB", "500ms", "7d,caught-up"]
)
def test_amounts_with_a_unit_are_written_plainly(text: str) -> None:
    assert to_yaml({"a": text}) == f"a: {text}\n"
    assert value(to_yaml({"a": text})) == {"a": text}
    assert yaml.safe_load(to_yaml({"a": text})) == {"a": text}


@pytest.mark.parametrize("text", ["1e5", "10", "0x1B", "1.5", "off", "12:30", "1_0s,", "5,6"])
def test_what_may_be_read_as_a_number_is_quoted(text: str) -> None:
    assert to_yaml({"a": text}) == f'a: "{text}"\n'


def test_a_place_is_the_line_of_a_key() -> None:
    document = read_document("a: 1\n\nb:\n  c: 2\n", "f")
    assert isinstance(document, YamlMap)
    inner = document.members["b"].node
    assert isinstance(inner, YamlMap)
    assert [str(document.members["b"].place), str(inner.members["c"].place)] == ["f:3", "f:4"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: &x 1\nb: *x\n", "f:1: anchors (&name) and aliases (*name) are not supported: repeat the value"),
        ("a: 1\nb: *x\n", "f:2: anchors (&name) and aliases (*name) are not supported: repeat the value"),
        ("a: 1\n<<: {b: 1}\n", "f:2: merge keys (<<) are not supported: repeat the members"),
        (
            "a: !!python/name:os.system\n",
            "f:1: tags are not supported: remove tag:yaml.org,2002:python/name:os.syst",
        ),
        ("a: 1\nb: 2\na: 3\n", "f:3: 'a' is declared twice, first in line 1"),
        ("a: 1\n---\nb: 1\n", "f:2: only one document per file is supported: split it, and name each with -f"),
        ("[a]: 1\n", "f:1: a key must be a string"),
        ("a: [1\nb: 2\n", "f:2: invalid YAML: did not find expected ',' or ']'"),
        ("a: b: c\n", "f:1: invalid YAML: mapping values are not allowed in this context"),
        ("a: 1\n\tb: 2\n", "f:2: invalid YAML: found "),
        ("a: 1\nb: \x01\n", "f:2: invalid YAML: "),
    ],
)
def test_what_is_refused_and_where(text: str, said: str) -> None:
    assert problem(text).startswith(said)


def test_aliases_expand_to_nothing() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 30))
    assert problem(bomb).startswith("f:1: anchors")


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_nesting_is_bounded(opening: str) -> None:
    assert problem(opening * 50_000).startswith(f"f:1: nested deeper than {DEPTH_MAX} levels")


def test_size_and_number_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert problem("#" * (BYTES_MAX + 1)).startswith("f:1: the file has more than 4 MiB")
    monkeypatch.setattr(yaml_document, "NODES_MAX", 100)
    assert problem("- a\n" * 101) == "f:100: more than 100 values: split the file, and name each with -f"


keys = st.text(max_size=8).filter(lambda key: key != "<<")
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(keys, json_values, min_size=1, max_size=4))
def test_what_the_commands_write_is_read_as_it_was(document: dict[str, Any]) -> None:
    assert value(to_yaml(document)) == document
