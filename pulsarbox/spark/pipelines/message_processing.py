"""One message through a user's function: its context, its state, retries, and what becomes of it when it fails. Pure.

Spark calls this in its workers, ``trial`` in tests: what a test sees is what a pipeline does.
"""

import json
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from pulsarbox.names import parse_topic
from pulsarbox.spark.pipelines.declaration import KEY, Function, PipelineError
from pulsarbox.times import duration

REAL_TOPIC: Final = "REAL_TOPIC"
ORIGIN_MESSAGE_ID: Final = "ORIGIN_MESSAGE_ID"
FAILURE: Final = "FAILURE_REASON"
"""Why a function gave up: exception, text, and the user's line. ``pulsarbox dlq groups`` goes by it."""
ATTEMPTS: Final = "PIPELINE_ATTEMPTS"
QUERY: Final = "PIPELINE_QUERY"
_REASON_MAX: Final = 1000
_FAILURES: Final = (Exception, SystemExit)
"""``sys.exit()`` in a function ends no worker: the message would end each that comes to it."""


class FunctionError(PipelineError):
    """A message that a function could not take, with no topic for dead letters; names the user's line."""


class Incoming(NamedTuple):
    """A message as it was read."""

    value: bytes | None
    key: bytes | None = None
    topic: str = ""
    properties: Mapping[str, str] = {}
    event_time: int | None = None
    """Milliseconds since 1970; so with all times."""
    publish_time: int | None = None
    message_id: str = ""
    """``ledger:entry:partition:index``."""


class Outgoing(NamedTuple):
    """A message as it is written."""

    topic: str
    value: bytes | None
    key: bytes | None
    properties: Mapping[str, str]
    event_time: int | None


@dataclass(frozen=True, slots=True)
class Message:
    """What a function returns where a value alone does not do: see ``Context.message``."""

    value: Any
    topic: str | None
    key: str | bytes | None
    properties: Mapping[str, str]
    event_time: int | None


class Store(Protocol):
    """Where the state of a key is kept."""

    def get(self, name: str) -> bytes | None:
        """What is kept under a name."""

    def put(self, name: str, value: bytes) -> None:
        """Keep something."""

    def delete(self, name: str) -> None:
        """Keep it no more."""

    def names(self) -> Iterable[str]:
        """All names."""

    def timer(self, at: int) -> None:
        """Have the timers looked at then, or as soon as possible behind."""


_TIMER: Final = "timer "
_VALUE: Final = "value "


class State:
    """What is kept for a key, between messages and over restarts: values that JSON has, by name; and timers.

    Changes hold when the message has succeeded: a failed attempt leaves nothing behind.
    """

    def __init__(self, store: Store, now: Callable[[], int]) -> None:
        self._store = store
        self._now = now
        self._changed: dict[str, bytes | None] = {}

    def get(self, name: str = "value", default: Any = None) -> Any:
        """What is kept under a name."""
        found = self._get(_VALUE + name)
        return default if found is None else json.loads(found)

    def put(self, value: Any, name: str = "value") -> None:
        """Keep a value. Raises TypeError for one that JSON does not have."""
        self._changed[_VALUE + name] = json.dumps(value).encode()

    def delete(self, name: str = "value") -> None:
        """Keep it no more."""
        self._changed[_VALUE + name] = None

    def names(self) -> list[str]:
        """The names of all that is kept, sorted."""
        return self._names(_VALUE)

    def timer(self, name: str = "timer", *, after: str | None = None, at: int | None = None) -> None:
        """Have ``on_timer`` called ``after`` a while (``5m``), or ``at`` a time in ms since 1970; one timer a name."""
        if (after is None) == (at is None):
            raise ValueError("a timer takes after= or at=")
        due = self._now() + duration(after) if after is not None else _time(at)
        self._changed[_TIMER + name] = str(due).encode()

    def cancel(self, name: str = "timer") -> None:
        """Have it called no more."""
        self._changed[_TIMER + name] = None

    def timers(self) -> dict[str, int]:
        """When which timer is due, ms since 1970."""
        return {name: int(self._get(_TIMER + name) or 0) for name in self._names(_TIMER)}

    def _get(self, name: str) -> bytes | None:
        return self._changed[name] if name in self._changed else self._store.get(name)

    def _names(self, kind: str) -> list[str]:
        names = {*self._store.names(), *self._changed}
        return sorted(
            each.removeprefix(kind) for each in names if each.startswith(kind) and self._get(each) is not None
        )

    def settle(self) -> None:
        """Let the changes hold."""
        for name, value in self._changed.items():
            if value is None:
                self._store.delete(name)
                continue
            self._store.put(name, value)
            if name.startswith(_TIMER):
                self._store.timer(int(value))
        self._changed.clear()

    def undo(self) -> None:
        """Forget the changes."""
        self._changed.clear()


