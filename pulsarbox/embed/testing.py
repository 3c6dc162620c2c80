"""Assertions about messages, with readable failures."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

WITHIN_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.02
_SHOWN_MAX: Final = 70
_ROWS_MAX: Final = 40


@dataclass(frozen=True, slots=True)
class Having:
    """Expected attributes of a message; see ``having``."""

    payload: Any
    key: str | None
    properties: Mapping[str, str] | None


_ANY: Final = object()


def having(payload: Any = _ANY, *, key: str | None = None, properties: Mapping[str, str] | None = None) -> Having:
    """Expect a message with the given key, properties and payload; omitted ones are not compared."""
    return Having(payload, key, properties)


@dataclass(frozen=True, slots=True)
class SeenMessage:
    """An actual message, from any client."""

    payload: bytes
    key: str | None
    properties: Mapping[str, str]


def matches(seen: SeenMessage, expected: object) -> bool:
    """Compare a message with bytes, a string, any other value as JSON, ``having(...)``, or a function of the
    payload."""
    if isinstance(expected, Having):
        return (
            (expected.payload is _ANY or matches(seen, expected.payload))
            and (expected.key is None or expected.key == seen.key)
            and all(seen.properties.get(name) == value for name, value in (expected.properties or {}).items())
        )
    if isinstance(expected, bytes | bytearray):
        return seen.payload == bytes(expected)
    if isinstance(expected, str):
        return seen.payload == expected.encode()
    if callable(expected):
        return bool(expected(seen.payload))
    try:
        return bool(json.loads(seen.payload) == expected)
    except ValueError:
        return False


def difference(seen: Sequence[SeenMessage], expected: Sequence[object], any_order: bool = False) -> list[str]:
    """Return lines that describe the difference; empty if there is none."""
    pairs = _paired(seen, expected, any_order)
    if all(here is not None and there is not None and matches(seen[here], expected[there]) for here, there in pairs):
        return []
    lines = []
    for here, there in pairs:
        found = "" if here is None else _shown_message(seen[here])
        if there is None:
            lines.append(f"+ {here:>4}  {found}   not expected")
        elif here is None:
            lines.append(f"-       {_shown(expected[there])}   missing")
        elif matches(seen[here], expected[there]):
            lines.append(f"  {here:>4}  {found}")
        else:
            lines.append(f"! {here:>4}  {found}   expected {_shown(expected[there])}")
    if len(lines) <= _ROWS_MAX:
        return lines
    wrong = [line for line in lines if line[0] != " "]
    more = len(wrong) - _ROWS_MAX
    return [*wrong[:_ROWS_MAX], f"  ... and {more} more"] if more > 0 else wrong


def _paired(
    seen: Sequence[SeenMessage], expected: Sequence[object], any_order: bool
) -> list[tuple[int | None, int | None]]:
    if not any_order:
        longest = max(len(seen), len(expected))
        return [(i if i < len(seen) else None, i if i < len(expected) else None) for i in range(longest)]
    left = dict.fromkeys(range(len(expected)))
    pairs: list[tuple[int | None, int | None]] = []
    for here, message in enumerate(seen):
        there = next((index for index in left if matches(message, expected[index])), None)
        if there is not None:
            del left[there]
        pairs.append((here, there))
    return [*pairs, *((None, there) for there in left)]


def wait_until_as_expected(
    look: Callable[[], tuple[Sequence[SeenMessage], str]],
    expected: Sequence[object],
    *,
    what: str,
    within: float,
    any_order: bool,
) -> None:
    """Poll until the messages match. Raises AssertionError with the difference after ``within`` seconds.

    ``look`` returns the messages and a remark.
    """
    __tracebackhide__ = True  # pytest then shows the line of the test
    deadline = time.monotonic() + within
    while True:
        seen, remark = look()
        lines = difference(seen, expected, any_order)
        if not lines:
            return
        if time.monotonic() >= deadline:
            there = f"{len(seen)} message{'' if len(seen) == 1 else 's'}"
            head = f"{what}: {there}, expected {len(expected)}; no match within {within:g} s{remark}"
            raise AssertionError("\n".join([head, *lines]))
        time.sleep(_POLL_SECONDS)


class Expecting:
    """Assertions about a consumer of the official client; see ``expect``."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    def receives(
        self, *expected: object, within: float = WITHIN_SECONDS, any_order: bool = False, acknowledge: bool = True
    ) -> list[Any]:
        """Assert that these are the next messages, in order; acknowledge and return them.

        Each expected message is bytes, a string, any other value as JSON, ``having(...)``, or a function of the
        payload. Raises AssertionError with the difference if they do not arrive within ``within`` seconds.
        """
        __tracebackhide__ = True
        received: list[Any] = []
        deadline = time.monotonic() + within
        while len(received) < len(expected):
            message = self._next(deadline - time.monotonic())
            if message is None:
                break
            received.append(message)
            if acknowledge:
                self._consumer.acknowledge(message)
        lines = difference([_seen(each) for each in received], expected, any_order)
        if lines:
            head = f"{self._name()} received {len(received)} of {len(expected)} expected messages within {within:g} s"
            raise AssertionError("\n".join([head, *lines]))
        return received

    def receives_nothing(self, within: float = 0.3) -> None:
        """Assert that no message arrives within ``within`` seconds. Raises AssertionError with the message."""
        __tracebackhide__ = True
        message = self._next(within)
        if message is not None:
            raise AssertionError(f"{self._name()} received {_shown_message(_seen(message))}, expected no message")

    def _next(self, seconds: float) -> Any:
        try:
            return self._consumer.receive(timeout_millis=max(1, round(seconds * 1000)))
        except Exception as error:
            # The client's own class; importing it would make the client a dependency.
            if type(error).__name__ == "Timeout":
                return None
            raise

    def _name(self) -> str:
        return f"subscription {self._consumer.subscription_name()} of {self._consumer.topic()}"


def expect(consumer: Any) -> Expecting:
    """``expect(consumer).receives(b"a", b"b")``, ``expect(consumer).receives_nothing()``."""
    return Expecting(consumer)


def _seen(message: Any) -> SeenMessage:
    return SeenMessage(message.data(), message.partition_key() or None, message.properties())


def _shown_message(seen: SeenMessage) -> str:
    shown = _shown(seen.payload)
    if seen.key is not None:
        shown += f" key={seen.key!r}"
    return shown + (f" properties={dict(seen.properties)!r}" if seen.properties else "")


def _shown(value: object) -> str:
    if isinstance(value, Having):
        named = {"key": value.key, "properties": value.properties}
        parts = [] if value.payload is _ANY else [_shown(value.payload)]
        return " ".join([*parts, *(f"{name}={given!r}" for name, given in named.items() if given is not None)])
    if callable(value):
        return getattr(value, "__name__", repr(value))
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 3]}..."
