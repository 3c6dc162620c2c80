"""Fault injection in an embedded box."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypedDict, Unpack

from pulsarbox.embed.box_clock import Ask

_PATH = "/pulsarbox/v1/faults"

FaultAction = Literal["error", "delay", "drop", "disconnect", "duplicate"]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault rule of the box."""

    number: int
    _ask: Ask

    @property
    def fired(self) -> int:
        """Number of times that the fault was injected."""
        return int(self._now()["fired"])

    @property
    def matched(self) -> int:
        """Number of commands that matched the rule, including those without a fault."""
        return int(self._now()["matched"])

    def remove(self) -> None:
        """Remove the rule. Raises BoxError if it does not exist any more."""
        self._ask("DELETE", f"{_PATH}/{self.number}", None)

    def _now(self) -> dict[str, Any]:
        found: dict[str, Any] = self._ask("GET", f"{_PATH}/{self.number}", None)
        return found


class FaultRule(TypedDict, total=False):
    """Members of a rule besides its action, command and delay, so that type checkers find a misspelled one."""

    topic: str | None
    client: str | None
    producer: str | None
    subscription: str | None
    consumer: str | None
    nth: int | None
    every: int | None
    first: int | None
    probability: float | None
    seed: int | None
    at: Literal["request", "answer"] | None
    error: str | None


def _check_names(rule: Mapping[str, Any]) -> None:
    for name in rule:
        if name not in FaultRule.__annotations__:
            from pulsarbox.config.setting import did_you_mean

            known = ("command", "delay", *FaultRule.__annotations__)
            raise TypeError(f"unknown member '{name}' of a fault{did_you_mean(name, known)}")


class BoxFaults:
    """``box.faults``, for a box that was created with ``faults=True``."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def add(
        self,
        action: FaultAction,
        *,
        command: str | Sequence[str] = (),
        delay: str | timedelta | None = None,
        **rule: Unpack[FaultRule],
    ) -> Fault:
        """Add a rule: ``add("error", command="send", topic="orders", nth=3, error="PersistenceError")``.

        Actions: error, delay, drop, disconnect, duplicate. Selection: ``command``, and patterns of ``topic``,
        ``client``, ``producer``, ``subscription``, ``consumer``. Frequency: ``nth``, ``every``, ``first``,
        ``probability`` with ``seed``. ``at="answer"``: the command is executed, and the fault affects its response.
        Raises TypeError for an unknown name, and BoxError if the rule is invalid, or if the box was not created with
        ``faults=True``.
        """
        _check_names(rule)
        document: dict[str, Any] = {name: value for name, value in rule.items() if value is not None}
        document |= {"action": action, "command": [command] if isinstance(command, str) else list(command)}
        if delay is not None:
            whole = round(delay / timedelta(milliseconds=1)) if isinstance(delay, timedelta) else delay
            document["delay"] = whole
        return Fault(int(self._ask("POST", _PATH, document)["id"]), self._ask)

    @contextmanager
    def rule(
        self,
        action: FaultAction,
        *,
        command: str | Sequence[str] = (),
        delay: str | timedelta | None = None,
        **rule: Unpack[FaultRule],
    ) -> Iterator[Fault]:
        """Add a rule for the duration of a ``with`` block."""
        fault = self.add(action, command=command, delay=delay, **rule)
        try:
            yield fault
        finally:
            if any(each["id"] == fault.number for each in self.rules()):  # the block may have cleared them
                fault.remove()

    def rules(self) -> list[dict[str, Any]]:
        """Return all rules with their counters."""
        found: list[dict[str, Any]] = self._ask("GET", _PATH, None)
        return found

    def clear(self) -> None:
        """Remove all rules."""
        self._ask("DELETE", _PATH, None)
