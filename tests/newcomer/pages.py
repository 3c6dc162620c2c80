"""A documentation page as followed by a reader: its commands and files, in order."""

import re
from typing import NamedTuple

_HEADING = re.compile(r"(?P<marks>#+) (?P<title>.*)")
_FENCE = re.compile(r"```(?P<language>\w*)")
_NAMED = re.compile(r"`(?P<name>[\w./-]+\.\w+)`:")


class Command(NamedTuple):
    """A command line to type."""

    text: str
    shown: tuple[str, ...] = ()
    """Output shown on the page, line by line."""


class File(NamedTuple):
    """A block of code."""

    language: str
    name: str
    """Name given before the block, ``main.go:``; empty if there is none."""
    text: str


class Section(NamedTuple):
    """The commands and code below one heading."""

    title: str
    steps: tuple[Command | File, ...]


def sections(text: str) -> list[Section]:
    """Return the sections of a page that have steps, in order."""
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
    """Add a line of an indented block: a command with ``$``, output after such a command, otherwise a command."""
    last = steps[-1] if steps else None
    if line.startswith("$ "):
        steps.append(Command(line[2:], ("",)))
    elif isinstance(last, Command) and last.shown:
        steps[-1] = last._replace(shown=(*last.shown, line))
    else:
        steps.append(Command(line))
