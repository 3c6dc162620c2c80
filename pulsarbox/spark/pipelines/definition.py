"""Pipelines: named and validated steps, from a file or built in code. Does not import Spark."""

import importlib.util
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

from pulsarbox.errors import PulsarBoxError
from pulsarbox.protocol.topics_pattern import TopicsPattern
from pulsarbox.spark.pipelines.declaration import (
    FILES,
    Function,
    PipelineError,
    PipelineStep,
    is_url,
    lost_of,
    milliseconds,
    steps_of,
)

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True)
class Pipeline:
    """Unit that one runner runs: one Spark query per step."""

    name: str
    steps: Sequence[PipelineStep]
    module: ModuleType | None = None
    """The user's file, shipped to the workers, which do not have it."""

    def check(self) -> None:
        """Check whatever does not depend on the broker. Raises PipelineError."""
        if not _NAME.fullmatch(self.name):
            raise PipelineError(
                f"{self.name!r} is not a valid pipeline name: use letters, digits, - _ and . (at most 100), or set "
                "another with --name"
            )
        if not self.steps:
            raise PipelineError(f"{self.name} declares no steps: decorate a function with @frame or @function")
        for step in self.steps:
            try:
                step.check()
                milliseconds(step.trigger)
            except PipelineError:
                raise
            except (PulsarBoxError, ValueError) as error:
                raise step.wrong(str(error)) from None
        for name, times in Counter(step.query for step in self.steps).items():
            if times > 1:
                raise PipelineError(
                    f"{times} steps are named {name}, but the name identifies a query's checkpoint: set name=..."
                )
        self._check_outputs()
        self._check_cycles()

    def _check_outputs(self) -> None:
        """Reject two steps that write files to one directory, which would corrupt each other. Topics may be shared."""
        directories: dict[str, PipelineStep] = {}
        for step in self.steps:
            written = step.writes()
            if written.kind in FILES:
                place = written.place.rstrip("/") if is_url(written.place) else str(Path(written.place).absolute())
                there = directories.setdefault(place, step)
                if there is not step:
                    raise step.wrong(f"writes {written}, like {there.query}: use a separate directory")

    def _check_cycles(self) -> None:
        """Reject cycles of steps, which would never end. Raises PipelineError."""
        after = {step.query: [each.query for each in self.steps if reads_from(each, step)] for step in self.steps}
        for query in after:
            found = _way_back(query, after)
            if found:
                raise PipelineError(
                    f"steps form a cycle, {' -> '.join(found)}: a message or a dead letter would circulate forever"
                )


def _way_back(query: str, after: Mapping[str, Sequence[str]]) -> list[str]:
    ways, seen = [[query]], set()
    while ways:
        way = ways.pop()
        for following in after[way[-1]]:
            if following == query:
                return [*way, query]
            if following not in seen:
                seen.add(following)
                ways.append([*way, following])
    return []


def reads_from(reader: PipelineStep, writer: PipelineStep) -> bool:
    """Return whether one step reads a topic that another writes, as output or for dead letters."""
    written = writer.writes()
    topics = [written.place] if written.kind == "topic" else []
    if isinstance(writer, Function) and writer.dead_letters is not None:
        topics.append(writer.dead_letters)
    return any(_selects(each, topic) for each in reader.reads().values() for topic in topics)


def _selects(selection: Mapping[str, str], topic: str) -> bool:
    if "topics" in selection:
        return topic in selection["topics"].split(",")
    pattern = selection["topicsPattern"]
    return TopicsPattern(pattern if pattern.count("/") > 1 else f"public/default/{pattern}").matches(topic)


def load(path: Path, name: str = "") -> Pipeline:
    """Load and check the pipeline that a file declares, named after the file unless ``name`` is set.

    Raises PipelineError for a missing file, a failed import (with the line), or missing or invalid declarations.
    """
    path = path.expanduser()
    if path.is_dir():
        raise PipelineError(f"{path} is a directory: name the file in it that declares the pipeline")
    if not path.is_file():
        raise PipelineError(f"{path} does not exist: `pulsarbox pipeline new {path}` creates a template")
    module = _imported(path)
    for lost in lost_of(vars(module)):
        raise lost.wrong(
            "is declared, but its name is redefined by a later function: give each function a name of its own (also if "
            "only a list or a dict holds it)"
        )
    pipeline = Pipeline(name or path.stem, list(steps_of(vars(module))), module)
    pipeline.check()
    return pipeline


def _imported(path: Path) -> ModuleType:
    # A unique module name shadows no other module, and workers do not look for it.
    known_as = f"pulsarbox_pipeline_{re.sub(r'[^A-Za-z0-9_]', '_', path.stem)}"
    spec = importlib.util.spec_from_file_location(known_as, path.absolute())
    if spec is None or spec.loader is None:
        raise PipelineError(f"{path} is not a Python file: its name must end with .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[known_as] = module
    folder = str(path.absolute().parent)
    if folder not in sys.path:  # allows imports from the file's directory, as with `python FILE`
        sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        sys.modules.pop(known_as, None)
        file = path if error.filename in (None, str(path.absolute())) else error.filename
        raise PipelineError(f"{file}{f':{error.lineno}' if error.lineno else ''}: {error.msg}") from error
    except SystemExit as error:
        sys.modules.pop(known_as, None)
        raise PipelineError(
            f"{_line_of(error, path)}: the file ends the process when it is imported: put that under `if __name__ == "
            '"__main__":`'
        ) from error
    except Exception as error:
        sys.modules.pop(known_as, None)
        raise PipelineError(f"{_line_of(error, path)}: {type(error).__name__}: {error}{_advice(error)}") from error
    return module


def _advice(error: Exception) -> str:
    if isinstance(error, ImportError) and "no known parent package" in str(error):
        return ": the file is not part of a package; import files next to it without the dot"
    return ""


def _line_of(error: BaseException, path: Path) -> str:
    """Return the last line of the user's file in the error's traceback."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path.absolute()):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"{path}:{line}" if line else str(path)
