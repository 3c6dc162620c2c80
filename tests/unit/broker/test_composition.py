"""One function builds the broker, and each component is complete when its constructor returns."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import FrozenInstanceError, fields
from functools import partial
from pathlib import Path

import pytest

import pulsarbox
from pulsarbox.broker.broker import Broker
from pulsarbox.broker.callbacks import Callbacks
from pulsarbox.broker.core import Core
from tests.unit.broker.playbook import Box

PACKAGE = Path(pulsarbox.__file__).parent
ROOMS = ("broker", "server", "embed")


INNER = ("housekeeping", "tail_cache", "times", "lists")
"""Nested components that other components use."""


def parts() -> frozenset[str]:
    """Return the attribute names under which components refer to each other."""
    return frozenset({"broker", "core", *INNER, *(each.name for kind in (Broker, Core) for each in fields(kind))})


def changed_from_outside(code: str) -> Iterator[str]:
    """Yield assignments to component attributes from outside the file of their class."""
    names = parts()
    nodes = list(ast.walk(ast.parse(code)))
    own = set(own_attributes(nodes))
    for each in nodes:
        if not isinstance(each, ast.Attribute) or isinstance(each.ctx, ast.Load) or each.attr in own:
            continue
        holder = each.value
        name = holder.attr if isinstance(holder, ast.Attribute) else holder.id if isinstance(holder, ast.Name) else ""
        if name.lstrip("_") in names:
            yield f"{each.lineno}: {ast.unparse(each)}"


def own_attributes(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Return the attributes that the classes of a file declare or assign on themselves."""
    for kind in (each for each in nodes if isinstance(each, ast.ClassDef)):
        for each in ast.walk(kind):
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                yield each.target.id
            elif isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
                if isinstance(each.value, ast.Name) and each.value.id == "self":
                    yield each.attr


def test_no_part_is_changed_from_outside() -> None:
    files = [path for room in ROOMS for path in sorted((PACKAGE / room).rglob("*.py"))]
    assert len(files) > 300
    found = [f"{path.relative_to(PACKAGE)}:{line}" for path in files for line in changed_from_outside(path.read_text())]
    assert found == []


@pytest.mark.parametrize(
    "line",
    ["core.office = 1", "self._core.jobs: int = 1", "broker.commits.at_rest.held = True", "policies.telling += 1"],
)
def test_a_change_from_outside_is_noticed(line: str) -> None:
    assert list(changed_from_outside(line)) == [f"1: {line.split(' ', maxsplit=1)[0].rstrip(':')}"]


def test_parts_that_others_use_inside_of_parts_are_there() -> None:
    broker = Box().broker
    holders = (broker.commits, broker.topics)
    assert {name for name in INNER for holder in holders if hasattr(holder, name)} == set(INNER)


def test_topics_share_the_parts_of_the_broker() -> None:
    broker = Box().broker
    core = broker.topics._core
    common = {each.name for each in fields(Core)} & {each.name for each in fields(Broker)}
    assert len(common) > 15
    different = [name for name in common - {"dead_letters"} if getattr(core, name) is not getattr(broker, name)]
    assert different == []
    with pytest.raises(FrozenInstanceError):
        core.started = 1  # type: ignore[misc]


def test_callbacks_run_in_the_order_in_which_they_were_added() -> None:
    callbacks: Callbacks[int] = Callbacks()
    callbacks(0)
    seen: list[tuple[str, int]] = []

    def collect(name: str, number: int) -> None:
        seen.append((name, number))

    for name in ("b", "a"):
        callbacks.add(partial(collect, name))
    callbacks(7)
    assert seen == [("b", 7), ("a", 7)]
