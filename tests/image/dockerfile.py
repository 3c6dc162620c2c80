"""The image's Dockerfile, as far as its instructions go: read, not interpreted beyond them."""

import json
import re
import shlex
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
DOCKERFILE: Final = ROOT / "image" / "Dockerfile"


class Instruction(NamedTuple):
    """One line, joined where it goes on in the next."""

    name: str
    text: str

    def words(self) -> list[str]:
        """Its words, where it is no shell command; those of its JSON form, where it has that."""
        found: list[str] = json.loads(self.text) if self.text.startswith("[") else shlex.split(self.text)
        return found


Stage = list[Instruction]


def stages(text: str) -> dict[str, Stage]:
    """The stages by their names, the last one's being empty, without ARG and FROM."""
    text = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    found: dict[str, Stage] = {}
    current: Stage = []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        name, _, rest = line.strip().partition(" ")
        if name == "FROM":
            words = rest.split()
            current = found.setdefault(words[2] if words[1:2] == ["AS"] else "", [])
        elif name and name != "ARG":
            current.append(Instruction(name, rest.strip()))
    return found


def environment(stage: Stage) -> dict[str, str]:
    """What its ENV lines set."""
    pairs = (word.partition("=") for each in stage if each.name == "ENV" for word in each.words())
    return {name: value for name, _, value in pairs}


def last(stage: Stage, name: str) -> Instruction:
    """The last instruction of a name."""
    return [each for each in stage if each.name == name][-1]


def context(ignore: str) -> list[str]:
    """What a .dockerignore that begins with ``*`` lets through."""
    return [line[1:] for line in ignore.splitlines() if line.startswith("!")]
