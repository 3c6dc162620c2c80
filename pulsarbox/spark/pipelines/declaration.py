"""What a file declares: frames (DataFrame to DataFrame) and functions (message to messages). Nothing of Spark.

``@frame`` and ``@function`` leave the function that they stand over as it is, and note what was declared on it.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import PERSISTENT, parse_topic
from pulsarbox.protocol.topics_pattern import PatternError, TopicsPattern
from pulsarbox.times import duration

MODES: Final = ("append", "update", "complete")
FILES: Final = ("parquet", "json", "csv")
"""Kinds of files that an output may be: ``parquet:DIR``."""
PATTERN: Final = "regex:"
KEY: Final = "__key"
VALUES: Final = ("bytes", "text", "json")
NOTED: Final = "__pulsarbox_step__"
"""The attribute of a declared function, and the name in its module, that holds what was declared."""

Topics = str | Sequence[str]
Mode = Literal["append", "update", "complete"]
_F = TypeVar("_F", bound=Callable[..., Any])
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


class PipelineError(PulsarBoxError):
    """A pipeline that cannot be run as it stands; says which step of it, and what to do."""


@dataclass(frozen=True, slots=True)
class Output:
    """Where the rows of a step go."""

    kind: str
    """``topic``; one of FILES; ``rows``: each row names its topic in ``__topic``."""
    place: str = ""
    """The topic's full name, or the directory: a path, or a URL of a file system that Spark knows."""

    def __str__(self) -> str:
        if self.kind == "rows":
            return "__topic of each row"
        return self.place if self.kind == "topic" else f"{self.kind}:{self.place}"


@dataclass(frozen=True, kw_only=True)
class Step:
    """What frames and functions have in common: one query of Spark."""

    inputs: Topics | Mapping[str, Topics]
    """A topic, several, or a pattern ``regex:tenant/namespace/regex``; by name, where there are several frames."""
    output: str | None = None
    """A topic; ``parquet:DIR``, ``json:DIR`` or ``csv:DIR``; None where rows say it in ``__topic``."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of ``readStream`` for all inputs."""
    sink: Mapping[str, str] = field(default_factory=dict)
    """Options of ``writeStream``."""
    trigger: str = "1 second"
    """A micro-batch so often at most, as Spark writes it."""
    name: str = ""
    """Of the query, and of its checkpoint; that of the Python function unless given."""

    @property
    def code(self) -> Callable[..., Any]:
        """The user's Python function."""
        raise NotImplementedError

    @property
    def query(self) -> str:
        """The name of the query."""
        return self.name or getattr(self.code, "__name__", "")

    @property
    def where(self) -> str:
        """The user's file and line, for errors."""
        return where_of(self.code)

    def reads(self) -> dict[str, dict[str, str]]:
        """The options that select topics, by the name of the input; the name is empty where there is one.

        Raises PipelineError, InvalidTopicName.
        """
        given = self.inputs if isinstance(self.inputs, Mapping) else {"": self.inputs}
        if not given:
            raise self.wrong("has no inputs: name a topic")
        return {name: self._selection(each) for name, each in given.items()}

    def _selection(self, topics: Topics) -> dict[str, str]:
        if isinstance(topics, str) and topics.startswith(PATTERN):
            pattern = topics.removeprefix(PATTERN).removeprefix(f"{PERSISTENT}://")
            try:
                TopicsPattern(pattern)
            except PatternError as error:
                raise self.wrong(f"inputs: {pattern!r} is no pattern: {error}") from None
            return {"topicsPattern": pattern}
        names = [topics] if isinstance(topics, str) else list(topics)
        if not names or not all(names):
            raise self.wrong("inputs: name a topic, a list of topics, or regex:PATTERN")
        return {"topics": ",".join(str(parse_topic(each)) for each in names)}

    def writes(self) -> Output:
        """Where its rows go. Raises PipelineError, InvalidTopicName."""
        if self.output is None:
            return Output("rows")
        kind, colon, place = self.output.partition(":")
        if not colon or place.startswith("//"):
            return Output("topic", str(parse_topic(self.output)))
        if kind not in FILES:
            raise self.wrong(
                f"output {self.output!r}: there is no {kind}:, but {', '.join(f'{each}:' for each in FILES)}"
            )
        if not place:
            raise self.wrong(f"output {self.output!r} names no directory: {kind}:DIR")
        return Output(kind, place if is_url(place) else str(Path(place).expanduser()))

    def check(self) -> None:
        """Raises PipelineError, InvalidTopicName where it cannot be run whatever the broker has."""
        if not _NAME.fullmatch(self.query):
            raise self.wrong("needs a name of letters, digits, - _ and . (at most 100): say name=...")
        if not callable(self.code):
            raise self.wrong("is no function")
        if inspect.iscoroutinefunction(self.code) or inspect.isasyncgenfunction(self.code):
            raise self.wrong("is async, and nobody would await it: declare it with def alone")
        self.reads()
        self.writes()
        for option in ("service.url", "checkpointLocation", "topic", "topics", "topicsPattern"):
            if option in self.options or option in self.sink:
                raise self.wrong(f"option {option} is the runner's: use inputs, output, --url and --state")

    def wrong(self, text: str) -> PipelineError:
        """An error that names the step, and where it stands."""
        return PipelineError(f"{self.query or 'a step'} ({self.where}): {text}")


