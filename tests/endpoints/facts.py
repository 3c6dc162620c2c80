"""The recorded answers of Pulsar: one line for each request, in ``tests/data/admin-endpoint-answers.tsv``.

Columns: state, request, answer. A line with one column begins a group. The answer is a JSON array: status, media type,
shape and headers; trailing empty values are left out. The version of Pulsar is in the first line.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.endpoints.answers import Answer
from tests.endpoints.steps import Group

FILE: Final = Path(__file__).parents[1] / "data" / "admin-endpoint-answers.tsv"
VERSION: Final = "# Apache Pulsar 4.2.4, python -m tests.endpoints --record\n"


class StaleFacts(Exception):
    """The recorded requests are not those of the comparison: record them again."""


def write(answers: Mapping[str, Sequence[tuple[str, str, Answer]]], file: Path = FILE) -> None:
    """Write the answers of Pulsar, by group."""
    lines = [VERSION]
    for name, found in answers.items():
        lines.append(f"{name}\n")
        lines += (f"{state}\t{request}\t{_text(answer)}\n" for state, request, answer in found)
    file.write_text("".join(lines), "utf-8")


def read(file: Path = FILE) -> dict[str, list[tuple[str, str, Answer]]]:
    """Return (state, request, answer) of each recorded request, by group."""
    found: dict[str, list[tuple[str, str, Answer]]] = {}
    rows: list[tuple[str, str, Answer]] = []
    for line in file.read_text("utf-8").splitlines()[1:]:
        columns = line.split("\t")
        if len(columns) == 1:
            rows = found.setdefault(line, [])
        else:
            rows.append((columns[0], columns[1], _answer(columns[2])))
    return found


def of_group(group: Group, recorded: Mapping[str, Sequence[tuple[str, str, Answer]]]) -> list[Answer]:
    """Return the answers to the requests of a group, in order. Raises StaleFacts."""
    rows = recorded[group.name]
    if [(step.state, step.name) for step in group.steps] != [(state, name) for state, name, _ in rows]:
        raise StaleFacts(f"{group.name}: record its answers again with `make compare-admin ARGS=--record`")
    return [answer for _, _, answer in rows]


def _text(answer: Answer) -> str:
    values: list[object] = [answer.status, answer.type.replace("application/json", "json"), answer.shape]
    values += [list(answer.headers)] if answer.headers else []
    while values[-1] == "":
        values.pop()
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _answer(text: str) -> Answer:
    values = json.loads(text)
    status, media, shape, headers = values + ["", "", []][len(values) - 1 :]
    return Answer(status, "application/json" if media == "json" else media, shape, tuple(headers))
