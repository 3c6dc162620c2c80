"""Processing of one message by a user's function: context, state, retries, and dead letters. Pure.

Spark workers and ``function_trial`` share this code, so tests see the behaviour of a pipeline.
"""

import json
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from pulsarbox.names import parse_topic
from pulsarbox.protocol.dead_letters.properties import (
    FAILURE_REASON,
    ORIGIN_MESSAGE_ID,
    PIPELINE_ATTEMPTS,
    PIPELINE_QUERY,
    REAL_TOPIC,
)
from pulsarbox.spark.pipelines.declaration import KEY, Function, PipelineError
from pulsarbox.times import duration

_REASON_MAX: Final = 1000
_FAILURES: Final = (Exception, SystemExit)
"""Includes ``sys.exit()``, which would otherwise end each worker that retries the message."""


class FunctionError(PipelineError):
    """A message failed in a function without a dead letter topic; the message names the user's line."""


class Incoming(NamedTuple):
    """Message as read."""

    value: bytes | None
    key: bytes | None = None
    topic: str = ""
    properties: Mapping[str, str] = {}
    event_time: int | None = None
    """Milliseconds since 1970, like all times."""
    publish_time: int | None = None
    message_id: str = ""
    """``ledger:entry:partition:index``."""


class EncodedMessage(NamedTuple):
    """Message to write."""

    topic: str
    value: bytes | None
    key: bytes | None
    properties: Mapping[str, str]
    event_time: int | None


@dataclass(frozen=True, slots=True)
class Message:
    """Result of a function that is more than a value: see ``Context.message``."""

    value: Any
    topic: str | None
    key: str | bytes | None
    properties: Mapping[str, str]
    event_time: int | None


class StateStore(Protocol):
    """Storage for the state of a key."""

    def get(self, name: str) -> bytes | None:
        """Return the value of a name."""

    def put(self, name: str, value: bytes) -> None:
        """Set a value."""

    def delete(self, name: str) -> None:
        """Delete a value."""

    def names(self) -> Iterable[str]:
        """Return all names."""

    def timer(self, at: int) -> None:
        """Schedule a check of the timers at ``at`` or as soon as possible after."""


_TIMER: Final = "timer "
_VALUE: Final = "value "


class State:
    """State of a key, across messages and restarts: JSON values by name, and timers.

    Changes take effect when the message succeeds; a failed attempt has no effect.
    """

    def __init__(self, store: StateStore, now: Callable[[], int]) -> None:
        self._store = store
        self._now = now
        self._changed: dict[str, bytes | None] = {}

    def get(self, name: str = "value", default: Any = None) -> Any:
        """Return the value of a name."""
        found = self._get(_VALUE + name)
        return default if found is None else json.loads(found)

    def put(self, value: Any, name: str = "value") -> None:
        """Set a value. Raises TypeError unless JSON can represent it."""
        self._changed[_VALUE + name] = json.dumps(value).encode()

    def delete(self, name: str = "value") -> None:
        """Delete a value."""
        self._changed[_VALUE + name] = None

    def names(self) -> list[str]:
        """Return the names of all values, sorted."""
        return self._names(_VALUE)

    def timer(self, name: str = "timer", *, after: str | None = None, at: int | None = None) -> None:
        """Schedule ``on_timer`` ``after`` a duration (``5m``) or ``at`` ms since 1970. One timer per name."""
        if (after is None) == (at is None):
            raise ValueError("a timer takes either after= or at=")
        due = self._now() + duration(after) if after is not None else _time(at)
        self._changed[_TIMER + name] = str(due).encode()

    def cancel(self, name: str = "timer") -> None:
        """Cancel a timer."""
        self._changed[_TIMER + name] = None

    def timers(self) -> dict[str, int]:
        """Return the due time of each timer, in ms since 1970."""
        return {name: int(self._get(_TIMER + name) or 0) for name in self._names(_TIMER)}

    def _get(self, name: str) -> bytes | None:
        return self._changed[name] if name in self._changed else self._store.get(name)

    def _names(self, kind: str) -> list[str]:
        names = {*self._store.names(), *self._changed}
        return sorted(
            each.removeprefix(kind) for each in names if each.startswith(kind) and self._get(each) is not None
        )

    def settle(self) -> None:
        """Commit the changes."""
        for name, value in self._changed.items():
            if value is None:
                self._store.delete(name)
                continue
            self._store.put(name, value)
            if name.startswith(_TIMER):
                self._store.timer(int(value))
        self._changed.clear()

    def undo(self) -> None:
        """Discard the changes."""
        self._changed.clear()


@dataclass
class Context:
    """Context of a message, passed to functions."""

    topic: str
    """Full name of the topic that the message came from; empty in ``on_timer``."""
    key: str | bytes | None
    """Text, or bytes that are not UTF-8."""
    properties: Mapping[str, str]
    event_time: int | None
    """Milliseconds since 1970, like all times."""
    publish_time: int | None
    message_id: str
    """``ledger:entry:partition:index``."""
    attempt: int
    """1 for the first attempt."""
    config: Mapping[str, Any]
    now: Callable[[], int]
    """Returns the time in milliseconds since 1970; a manual clock in tests."""
    log: Callable[..., None]
    """Writes to the runner's log; in workers to Spark's."""
    _state: State | None = field(default=None, repr=False)

    @property
    def state(self) -> State:
        """The state of the message's key. Raises PipelineError if the function does not declare it."""
        if self._state is None:
            raise PipelineError(
                "ctx.state requires @function(..., state=True), and key= unless the message's key is used"
            )
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
        """Return a message to send to ``topic``, by default the function's output. The key and event time default to
        those of the incoming message."""
        return Message(
            value,
            topic,
            self.key if key == KEY else key,
            dict(properties or {}),
            self.event_time if event_time is None else event_time,
        )