@dataclass(frozen=True, kw_only=True)
class Frame(Step):
    """DataFrame to DataFrame, any operator of Spark: ``build`` is called once, when the query starts.

    It gets one frame for each input: by place where ``inputs`` is a topic or a list, by name where it is a mapping.
    Whoever makes one in code may ask for the session as well, with a parameter ``spark``.
    """

    build: Callable[..., Any]
    mode: Mode = "append"
    """What a micro-batch puts out: new rows, those that changed, or all of an aggregation."""

    @property
    def code(self) -> Callable[..., Any]:
        return self.build

    def check(self) -> None:
        super().check()
        if self.mode not in MODES:
            raise self.wrong(f"mode {self.mode!r} is none of {', '.join(MODES)}")
        if self.writes().kind in FILES and self.mode != "append":
            raise self.wrong(f"files take mode append only, not {self.mode}")
        names = [name for name in self.reads() if name]
        self._check_called(names)

    def _check_called(self, names: Sequence[str]) -> None:
        signature = _signature(self.build)
        if signature is None:
            return
        given: dict[str, object] = dict.fromkeys(names)
        if "spark" in signature.parameters and "spark" not in given:
            given["spark"] = None
        try:
            signature.bind(*([] if names else [None]), **given)
        except TypeError as error:
            wanted = ", ".join(names) or "one frame"
            raise self.wrong(f"must take {wanted}: {error}") from None


