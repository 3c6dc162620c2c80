"""Pipeline declarations: frames (DataFrame to DataFrame), functions (message to messages). Does not import Spark.

``@frame`` and ``@function`` return the decorated function unchanged, with the declaration attached to it.
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
from pulsarbox.spark.lakehouse import table_place
from pulsarbox.times import duration

MODES: Final = ("append", "update", "complete")
FILES: Final = ("parquet", "json", "csv")
"""File formats of an output, as in ``parquet:DIR``."""
TABLES: Final = ("iceberg", "delta")
"""Table formats of an output, as in ``iceberg:DIR/NAMESPACE.TABLE`` and ``delta:DIR``."""
PATTERN: Final = "regex:"
KEY: Final = "__key"
VALUES: Final = ("bytes", "text", "json")
NOTED: Final = "__pulsarbox_step__"
"""Attribute of a declared function, and variable of its module, that holds the declarations."""

Topics = str | Sequence[str]
Mode = Literal["append", "update", "complete"]
_F = TypeVar("_F", bound=Callable[..., Any])
_OF_RUNNER: Final = (
    *("service.url", "checkpointLocation", "topic", "topics", "topicsPattern", "table"),
    *("txnAppId", "txnVersion"),
)
"""Options that a step must not set."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


class PipelineError(PulsarBoxError):
    """Invalid or unusable pipeline; the message names the step and the remedy."""


@dataclass(frozen=True, slots=True)
class StepOutput:
    """Destination of a step's rows."""

    kind: str
    """``topic``; one of FILES or TABLES; or ``rows``: each row names its topic in ``__topic``."""
    place: str = ""
    """The topic's full name; the directory: a path, or a URL of a file system that Spark supports; or the table."""

    def __str__(self) -> str:
        if self.kind == "rows":
            return "__topic of each row"
        return self.place if self.kind == "topic" else f"{self.kind}:{self.place}"


@dataclass(frozen=True, kw_only=True)
class PipelineStep:
    """Common part of frames and functions: the declaration of one Spark query."""

    inputs: Topics | Mapping[str, Topics]
    """A topic, several, or a pattern ``regex:tenant/namespace/regex``; for several frames a mapping by name."""
    output: str | None = None
    """A topic; ``parquet:DIR``, ``json:DIR`` or ``csv:DIR``; ``iceberg:[DIR/]NAMESPACE.TABLE`` or ``delta:DIR``; None
    if rows name their topic in ``__topic``."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of ``readStream`` for all inputs."""
    sink: Mapping[str, str] = field(default_factory=dict)
    """Options of ``writeStream``."""
    trigger: str = "1 second"
    """Minimum interval between micro-batches, in Spark's syntax."""
    name: str = ""
    """Name of the query and its checkpoint; by default that of the Python function."""

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
        """Return the options that select topics, by the input's name, which is empty for a single input.

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
                raise self.wrong(f"inputs: {pattern!r} is not a valid pattern: {error}") from None
            return {"topicsPattern": pattern}
        names = [topics] if isinstance(topics, str) else list(topics)
        if not names or not all(names):
            raise self.wrong("inputs: expected a topic, a list of topics, or regex:PATTERN")
        return {"topics": ",".join(str(parse_topic(each)) for each in names)}

    def writes(self) -> StepOutput:
        """Return the destination of the rows. Raises PipelineError, InvalidTopicName."""
        if self.output is None:
            return StepOutput("rows")
        kind, colon, place = self.output.partition(":")
        if not colon or place.startswith("//"):
            return StepOutput("topic", str(parse_topic(self.output)))
        if kind not in FILES + TABLES:
            raise self.wrong(
                f"output {self.output!r}: unknown format {kind}:, expected one of "
                f"{', '.join(f'{each}:' for each in FILES + TABLES)}"
            )
        if kind == "iceberg":
            try:
                return StepOutput(kind, str(table_place.parse(place)))
            except table_place.TableError as error:
                raise self.wrong(f"output {self.output!r}: {error}") from None
        if not place:
            raise self.wrong(f"output {self.output!r} has no directory: expected {kind}:DIR")
        return StepOutput(kind, place if is_url(place) else str(Path(place).expanduser()))

    def check(self) -> None:
        """Check whatever does not depend on the broker. Raises PipelineError, InvalidTopicName."""
        if not _NAME.fullmatch(self.query):
            raise self.wrong("requires a name of letters, digits, - _ and . (at most 100): set name=...")
        if not callable(self.code):
            raise self.wrong("is not a function")
        if inspect.iscoroutinefunction(self.code) or inspect.isasyncgenfunction(self.code):
            raise self.wrong("is async, and nothing would await it: use a plain def")
        self.reads()
        self.writes()
        for option in _OF_RUNNER:
            if option in self.options or option in self.sink:
                raise self.wrong(f"option {option} is set by the runner: use inputs, output, --url and --state")

    def wrong(self, text: str) -> PipelineError:
        """Return an error that names the step and its location."""
        return PipelineError(f"{self.query or 'a step'} ({self.where}): {text}")


@dataclass(frozen=True, kw_only=True)
class Frame(PipelineStep):
    """Step from DataFrame to DataFrame with any Spark operators: ``build`` is called once, when the query starts.

    It receives one frame per input: positional if ``inputs`` is a topic or a list, by name if it is a mapping. A
    parameter ``spark``, if present, receives the session.
    """

    build: Callable[..., Any]
    mode: Mode = "append"
    """Rows that a micro-batch emits: new ones, changed ones, or all of an aggregation."""

    @property
    def code(self) -> Callable[..., Any]:
        return self.build

    def check(self) -> None:
        super().check()
        if self.mode not in MODES:
            raise self.wrong(f"mode {self.mode!r}: expected one of {', '.join(MODES)}")
        if self.writes().kind in FILES + TABLES and self.mode != "append":
            raise self.wrong(f"files and tables support mode append only, not {self.mode}")
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
            raise self.wrong(f"must accept {wanted}: {error}") from None


@dataclass(frozen=True, kw_only=True)
class Function(PipelineStep):
    """Step from message to messages, like a Pulsar function: ``process`` is called for each message, in a worker.

    Its result is sent to ``output``: None is nothing, a list is several messages, ``ctx.message`` is a message with a
    key, properties or another topic. After ``retries`` failed retries the message goes to ``dead_letter`` with the
    reason, in the same commit as all other output.
    """

    process: Callable[..., Any]
    dead_letter: str | None = None
    """Topic for dead letters; without one, a message that fails ends the query."""
    retries: int = 2
    key: str | Callable[..., Any] | None = None
    """Key of the state: ``__key`` is the message's key, or a function of (value, ctx) that returns text."""
    state: bool = False
    """Whether ``ctx.state`` is available, by ``key``, which defaults to ``__key``."""
    on_timer: Callable[..., Any] | None = None
    """Called as (name, ctx) when a timer of ``ctx.state`` is due."""
    value: str = "bytes"
    """Type of ``value``: ``bytes``, ``text`` (UTF-8), or ``json``."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Value of ``ctx.config``."""

    @property
    def code(self) -> Callable[..., Any]:
        return self.process

    @property
    def keyed(self) -> bool:
        """Whether messages are grouped by key, with state."""
        return self.state or self.key is not None or self.on_timer is not None

    @property
    def dead_letters(self) -> str | None:
        """The full name of the dead letter topic."""
        return None if self.dead_letter is None else str(parse_topic(self.dead_letter))

    def check(self) -> None:
        super().check()
        if isinstance(self.inputs, Mapping):
            raise self.wrong("inputs: a function takes topics, not frames by name")
        if self.writes().kind in FILES + TABLES:
            raise self.wrong(
                "output: a function writes to topics; to write files or tables, add a frame that reads its output"
            )
        if self.retries < 0:
            raise self.wrong(f"retries is {self.retries}: must be 0 or more")
        if self.value not in VALUES:
            raise self.wrong(f"value {self.value!r}: expected one of {', '.join(VALUES)}")
        if isinstance(self.key, str) and self.key != KEY:
            raise self.wrong(f"key {self.key!r}: expected {KEY!r}, or a function of (value, ctx)")
        if self.dead_letter is not None and self.dead_letters == self.writes().place:
            raise self.wrong("output and dead_letter are the same topic: use two topics")
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
    """Declare a function of DataFrames as a step of its file's pipeline: see Frame."""

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