class Processor:
    """Runner of one function on messages."""

    def __init__(self, function: Function, now: Callable[[], int], log: Callable[..., None] = print) -> None:
        self.function = function
        self._now = now
        self._log = log
        written = function.writes()
        self._output = written.place if written.kind == "topic" else ""
        self._dead_letters = function.dead_letters

    def key_of(self, message: Incoming) -> bytes:
        """Return the key of the message's state; that of the message if the key function fails."""
        key = self.function.key
        if not callable(key):
            return message.key or b""
        try:
            return _bytes(key(self._value(message), self._context(message, None, 1))) or b""
        except _FAILURES:
            # The failure repeats in ``process``, which handles it.
            return message.key or b""

    def process(self, message: Incoming, store: StateStore | None = None) -> list[EncodedMessage]:
        """Return the output of a message, or its dead letter. Raises FunctionError without a dead letter topic."""

        def call(ctx: Context) -> Any:
            value = self._value(message)
            if callable(self.function.key):
                _bytes(self.function.key(value, ctx))
            return self.function.process(value, ctx)

        return self._tried(message, store, call)

    def due(self, key: bytes, now: int, store: StateStore) -> list[EncodedMessage]:
        """Run the due timers of a key, and return their output."""
        found: list[EncodedMessage] = []
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

    def _tried(
        self, message: Incoming, store: StateStore | None, call: Callable[[Context], Any]
    ) -> list[EncodedMessage]:
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
            raise _UnreadableError(f"the value is not valid {self.function.value}: {error}") from None

    def _outgoing(self, found: Any, ctx: Context) -> EncodedMessage:
        message = found if isinstance(found, Message) else ctx.message(found)
        topic = str(parse_topic(message.topic)) if message.topic else self._output
        if not topic:
            raise PipelineError("no topic: the function has no output; return ctx.message(value, topic)")
        properties, event_time = _properties(message.properties), _time(message.event_time)
        return EncodedMessage(topic, _bytes(message.value), _bytes(message.key), properties, event_time)

    def _dead_letter(self, message: Incoming, error: BaseException, attempts: int) -> EncodedMessage:
        reason = self._reason(error)
        if self._dead_letters is None:
            came = (
                f"message {message.message_id} of {message.topic}" if message.topic else f"a timer of {message.key!r}"
            )
            raise FunctionError(
                f"{reason} ({came}, {attempts} times; set dead_letter=TOPIC to send it there)"
            ) from error
        reason = reason[:_REASON_MAX].encode(errors="backslashreplace").decode()  # for lone surrogates from JSON
        told = {FAILURE_REASON: reason, PIPELINE_ATTEMPTS: str(attempts), PIPELINE_QUERY: self.function.query}
        if message.topic:
            told |= {REAL_TOPIC: message.topic, ORIGIN_MESSAGE_ID: message.message_id}
        # A message dead-lettered repeatedly keeps its first origin.
        first = {
            name: message.properties[name] for name in (REAL_TOPIC, ORIGIN_MESSAGE_ID) if name in message.properties
        }
        properties = {**message.properties, **told, **first}
        return EncodedMessage(self._dead_letters, message.value, message.key, properties, message.event_time)

    def _reason(self, error: BaseException) -> str:
        code = getattr(self.function.code, "__code__", None)
        file = code.co_filename if code is not None else ""
        lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == file]
        place = f"{Path(file).name}:{lines[-1]}" if lines else self.function.where
        if isinstance(error, _UnreadableError | PipelineError):
            return f"{place}: {error}"
        return f"{place}: {type(error).__name__}" + (f": {error}" if str(error) else "")


class _UnreadableError(ValueError):
    """The value does not have the declared type; not retried."""


def _each(found: Any) -> Iterator[Any]:
    if found is None:
        return
    if isinstance(found, list | tuple | Iterator):
        yield from (each for each in found if each is not None)
    else:
        yield found


def _bytes(value: Any) -> bytes | None:
    """Encode a value: bytes and text as is, anything else as JSON. Raises TypeError if JSON cannot represent it."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    return value.encode() if isinstance(value, str) else json.dumps(value, ensure_ascii=False).encode()


def _properties(given: Mapping[Any, Any]) -> Mapping[str, str]:
    """Return the properties. Raises TypeError and ValueError for invalid ones, which would fail the query later."""
    for name, text in given.items():
        if not (isinstance(name, str) and isinstance(text, str)):
            raise TypeError(f"property {name!r} is {text!r}: names and values must be text")
        f"{name}{text}".encode()
    return given


def _time(given: Any) -> int | None:
    """Return the time. Raises ValueError unless it is in milliseconds since 1970."""
    if given is not None and not (isinstance(given, int) and 0 <= given < 1 << 63):
        raise ValueError(f"{given!r} is not a time in whole milliseconds since 1970")
    return given


def _text_or_bytes(key: bytes | None) -> str | bytes | None:
    if key is None:
        return None
    try:
        return key.decode()
    except UnicodeDecodeError:
        return key