@dataclass
class Context:
    """What a function is told beside the value of its message."""

    topic: str
    """The full name of the topic that it came from; empty in ``on_timer``."""
    key: str | bytes | None
    """Text, or bytes that are no text."""
    properties: Mapping[str, str]
    event_time: int | None
    """Milliseconds since 1970; so with all times."""
    publish_time: int | None
    message_id: str
    """``ledger:entry:partition:index``."""
    attempt: int
    """1 for the first time."""
    config: Mapping[str, Any]
    now: Callable[[], int]
    """The time in milliseconds since 1970; in tests it stands until it is moved."""
    log: Callable[..., None]
    """Writes to the runner's log, in workers to that of Spark."""
    _state: State | None = field(default=None, repr=False)

    @property
    def state(self) -> State:
        """What is kept for the message's key. Raises PipelineError where the function does not declare it."""
        if self._state is None:
            raise PipelineError("ctx.state: say @function(..., state=True), and key= where it is not the message's key")
        return self._state

    def message(
        self,
        value: Any,
        topic: str | None = None,
        *,
        key: str | bytes | None = KEY,
        properties: Mapping[str, str] | None = None,
        event_time: int | None = None,
    ) -> Message:
        """A message to be sent: to ``topic``, or to the function's output; with the key and the event time of the one
        that came, unless others are given."""
        return Message(
            value,
            topic,
            self.key if key == KEY else key,
            dict(properties or {}),
            self.event_time if event_time is None else event_time,
        )