def function(  # noqa: PLR0913 - the keywords of the declaration
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
    """Declare a function of (value, ctx) as a step of its file's pipeline: see Function."""

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


def _noted(code: _F, step: PipelineStep) -> _F:
    setattr(code, NOTED, (*getattr(code, NOTED, ()), step))
    names = getattr(inspect.unwrap(code), "__globals__", None)
    if names is not None:
        names.setdefault(NOTED, []).append(step)
    return code


def steps_of(names: Mapping[str, object]) -> Iterator[PipelineStep]:
    """Yield the declarations among a module's names, in their order, each once."""
    seen: set[int] = set()
    for each in list(names.values()):
        noted = getattr(each, NOTED, None) if callable(each) else None
        for step in noted if isinstance(noted, tuple) else ():
            if isinstance(step, PipelineStep) and id(step) not in seen:
                seen.add(id(step))
                yield step


def lost_of(names: Mapping[str, object]) -> list[PipelineStep]:
    """Return the declarations whose functions have no name in the module any more: redefined by a later function."""
    declared = names.get(NOTED)
    there = {id(step) for step in steps_of(names)}
    return [step for step in declared if id(step) not in there] if isinstance(declared, list) else []


def step_of(code: Callable[..., Any]) -> PipelineStep:
    """Return the declaration attached to a function. Raises PipelineError."""
    noted = getattr(code, NOTED, ())
    if not noted:
        raise PipelineError(f"{getattr(code, '__name__', code)} is neither a @frame nor a @function")
    step: PipelineStep = noted[0]
    return step


def is_url(place: str) -> bool:
    """Return whether a directory is a URL with a file system scheme: ``s3a://bucket/dir``, ``file:/dir``."""
    return _URL.match(place) is not None


def where_of(code: object) -> str:
    """Return ``file.py:12``, the location of a function."""
    found = getattr(inspect.unwrap(code), "__code__", None) if callable(code) else None
    return f"{Path(found.co_filename).name}:{found.co_firstlineno}" if found is not None else "in code"


def milliseconds(trigger: str) -> int:
    """Return the length of a trigger: ``1 second``, ``500 milliseconds``, ``5s``. Raises ValueError."""
    number, _, unit = trigger.strip().partition(" ")
    units = {"millisecond": 1, "second": 1000, "minute": 60_000, "hour": 3_600_000}
    if unit and unit.strip().removesuffix("s") in units and number.isascii() and number.isdigit():
        return int(number) * units[unit.strip().removesuffix("s")]
    return duration(trigger.strip())


def _signature(code: object) -> inspect.Signature | None:
    try:
        return inspect.signature(code)  # type: ignore[arg-type]  # what cannot be called says so itself
    except (TypeError, ValueError):  # C functions, and callable objects without a signature
        return None
