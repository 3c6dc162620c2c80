"""Parser of the image's Dockerfile into instructions."""

import json
import re
import shlex
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
DOCKERFILE: Final = ROOT / "image" / "Dockerfile"


class Instruction(NamedTuple):
    """One instruction, with its continuation lines joined."""

    name: str
    text: str

    def words(self) -> list[str]:
        """Return the arguments of an instruction without a shell, in JSON form or as words."""
        found: list[str] = json.loads(self.text) if self.text.startswith("[") else shlex.split(self.text)
        return found


Stage = list[Instruction]


def stages(text: str) -> dict[str, Stage]:
    """Return the stages by name, without ARG and FROM; the name of the last one is empty."""
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
    """Return the variables set by a stage's ENV lines."""
    pairs = (word.partition("=") for each in stage if each.name == "ENV" for word in each.words())
    return {name: value for name, _, value in pairs}


def last(stage: Stage, name: str) -> Instruction:
    """Return the last instruction with a name."""
    return [each for each in stage if each.name == name][-1]


def context(ignore: str) -> list[str]:
    """Return the paths included by a .dockerignore that starts with ``*``."""
    return [line[1:] for line in ignore.splitlines() if line.startswith("!")]
