"""Differences between the answers of a box and of Pulsar to the requests of a group."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from tests.endpoints.answers import ANY_LIST, NO_ANSWER, Answer
from tests.endpoints.known import Known, known_for
from tests.endpoints.steps import Step

PENDING: Final = 501
ABSENT: Final = "absent"


class Difference(NamedTuple):
    """One part of an answer in which the two differ."""

    step: Step
    part: str
    """``status``, ``type``, ``headers``, or a field of the body, such as ``.policies.retention``."""
    box: str
    pulsar: str
    known: Known | None

    def __str__(self) -> str:
        why = f"  (known: {self.known.why})" if self.known else ""
        head = f"{self.step.state} | {self.step.name} | {self.part}{why}"
        return f"{head}\n    box:    {self.box}\n    Pulsar: {self.pulsar}"


class Compared(NamedTuple):
    """Result of one group."""

    same: int
    """Number of equal answers."""
    pending: tuple[Step, ...]
    """Requests that the box does not support yet."""
    differences: tuple[Difference, ...]
    unanswered: tuple[Step, ...] = ()
    """Requests that Pulsar did not answer in time."""


def compare(box: Sequence[tuple[Step, Answer]], pulsar: Sequence[Answer]) -> Compared:
    """Compare the answers to the same requests, in order. After an unsupported write, differences count as pending."""
    pending: list[Step] = []
    found: list[Difference] = []
    unanswered: list[Step] = []
    same = 0
    for (step, mine), theirs in zip(box, pulsar, strict=True):
        parts = list(differing(mine, theirs))
        if theirs.type == NO_ANSWER:
            unanswered.append(step)
        elif _is_pending(step, mine, theirs) or (parts and any(each.writes for each in pending)):
            pending.append(step)
        elif not parts:
            same += 1
        else:
            found += [Difference(step, *part, known_for(step, *part)) for part in parts]
    return Compared(same, tuple(pending), tuple(found), tuple(unanswered))


def _is_pending(step: Step, mine: Answer, theirs: Answer) -> bool:
    return not step.endpoint.served and mine.status == PENDING != theirs.status


def differing(mine: Answer, theirs: Answer) -> Iterator[tuple[str, str, str]]:
    """Return (part, first value, second value) of each difference; of different statuses, only these."""
    if mine.status != theirs.status:
        yield "status", str(mine), str(theirs)
    elif mine.type != theirs.type:
        yield "type", str(mine), str(theirs)
    else:
        if mine.headers != theirs.headers:
            yield "headers", " ".join(mine.headers), " ".join(theirs.headers)
        yield from fields("", mine.shape, theirs.shape)


def fields(path: str, mine: Any, theirs: Any) -> Iterator[tuple[str, str, str]]:
    """Return (path, first value, second value) of each field that differs."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        for key in [*mine, *(key for key in theirs if key not in mine)]:
            yield from fields(f"{path}.{key}", mine.get(key, ABSENT), theirs.get(key, ABSENT))
    elif isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs) == 1:
        yield from fields(f"{path}[]", mine[0], theirs[0])
    elif mine != theirs and not (ANY_LIST in (mine, theirs) and list in (type(mine), type(theirs))):
        yield path or "body", _text(mine), _text(theirs)


def _text(value: Any) -> str:
    return value if value == ABSENT else json.dumps(value, ensure_ascii=False, sort_keys=True)