@dataclass(frozen=True, kw_only=True)
class Function(Step):
    """Message to messages: what Pulsar calls a function. ``process`` is called for each message, in a worker.

    What it returns is sent to ``output``: None is nothing, a list is several, ``ctx.message`` is one with a key,
    properties or another topic. Where it raises it is tried again ``retries`` times; then the message goes to
    ``dead_letter`` with the reason, in the same commit as everything else.
    """

    process: Callable[..., Any]
    dead_letter: str | None = None
    """A topic; without one a message that fails ends the query."""
    retries: int = 2
    key: str | Callable[..., Any] | None = None
    """What state is kept by: ``__key`` is the message's key, or a function of (value, ctx) that gives a text."""
    state: bool = False
    """Whether ``ctx.state`` is there; it is by ``key``, which is ``__key`` unless given."""
    on_timer: Callable[..., Any] | None = None
    """Called as (name, ctx) when a timer of ``ctx.state`` is due."""
    value: str = "bytes"
    """What ``value`` is: ``bytes``, ``text`` (UTF-8), or ``json``."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """What ``ctx.config`` is."""

    @property
    def code(self) -> Callable[..., Any]:
        return self.process

    @property
    def keyed(self) -> bool:
        """Whether messages of one key come to one place, where their state is."""
        return self.state or self.key is not None or self.on_timer is not None

    @property
    def dead_letters(self) -> str | None:
        """The full name of the topic for dead letters."""
        return None if self.dead_letter is None else str(parse_topic(self.dead_letter))

    def check(self) -> None:
        super().check()
        if isinstance(self.inputs, Mapping):
            raise self.wrong("inputs: a function takes topics, not names of frames")
        if self.writes().kind in FILES:
            raise self.wrong("output: a function writes to topics; write files with a frame over its output")
        if self.retries < 0:
            raise self.wrong(f"retries is {self.retries}: it is 0 or more")
        if self.value not in VALUES:
            raise self.wrong(f"value {self.value!r} is none of {', '.join(VALUES)}")
        if isinstance(self.key, str) and self.key != KEY:
            raise self.wrong(f"key {self.key!r}: it is {KEY!r}, or a function of (value, ctx)")
        if self.dead_letter is not None and self.dead_letters == self.writes().place:
            raise self.wrong("output and dead_letter are one topic: give them two")
        for called in (self.process, self.on_timer, self.key):
            self._check_takes_two(called)

    def _check_takes_two(self, called: object) -> None:
        signature = _signature(called) if callable(called) else None
        if signature is None:
            return
        try:
            signature.bind(None, None)
        except TypeError:
            name = getattr(called, "__name__", "it")
            raise self.wrong(f"{name} must take two arguments, a value and ctx") from None


def frame(
    *,
    inputs: Topics | Mapping[str, Topics],
    output: str | None = None,
    mode: Mode = "append",
    options: Mapping[str, str] | None = None,
    sink: Mapping[str, str] | None = None,
    trigger: str = "1 second",
    name: str = "",
) -> Callable[[_F], _F]:
    """Declares a function of DataFrames as a step of the pipeline that its file is: see Frame."""

    def declare(build: _F) -> _F:
        made = Frame(
            build=build,
            inputs=inputs,
            output=output,
            mode=mode,
            options=options or {},
            sink=sink or {},
            trigger=trigger,
            name=name,
        )
        return _noted(build, made)

    return declare


def function(  # noqa: PLR0913 - each is a word of the declaration
    *,
    inputs: Topics,
    output: str | None = None,
    dead_letter: str | None = None,
    retries: int = 2,
    key: str | Callable[..., Any] | None = None,
    state: bool = False,
    on_timer: Callable[..., Any] | None = None,
    value: str = "bytes",
    config: Mapping[str, Any] | None = None,
    options: Mapping[str, str] | None = None,
    sink: Mapping[str, str] | None = None,
    trigger: str = "1 second",
    name: str = "",
) -> Callable[[_F], _F]:
    """Declares a function of (value, ctx) as a step of the pipeline that its file is: see Function."""

    def declare(process: _F) -> _F:
        made = Function(
            process=process,
            inputs=inputs,
            output=output,
            dead_letter=dead_letter,
            retries=retries,
            key=key,
            state=state,
            on_timer=on_timer,
            value=value,
            config=config or {},
            options=options or {},
            sink=sink or {},
            trigger=trigger,
            name=name,
        )
        return _noted(process, made)

    return declare


def _noted(code: _F, step: Step) -> _F:
    setattr(code, NOTED, (*getattr(code, NOTED, ()), step))
    names = getattr(inspect.unwrap(code), "__globals__", None)
    if names is not None:
        names.setdefault(NOTED, []).append(step)
    return code


def steps_of(names: Mapping[str, object]) -> Iterator[Step]:
    """What was declared among the names of a module, in their order; each once."""
    seen: set[int] = set()
    for each in list(names.values()):
        noted = getattr(each, NOTED, None) if callable(each) else None
        for step in noted if isinstance(noted, tuple) else ():
            if isinstance(step, Step) and id(step) not in seen:
                seen.add(id(step))
                yield step


def lost_of(names: Mapping[str, object]) -> list[Step]:
    """What was declared in a module and has no name there any more: Python lets a function replace one of its name."""
    declared = names.get(NOTED)
    there = {id(step) for step in steps_of(names)}
    return [step for step in declared if id(step) not in there] if isinstance(declared, list) else []


def step_of(code: Callable[..., Any]) -> Step:
    """What was declared on a function. Raises PipelineError."""
    noted = getattr(code, NOTED, ())
    if not noted:
        raise PipelineError(f"{getattr(code, '__name__', code)} is neither a @frame nor a @function")
    step: Step = noted[0]
    return step


def is_url(place: str) -> bool:
    """Whether a directory is one of a file system that Spark finds by its name: ``s3a://bucket/dir``, ``file:/dir``."""
    return _URL.match(place) is not None


def where_of(code: object) -> str:
    """``file.py:12``: where a function begins."""
    found = getattr(inspect.unwrap(code), "__code__", None) if callable(code) else None
    return f"{Path(found.co_filename).name}:{found.co_firstlineno}" if found is not None else "in code"


def milliseconds(trigger: str) -> int:
    """The length of a trigger: ``1 second``, ``500 milliseconds``, ``5s``. Raises ValueError."""
    number, _, unit = trigger.strip().partition(" ")
    units = {"millisecond": 1, "second": 1000, "minute": 60_000, "hour": 3_600_000}
    if unit and unit.strip().removesuffix("s") in units and number.isascii() and number.isdigit():
        return int(number) * units[unit.strip().removesuffix("s")]
    return duration(trigger.strip())


def _signature(code: object) -> inspect.Signature | None:
    try:
        return inspect.signature(code)  # type: ignore[arg-type]  # what cannot be called says so itself
    except (TypeError, ValueError):  # of C, or a callable object that does not say
        return None