class Processor:
    """A function, ready to be given messages."""

    def __init__(self, function: Function, now: Callable[[], int], log: Callable[..., None] = print) -> None:
        self.function = function
        self._now = now
        self._log = log
        written = function.writes()
        self._output = written.place if written.kind == "topic" else ""
        self._dead_letters = function.dead_letters

    def key_of(self, message: Incoming) -> bytes:
        """By what the state of a message is kept. Raises FunctionError for a key that cannot be made."""
        key = self.function.key
        if not callable(key):
            return message.key or b""
        try:
            return _bytes(key(self._value(message), self._context(message, None, 1))) or b""
        except _FAILURES:
            # It fails again where the message is processed, and is dealt with there.
            return message.key or b""

    def process(self, message: Incoming, store: Store | None = None) -> list[Outgoing]:
        """What a message becomes: messages, or a dead letter. Raises FunctionError where there is no topic for that."""

        def call(ctx: Context) -> Any:
            value = self._value(message)
            if callable(self.function.key):
                _bytes(self.function.key(value, ctx))
            return self.function.process(value, ctx)

        return self._tried(message, store, call)

    def due(self, key: bytes, now: int, store: Store) -> list[Outgoing]:
        """What the timers of a key give that are due by now."""
        found: list[Outgoing] = []
        state = State(store, self._now)
        for name, at in sorted(state.timers().items(), key=lambda each: each[1]):
            if at > now:
                continue
            state.cancel(name)
            state.settle()
            if self.function.on_timer is not None:
                found += self._tried(Incoming(None, key or None), store, self._timer_call(name))
        return found

    def _timer_call(self, name: str) -> Callable[[Context], Any]:
        on_timer = self.function.on_timer
        assert on_timer is not None
        return lambda ctx: on_timer(name, ctx)

    def _tried(self, message: Incoming, store: Store | None, call: Callable[[Context], Any]) -> list[Outgoing]:
        attempt = 0
        state = State(store, self._now) if store is not None else None
        while True:
            attempt += 1
            ctx = self._context(message, state, attempt)
            try:
                found = [self._outgoing(each, ctx) for each in _each(call(ctx))]
                if state is not None:
                    state.settle()
                return found
            except _FAILURES as error:
                if state is not None:
                    state.undo()
                if attempt <= self.function.retries and not isinstance(error, _UnreadableError):
                    continue
                return [self._dead_letter(message, error, attempt)]

    def _context(self, message: Incoming, state: State | None, attempt: int) -> Context:
        return Context(
            topic=message.topic,
            key=_text_or_bytes(message.key),
            properties=dict(message.properties),
            event_time=message.event_time,
            publish_time=message.publish_time,
            message_id=message.message_id,
            attempt=attempt,
            config=self.function.config,
            now=self._now,
            log=self._log,
            _state=state,
        )

    def _value(self, message: Incoming) -> Any:
        if message.value is None or self.function.value == "bytes":
            return message.value
        try:
            return message.value.decode() if self.function.value == "text" else json.loads(message.value)
        except ValueError as error:
            raise _UnreadableError(f"the value is not {self.function.value}: {error}") from None

    def _outgoing(self, found: Any, ctx: Context) -> Outgoing:
        message = found if isinstance(found, Message) else ctx.message(found)
        topic = str(parse_topic(message.topic)) if message.topic else self._output
        if not topic:
            raise PipelineError("no topic: the function has no output, and ctx.message(value, topic) was not said")
        properties, event_time = _properties(message.properties), _time(message.event_time)
        return Outgoing(topic, _bytes(message.value), _bytes(message.key), properties, event_time)

    def _dead_letter(self, message: Incoming, error: BaseException, attempts: int) -> Outgoing:
        reason = self._reason(error)
        if self._dead_letters is None:
            came = (
                f"message {message.message_id} of {message.topic}" if message.topic else f"a timer of {message.key!r}"
            )
            raise FunctionError(
                f"{reason} ({came}, {attempts} times; with dead_letter=TOPIC it would go there)"
            ) from error
        reason = reason[:_REASON_MAX].encode(errors="backslashreplace").decode()  # JSON has texts that UTF-8 has not
        told = {FAILURE: reason, ATTEMPTS: str(attempts), QUERY: self.function.query}
        if message.topic:
            told |= {REAL_TOPIC: message.topic, ORIGIN_MESSAGE_ID: message.message_id}
        # Where it was a dead letter before, it stays known where it came from first.
        first = {
            name: message.properties[name] for name in (REAL_TOPIC, ORIGIN_MESSAGE_ID) if name in message.properties
        }
        properties = {**message.properties, **told, **first}
        return Outgoing(self._dead_letters, message.value, message.key, properties, message.event_time)

    def _reason(self, error: BaseException) -> str:
        code = getattr(self.function.code, "__code__", None)
        file = code.co_filename if code is not None else ""
        lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == file]
        place = f"{Path(file).name}:{lines[-1]}" if lines else self.function.where
        if isinstance(error, _UnreadableError | PipelineError):
            return f"{place}: {error}"
        return f"{place}: {type(error).__name__}" + (f": {error}" if str(error) else "")


class _UnreadableError(ValueError):
    """A value that is not what the function takes; trying again is of no use."""


def _each(found: Any) -> Iterator[Any]:
    if found is None:
        return
    if isinstance(found, list | tuple | Iterator):
        yield from (each for each in found if each is not None)
    else:
        yield found


def _bytes(value: Any) -> bytes | None:
    """Bytes and text as they are, anything else as JSON. Raises TypeError for what JSON does not have."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    return value.encode() if isinstance(value, str) else json.dumps(value, ensure_ascii=False).encode()


def _properties(given: Mapping[Any, Any]) -> Mapping[str, str]:
    """As they are. Raises TypeError and ValueError for what cannot be sent: later it would end the query."""
    for name, text in given.items():
        if not (isinstance(name, str) and isinstance(text, str)):
            raise TypeError(f"property {name!r} is {text!r}: both are text")
        f"{name}{text}".encode()
    return given


def _time(given: Any) -> int | None:
    """As it is. Raises ValueError for what is no time in milliseconds."""
    if given is not None and not (isinstance(given, int) and 0 <= given < 1 << 63):
        raise ValueError(f"{given!r} is no time: whole milliseconds since 1970")
    return given


def _text_or_bytes(key: bytes | None) -> str | bytes | None:
    if key is None:
        return None
    try:
        return key.decode()
    except UnicodeDecodeError:
        return key
