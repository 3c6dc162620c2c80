"""House rules beyond the linters: sizes, docstrings, tabs, and origins of packages."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("pulsarbox", "storage", "tui", "plugins", "tests", "examples", "benchmarks")
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 600

# Lock files name versions; the installing machine chooses the package source.
# \W stands for any one punctuation mark, so that a search of the tree for such sources does not match this line.
PLACE_OF_PACKAGES = re.compile(r"https?:/{2}|--(extra-)?index\Wurl|--find\Wlinks|--trusted\Whost|--hash| @ ")


def python_files(folder: str) -> list[Path]:
    # rglob does not follow links, so each file is listed once.
    return sorted(path for path in (ROOT / folder).rglob("*.py") if not path.stem.endswith("_pb2"))


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of lines from ``def`` to the end, without the docstring."""
    docstring = ast.get_docstring(function, clean=False)
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1 - (docstring.count("\n") + 1 if docstring else 0)


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return the functions of a module, including nested ones; expressions contain none and are skipped."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        if isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            yield from functions(node)


HEAD = re.compile(r"( *)(@|class |(?:async )?def )")
OTHER_TEXTS = re.compile(r"[(=,{] *[a-z]*\"{3}|\'{3}")
"""Strings other than docstrings, whose lines may look like code."""


def is_tidy(text: str) -> bool:
    """Return whether the lines of a module alone show that it is tidy, which takes less time than parsing it."""
    if "\t" in text or text.count("\n") > FILE_LINES_MAX or not text.startswith('"""') or OTHER_TEXTS.search(text):
        return False
    lines = text.splitlines()
    functions: list[tuple[int, int]] = []  # indents and numbers of the lines that begin what is not over yet
    for number, line in enumerate([*lines, "class Last:"]):
        if not (head := HEAD.match(line)):
            continue
        while functions and functions[-1][0] >= len(head[1]):
            if number - functions.pop()[1] > FUNCTION_LINES_MAX:
                return False
        if head[2].endswith("def "):
            functions.append((len(head[1]), number))
    return True


def untidy(text: str) -> list[str]:
    """Return the rule violations of a module."""
    tree = ast.parse(text)
    lengths = [(function.name, lines_of(function)) for function in functions(tree)]
    return [
        *(["no docstring"] if text.strip() and not ast.get_docstring(tree) else []),
        *([f"more than {FILE_LINES_MAX} lines"] if text.count("\n") > FILE_LINES_MAX else []),
        *(["a tab"] if "\t" in text else []),
        *(f"{name}: {lines} lines" for name, lines in lengths if lines > FUNCTION_LINES_MAX),
    ]


@pytest.mark.parametrize("folder", FOLDERS)
def test_modules_are_small_say_what_they_are_and_have_no_tabs(folder: str) -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in python_files(folder)}
    assert texts
    found = {path: untidy(text) for path, text in texts.items() if not is_tidy(text)}
    assert {path.relative_to(ROOT).as_posix(): what for path, what in found.items() if what} == {}


def test_what_is_untidy_is_seen() -> None:
    body = "    pass\n"
    assert untidy("") == untidy(f'"""It is."""\n\n\ndef small() -> None:\n{body * 69}') == []
    inner = "        def long() -> None:\n" + "            pass\n" * 70
    tried = f"    try:\n        pass\n    except OSError:\n{inner}"
    long = f'"""It is."""\nclass A:\n{tried}'
    large = '"""It is."""\n' + "\n" * FILE_LINES_MAX
    tabbed = '"""It is."""\n#\t\n'
    assert untidy(f"class A:\n{tried}#\t\n") == ["no docstring", "a tab", "long: 71 lines"]
    assert [untidy(each) for each in (long, large, tabbed)] == [["long: 71 lines"], ["more than 600 lines"], ["a tab"]]
    assert not any(map(is_tidy, (f"class A:\n{tried}", long, large, tabbed, f"{long}def more() -> None:\n    pass\n")))
    assert is_tidy(f'"""It is."""\n\n\ndef small() -> None:\n{body * 69}')


SHARED_NAMES = {"Message"}
"""Public names of ``pulsarbox`` and of ``pulsarbox.pipelines``."""


def test_the_name_of_a_class_has_one_meaning() -> None:
    found = defaultdict(set)
    for folder in ("pulsarbox", "storage", "tui", "plugins"):
        for path in python_files(folder):
            for name in re.findall(r"^class ([A-Za-z]\w*)", path.read_text(encoding="utf-8"), re.MULTILINE):
                found[name].add(path.relative_to(ROOT).as_posix())
    assert found.keys() > SHARED_NAMES
    assert {name: sorted(paths) for name, paths in found.items() if len(paths) > 1 and name not in SHARED_NAMES} == {}


def numbered_fields(text: str) -> list[str]:
    """Return entry fields (``entry``, ``x.entry``) and entry header fields that are subscripted by a literal number."""
    if not re.search(r"(entry|header)\s*\[\s*\d", text):
        return []
    return [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, int)
        and (ast.unparse(node.value) == "header" or ast.unparse(node.value).rpartition(".")[2] == "entry")
    ]


@pytest.mark.parametrize("folder", ["pulsarbox/broker", "pulsarbox/server", "storage"])
def test_the_fields_of_an_entry_are_named(folder: str) -> None:
    found = {path: numbered_fields(path.read_text(encoding="utf-8")) for path in python_files(folder)}
    assert {path.relative_to(ROOT).as_posix(): lines for path, lines in found.items() if lines} == {}


def test_a_numbered_field_is_seen() -> None:
    assert numbered_fields("a = entry.body, entry[:2], entry[at], entries[0], live.header[1]") == []
    assert numbered_fields("entry[11]\nmove.entry[0]\nheader[4]") == [
        "line 1: entry[11]", "line 2: move.entry[0]", "line 3: header[4]"
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_a_lock_file_has_plain_pins_only(name: str) -> None:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    assert lines
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line)] == []


def test_the_dev_lock_has_every_pin_of_the_other() -> None:
    run, dev = (set((ROOT / name).read_text().split()) for name in ("requirements.lock", "requirements-dev.lock"))
    assert run - dev == set()


@pytest.mark.parametrize("name", ["pyproject.toml", "pulsarbox.toml", "Makefile", ".ci/environment", ".ci/run"])
def test_no_place_of_packages_is_named(name: str) -> None:
    assert PLACE_OF_PACKAGES.findall((ROOT / name).read_text(encoding="utf-8")) == []


def test_the_files_of_tests_are_named_so_that_pytest_finds_them() -> None:
    holders = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("*.py")
        if not path.name.startswith("test_") and re.search(r"^(async )?def test_", path.read_text(), re.MULTILINE)
    ]
    assert holders == []
