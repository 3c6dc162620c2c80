"""The lines of a document while its containers are folded and unfolded."""

import json
import random
from typing import Any

from pulsarbox.tui.viewer.outline import EVERYTHING, INDENTS_MAX, Outline
from tests.unit.tui.viewer.test_json_reader import read
from tests.unit.tui.viewer.test_lines import shown, walked

ORDER = {"id": 7, "customer": {"name": "Ada", "tags": ["a", "b"]}, "lines": [{"sku": "x"}, {"sku": None}], "paid": True}


def outline(value: Any, depth: int = EVERYTHING) -> Outline:
    return Outline(read(json.dumps(value)), depth)


def drawn(lines: Outline) -> list[str]:
    return [shown(lines, at) for at in walked(lines)]


def test_every_value_has_a_line() -> None:
    assert drawn(outline(ORDER)) == [
        "▾ {4}",
        "    id: 7",
        "  ▾ customer: {2}",
        '      name: "Ada"',
        "    ▾ tags: [2]",
        '        0: "a"',
        '        1: "b"',
        "  ▾ lines: [2]",
        "    ▾ 0: {1}",
        '        sku: "x"',
        "    ▾ 1: {1}",
        "        sku: null",
        "    paid: true",
    ]


def test_what_is_folded_shows_its_first_values() -> None:
    lines = outline(ORDER, 1)
    assert drawn(lines) == [
        "▾ {4}",
        "    id: 7",
        '  ▸ customer: {2} name: "Ada", tags: [...]',
        "  ▸ lines: [2] {...}, {...}",
        "    paid: true",
    ]
    lines.fold_all()
    lines.unfold(2)
    assert len(drawn(lines)) == 7
    lines.unfold_all()
    lines.toggle(0)
    assert drawn(lines) == ["▸ {4} id: 7, customer: {...}, lines: [...], paid: true"]
    many = outline([list(range(9)), "x" * 100], 1)
    assert drawn(many)[1] == "  ▸ 0: [9] 0, 1, 2, 3, 4, ..."


def test_a_scalar_folds_the_container_around_it() -> None:
    lines = outline(ORDER)
    assert lines.fold(5) == 4 and lines.is_folded(4)
    assert lines.fold(4) == 2 and lines.is_folded(2)
    assert lines.fold(2) == 0
    assert (lines.first, lines.last, lines.after(0)) == (0, 0, None)
    lines.reveal(5)
    assert 5 in walked(lines)
    assert not lines.is_folded(0) and not lines.is_folded(2)


def test_lines_are_the_same_in_both_directions_however_they_are_folded() -> None:
    chance = random.Random(5)

    def made(depth: int) -> Any:
        if depth == 0 or chance.random() < 0.3:
            return chance.choice([1, "x", None, [], {}])
        children = [made(depth - 1) for _ in range(chance.randrange(4))]
        return children if chance.random() < 0.5 else {str(at): each for at, each in enumerate(children)}

    for _ in range(60):
        lines = outline([made(5) for _ in range(3)], chance.choice([1, 2, 3, EVERYTHING]))
        for _ in range(chance.randrange(8)):
            lines.toggle(chance.randrange(len(lines.document)))
        forward = walked(lines)
        at, backward = lines.last, []
        while at is not None:
            backward.append(at)
            at = lines.before(at)
        assert backward[::-1] == forward
        nodes = range(len(lines.document))
        assert [node for node in nodes if lines.visible(node) == node] == forward
        for node in nodes:
            lines.reveal(node)
            assert lines.visible(node) == node


def test_deep_levels_are_told_instead_of_indented() -> None:
    lines = Outline(read("[" * 100 + "]" * 100))
    assert shown(lines, 90) == "  " * INDENTS_MAX + "90· ▾ 0: [1]"


def test_names_and_values_are_searched_also_where_folded() -> None:
    lines = outline(ORDER, 1)
    assert [at for at in lines.found("SKU") if at is not None] == [9, 11]
    assert [at for at in lines.found("ada") if at is not None] == [3]
    assert list(lines.found("nothing")) == [None]
    assert 0 <= lines.share(3) < 1
