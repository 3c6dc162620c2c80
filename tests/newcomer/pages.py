"""A page of the documentation as somebody follows it: its commands and its files, in their order."""

import re
from typing import NamedTuple

_HEADING = re.compile(r"(?P<marks>#+) (?P<title>.*)")
_FENCE = re.compile(r"```(?P<language>\w*)")
_NAMED = re.compile(r"`(?P<name>[\w./-]+\.\w+)`:")


class Command(NamedTuple):
    """A line to type."""

    text: str
    shown: tuple[str, ...] = ()
    """What the page shows as its output, line by line."""


class File(NamedTuple):
    """A block of code."""

    language: str
    name: str
    """The name that stands before it, ``main.go:``; empty where there is none."""
    text: str


class Section(NamedTuple):
    """What stands below one heading."""

    title: str
    steps: tuple[Command | File, ...]


def sections(text: str) -> list[Section]:
    """The sections of a page that have something to do, in their order."""
    found: list[tuple[str, list[Command | File]]] = [("", [])]
    lines = iter(text.splitlines())
    name = ""
    for line in lines:
        steps = found[-1][1]
        if heading := _HEADING.fullmatch(line):
            found.append((heading["title"], []))
        elif fence := _FENCE.fullmatch(line):
            body = []
            for inner in lines:
                if inner == "```":
                    break
                body.append(inner)
            steps.append(File(fence["language"], name, "".join(f"{each}\n" for each in body)))
            name = ""
        elif named := _NAMED.fullmatch(line):
            name = named["name"]
        elif line.startswith("    ") and line.strip():
            _take(line[4:], steps)
    return [Section(title, tuple(steps)) for title, steps in found if steps]


def _take(line: str, steps: list[Command | File]) -> None:
    """A line of an indented block: with ``$`` it is a command, behind such a one it is output, otherwise a command."""
    last = steps[-1] if steps else None
    if line.startswith("$ "):
        steps.append(Command(line[2:], ("",)))
    elif isinstance(last, Command) and last.shown:
        steps[-1] = last._replace(shown=(*last.shown, line))
    else:
        steps.append(Command(line))
