"""Scenarios: files of command lines for the Java tools.

A file has scenarios, each with a heading, ``== name``. A scenario runs in a tenant and a namespace of its own; ``@``
is the tenant. The first word of a line is the tool:

- ``admin``, ``client``: pulsar-admin and pulsar-client, in one JVM for all scenarios.
- ``pulsar-admin``, ``pulsar-client``, ``pulsar-perf``, ``pulsar-shell``: a process of its own.

``FILES`` is the folder of the files that ``files.py`` writes, and ``HOME`` an empty folder. A line with ``| `` in it
has input: the rest of the line, with commands separated by ``; ``. A heading that ends with ``(box)`` is a scenario
for boxes only.
"""

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "scenarios"
BOX: Final = " (box)"
SECURE: Final = "secure-"
"""Beginning of a tool that is run over TLS and with a token: secure-perf."""


class ScriptError(ValueError):
    """A file of scenarios has a mistake; the message names file and line."""


@dataclass
class Script:
    """One scenario."""

    name: str
    lines: list[str] = field(default_factory=list)
    box_only: bool = False

    @property
    def is_secure(self) -> bool:
        """Whether a line needs a box with TLS and tokens."""
        return any(line.startswith(SECURE) for line in self.lines)


def scripts(only: list[str] | None = None) -> list[Script]:
    """Return the scenarios of all files, or of those named: ``FILE``, or ``FILE.SCENARIO``. Raises ScriptError."""
    read = [each for file in sorted(FOLDER.glob("*.txt")) for each in parse(file.stem, file.read_text("utf-8"))]
    names = {each.name for each in read} | {each.name.partition(".")[0] for each in read}
    if unknown := [each for each in only or () if each not in names]:
        raise ScriptError(f"unknown scenario {', '.join(unknown)}: expected one of {', '.join(sorted(names))}")
    return [each for each in read if not only or each.name in only or each.name.partition(".")[0] in only]


def parse(stem: str, text: str) -> list[Script]:
    """Return the scenarios of one file. Raises ScriptError."""
    read: list[Script] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("== "):
            heading = line.removeprefix("== ")
            read.append(Script(f"{stem}.{heading.removesuffix(BOX)}", box_only=heading.endswith(BOX)))
        elif line.strip() and not line.startswith("#"):
            if not read:
                raise ScriptError(f"{stem}.txt, line {number}: a command before the first heading (== name)")
            read[-1].lines.append(line.strip())
    return read


def split(line: str) -> tuple[str, list[str], str]:
    """Return the tool of a command line, its arguments, and its input."""
    command, _, given = line.partition(" | ")
    tool, *words = shlex.split(command)
    return tool, words, "".join(f"{each}\n" for each in given.split("; ")) if given else ""
