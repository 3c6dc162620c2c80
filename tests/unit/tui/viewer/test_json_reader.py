"""JSON read into a document: everything that Python's parser reads, and in small steps what it refuses."""

import json
from typing import Any

import pytest

from pulsarbox.tui.viewer import json_reader
from pulsarbox.tui.viewer.document import Document, Kind
from pulsarbox.tui.viewer.json_reader import JsonReader


def read(text: str, is_whole: bool = True, most: int = 250_000) -> Document:
    reader = JsonReader(text, is_whole, most)
    for _ in reader.steps():
        pass
    return reader.document


def value_of(document: Document, node: int = 0) -> Any:
    """The value of a node, from the document alone."""
    children = list(document.children_of(node)) if document.is_container(node) else []
    if document.kinds[node] == Kind.OBJECT:
        return {document.names[child]: value_of(document, child) for child in children}
    if document.kinds[node] == Kind.ARRAY:
        assert [document.names[child] for child in children] == list(range(len(children)))
        return [value_of(document, child) for child in children]
    return json.loads(document.text_of(node))


VALUES: tuple[Any, ...] = (
    {},
    [],
    "",
    0,
    -1.5e30,
    None,
    [True, False, None],
    {"a": {"b": [1, {"c": []}, "x,]}:{"]}, 'quote " and \\': "tab\t", "": 1},
    [[[[]], {}], {"a": {}, "b": [{}]}],
    {"ключ": "value \u2028", "emoji": "😀"},
)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("form", [{}, {"indent": 3}, {"separators": (",", ":")}, {"ensure_ascii": False}])
def test_what_python_writes_is_read(value: Any, form: dict[str, Any]) -> None:
    document = read(json.dumps(value, **form))
    assert document.is_complete and not document.trouble
    assert value_of(document) == value
    assert all(
        document.size_of(node) == len(list(document.children_of(node)))
        for node in range(len(document))
        if document.is_container(node)
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "it ends too early"),
        ('{"a"', "it ends too early"),
        ('"abc', "it ends too early"),
        ('"abc\\', "it ends too early"),
        ("[1,]", "expected a value at character 4"),
        ("[1 2]", "expected ',' or ']' at character 4"),
        ('{"a" 1}', "expected ':' at character 6"),
        ("{a: 1}", "expected a name in quotes at character 2"),
        ('{"a": 1,}', "expected a name in quotes at character 9"),
        ("[1] x", "expected the end at character 5"),
        ("hello", "expected a value at character 1"),
        ("[12x]", "expected a value at character 2"),
        ("", "it ends too early"),
    ],
)
def test_what_is_not_json_says_where(text: str, said: str) -> None:
    assert read(text).trouble == f"not valid JSON: {said}"


@pytest.mark.parametrize("value", VALUES)
def test_a_truncated_text_is_read_as_far_as_it_goes(value: Any) -> None:
    text = json.dumps(value)
    whole = read(text)
    for end in range(len(text)):
        document = read(text[:end], is_whole=False)
        assert document.trouble == "the rest is not loaded"
        assert document.is_complete and len(document) <= len(whole)
        assert all(document.text_of(n) == whole.text_of(n) for n in range(len(document)) if not whole.is_container(n))


def test_any_depth_is_read_and_a_large_text_in_small_steps() -> None:
    deep = read("[" * 10_000 + "]" * 10_000)
    assert (len(deep), deep.depths[9_999], deep.trouble) == (10_000, 9_999, "")
    assert deep.path_of(9_999).count("[0]") == 80 and "9,919 more" in deep.path_of(9_999)
    text = json.dumps({f"field-{at}": at for at in range(20_000)})
    reader = JsonReader(text)
    assert sum(1 for _ in reader.steps()) >= 20_000 // json_reader.TOKENS
    assert len(reader.document) == 20_001
    long = json.dumps('\\"' * 200_000)
    assert sum(1 for _ in JsonReader(long).steps()) >= len(long) // json_reader.WINDOW


def test_what_is_too_much_is_left_out() -> None:
    document = read(json.dumps(list(range(100))), most=10)
    assert (len(document), document.trouble) == (10, "only the first 10 values are shown")


def test_names_and_paths_are_fit_for_a_terminal_and_values_are_decoded() -> None:
    document = read('{"a\\u001b[2J": {"b": ["caf\\u00e9 \x9b31m"]}}')
    assert document.path_of(3) == '["a\\\\x1b[2J"].b[0]'
    assert document.shown(3) == '"café \\x9b31m"'
    long = read(json.dumps("x" * 10_000))
    assert long.shown(0, 10) == '"xxxxxxxxx ... (10,002 characters)'
    assert long.span_of(0) == (0, 10_002)


def test_the_text_of_a_container_ends_with_its_bracket() -> None:
    text = ' {"a": [1, {"b": 2} ] , "c": {} } '
    document = read(text)
    texts = {document.path_of(node): text[slice(*document.span_of(node) or (0, 0))] for node in range(len(document))}
    assert texts == {
        "": text.strip(),
        "a": '[1, {"b": 2} ]',
        "a[0]": "1",
        "a[1]": '{"b": 2}',
        "a[1].b": "2",
        "c": "{}",
    }
    assert read('{"a": [1').span_of(0) == (0, 8), "of one that is not closed: up to the end"
