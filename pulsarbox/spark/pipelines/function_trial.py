"""Trial runs of a function without Spark or a broker, on a manual clock."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from pulsarbox.names import parse_topic
from pulsarbox.spark.pipelines.declaration import Function, PipelineError, step_of
from pulsarbox.spark.pipelines.message_processing import EncodedMessage, Incoming, Processor, State
from pulsarbox.times import duration

START: Final = 1_700_000_000_000
"""Initial time of a trial, in milliseconds since 1970."""


class Sent(NamedTuple):
    """Message sent by a function."""

    topic: str
    """Short form: ``clean`` for ``persistent://public/default/clean``."""
    value: bytes | None
    key: str | None
    properties: Mapping[str, str]
    event_time: int | None
    """Milliseconds since 1970."""

    @property
    def text(self) -> str:
        """The value as text."""
        return (self.value or b"").decode()

    @property
    def json(self) -> Any:
        """The value parsed as JSON."""
        return json.loads(self.value or b"null")


class _Kept:
    """State of one key."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    def get(self, name: str) -> bytes | None:
        return self.values.get(name)

    def put(self, name: str, value: bytes) -> None:
        self.values[name] = value

    def delete(self, name: str) -> None:
        self.values.pop(name, None)

    def names(self) -> Iterable[str]:
        return tuple(self.values)

    def timer(self, at: int) -> None:
        """Do nothing: ``advance`` checks the timers."""


class Trial:
    """Run a function on messages and record its output::

        trial = Trial(clean)
        assert [each.text for each in trial.send("  a ")] == ["a"]
        trial.send(b"\\xff")
        assert "UnicodeDecodeError" in trial.dead_letters[0].properties["FAILURE_REASON"]

    Time advances only with ``advance``, which also calls the timers that become due.
    """

    def __init__(self, function: Callable[..., Any] | Function, now: int = START) -> None:
        """Prepare a trial of a declared function. Raises PipelineError for a missing or invalid declaration."""
        step = function if isinstance(function, Function) else step_of(function)
        if not isinstance(step, Function):
            raise PipelineError(f"{step.query} is a frame, which only Spark can run: Trial requires a @function")
        step.check()
        self.now = now
        """Current time, in milliseconds since 1970."""
        self.sent: list[Sent] = []
        """All messages except dead letters, in order."""
        self.dead_letters: list[Sent] = []
        self._function = step
        self._kept: dict[bytes, _Kept] = {}
        self._processor = Processor(step, lambda: self.now)
        self._count = 0

    def send(
        self,
        value: Any,
        *,
        key: str | None = None,
        properties: Mapping[str, str] | None = None,
        event_time: int | None = None,
        topic: str | None = None,
    ) -> list[Sent]:
        """Process a message and return its output. Text is encoded as UTF-8, other values but bytes as JSON. Dead
        letters are in ``dead_letters``; without a topic for them, raises FunctionError."""
        self._count += 1
        payload = (
            value
            if isinstance(value, bytes | None)
            else (value if isinstance(value, str) else json.dumps(value)).encode()
        )
        name = str(parse_topic(topic)) if topic else self._topic()
        message = Incoming(
            payload,
            None if key is None else key.encode(),
            name,
            properties or {},
            event_time,
            self.now,
            f"1:{self._count}:-1:-1",
        )
        if not self._function.keyed:
            return self._noted(self._processor.process(message))
        store = self._kept.setdefault(self._processor.key_of(message), _Kept())
        return self._noted(self._processor.process(message, store))

    def advance(self, length: str) -> list[Sent]:
        """Advance the clock by a duration (``5m``), and return the output of the timers."""
        end, found = self.now + duration(length), []
        while True:
            due = [
                (min(timers.values()), key)
                for key, kept in self._kept.items()
                if (timers := State(kept, lambda: self.now).timers())
            ]
            if not due or min(due)[0] > end:
                break
            at, key = min(due)
            self.now = max(self.now, at)
            found += self._noted(self._processor.due(key, self.now, self._kept[key]))
        self.now = end
        return found

    def state(self, key: str = "") -> dict[str, Any]:
        """Return the state of a key."""
        kept = self._kept.get(key.encode())
        if kept is None:
            return {}
        state = State(kept, lambda: self.now)
        return {name: state.get(name) for name in state.names()}

    def timers(self, key: str = "") -> dict[str, int]:
        """Return the due times of a key's timers, in ms since 1970."""
        kept = self._kept.get(key.encode())
        return State(kept, lambda: self.now).timers() if kept is not None else {}

    def _topic(self) -> str:
        (selection,) = self._function.reads().values()
        return selection["topics"].split(",")[0] if "topics" in selection else "persistent://public/default/trial"

    def _noted(self, found: list[EncodedMessage]) -> list[Sent]:
        sent = []
        for each in found:
            key = None if each.key is None else each.key.decode(errors="replace")
            shown = Sent(_short(each.topic), each.value, key, dict(each.properties), each.event_time)
            if each.topic == self._function.dead_letters:
                self.dead_letters.append(shown)
            else:
                sent.append(shown)
        self.sent += sent
        return sent


def _short(topic: str) -> str:
    return topic.removeprefix("persistent://public/default/")
