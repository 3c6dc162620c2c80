"""Fault rules: the commands and clients that a rule matches, how often it applies, and its effect. Values only."""

import dataclasses
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

import mmh3

from pulsarbox.config.setting import did_you_mean
from pulsarbox.errors import BadRequest, Unprocessable
from pulsarbox.names import parse_topic
from pulsarbox.protocol.commands import COMMANDS, Direction
from pulsarbox.protocol.PulsarApi_pb2 import ServerError
from pulsarbox.times import duration

ACTIONS: Final = ("error", "delay", "drop", "disconnect", "duplicate")
REQUEST, ANSWER = "request", "answer"

COMMAND_NAMES: Final = tuple(
    spec.name.lower()
    for spec in COMMANDS.values()
    if spec.direction in (Direction.TO_BROKER, Direction.BOTH) and spec.name not in ("PING", "PONG")
)
"""Lower-case names of the commands that clients send, except keep-alive."""
UNANSWERED: Final = frozenset(("flow", "redeliver_unacknowledged_messages", "auth_response", "watch_topic_list_close"))
"""Commands without an answer."""
_PATTERNS: Final = ("topic", "client", "producer", "subscription", "consumer")
_DRAW: Final = struct.Struct(">qQ").pack


class Occasion(NamedTuple):
    """An incoming command with the names that rules match; a name that does not apply is empty."""

    command: str
    topic: str = ""
    client: str = ""
    producer: str = ""
    subscription: str = ""
    consumer: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule. Names are patterns (``*``, ``?``, ``[ab]``), empty for any."""

    action: str
    """``error``, ``delay``, ``drop``, ``disconnect`` or ``duplicate``."""
    command: tuple[str, ...] = ()
    """Names of commands; empty for any."""
    topic: str = ""
    client: str = ""
    """Client version, or its ``host:port``."""
    producer: str = ""
    subscription: str = ""
    consumer: str = ""
    at: str = REQUEST
    """``request``: the command is not executed. ``answer``: it is executed, and the fault applies to its answer."""
    error: str = "UnknownError"
    """Pulsar error for the action ``error``."""
    delay: int = 0
    """Milliseconds for the action ``delay``."""
    nth: int = 0
    """Apply only to the nth match; 0 for any."""
    every: int = 0
    """Apply to each match whose number is a multiple of this; 0 for any."""
    first: int = 0
    """Apply only to this many first matches; 0 for any."""
    probability: float = 1.0
    seed: int = 0
    """Seed of the probability; the same seed yields the same decisions."""

    def fits(self, occasion: Occasion) -> bool:
        """Return whether the rule matches this command, apart from counts."""
        if self.command and occasion.command not in self.command:
            return False
        return all(
            not pattern or fnmatchcase(value, pattern)
            for pattern, value in (
                (self.topic, occasion.topic),
                (self.producer, occasion.producer),
                (self.subscription, occasion.subscription),
                (self.consumer, occasion.consumer),
            )
        ) and (not self.client or any(fnmatchcase(each, self.client) for each in occasion.client.split("\n")))

    def strikes(self, number: int) -> bool:
        """Return whether the rule applies to its ``number``-th match (from 1)."""
        if self.nth and number != self.nth:
            return False
        if self.every and number % self.every:
            return False
        if self.first and number > self.first:
            return False
        return self.probability >= 1 or mmh3.hash(_DRAW(self.seed, number), signed=False) / 2**32 < self.probability


def rule_of(document: Mapping[str, Any]) -> Rule:
    """Return a rule from a document, as in HTTP, the command line and Python. Raises BadRequest, Unprocessable."""
    fields = {field.name for field in dataclasses.fields(Rule)}
    for name in document:
        if name not in fields:
            raise BadRequest(
                f'Unknown field "{name}"{did_you_mean(name, fields)} (fields of a fault: {", ".join(sorted(fields))})'
            )
    given: dict[str, Any] = dict(document)
    action = given.get("action")
    if action not in ACTIONS:
        raise Unprocessable(f"The action must be one of {', '.join(ACTIONS)}, not {action!r}")
    given["command"] = _commands(given.get("command", ()))
    for name in _PATTERNS:
        if not isinstance(given.get(name, ""), str):
            raise BadRequest(f'"{name}" must be a string')
    if given.get("topic"):
        given["topic"] = _topic(given["topic"])
    if "error" in given:
        given["error"] = _error(given["error"])
    if "delay" in given:
        given["delay"] = _delay(given["delay"])
    _check_numbers(given)
    given["at"] = given.get("at") or (ANSWER if action == "duplicate" else REQUEST)
    rule = Rule(**given)
    _check_together(
        rule,
        has_delay="delay" in given,
        has_error="error" in given,
        has_seed=bool(given.get("seed")),
        has_probability="probability" in given,
    )
    return rule


def _check_numbers(given: Mapping[str, Any]) -> None:
    for name in ("nth", "every", "first", "seed"):
        if type(given.get(name, 0)) is not int or not 0 <= given.get(name, 0) < 2**63:
            raise BadRequest(f'"{name}" must be a non-negative integer')
    probability = given.get("probability", 1.0)
    if type(probability) not in (int, float) or not 0 <= probability <= 1:
        raise BadRequest('"probability" must be a number from 0 to 1')


def _check_together(rule: Rule, *, has_delay: bool, has_error: bool, has_seed: bool, has_probability: bool) -> None:
    if rule.at not in (REQUEST, ANSWER):
        raise Unprocessable(f'"at" must be request or answer, not {rule.at!r}')
    if rule.action == "duplicate" and rule.at == REQUEST:
        raise Unprocessable("Only an answer can be duplicated: omit at, or set it to answer")
    if rule.action == "delay" and not has_delay:
        raise Unprocessable('The action delay requires a "delay", such as 250ms')
    if rule.action != "delay" and has_delay:
        raise Unprocessable(f'"delay" is allowed only with the action delay, not with {rule.action}')
    if has_seed and not has_probability:
        raise Unprocessable('"seed" requires a "probability": without one, nothing is random')
    if rule.nth and rule.every:
        raise Unprocessable('"nth" (once) and "every" (repeatedly) exclude each other: specify one of them')
    if rule.action != "error" and has_error:
        raise Unprocessable('"error" is allowed only with the action error')
    silent = sorted(UNANSWERED.intersection(rule.command))
    if silent and (rule.at == ANSWER or rule.action == "error"):
        raise Unprocessable(f"{silent[0]} has no answer: its faults can only delay, drop or disconnect")


def _commands(value: object) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise BadRequest('"command" must be a name, or a list of names')
    lowered = tuple(name.strip().lower() for each in names for name in each.split(","))
    for name in lowered:
        if name not in COMMAND_NAMES:
            raise Unprocessable(f'"{name}" is not a client command{did_you_mean(name, COMMAND_NAMES)}')
    return lowered


def _topic(pattern: str) -> str:
    """Expand short topic names as for clients; leave patterns of full names unchanged."""
    return pattern if "://" in pattern or pattern.startswith("*") else str(parse_topic(pattern))


def _error(name: object) -> str:
    names = [name for name, _ in ServerError.items()]
    known = {each.lower(): each for each in names}
    found = known.get(str(name).lower())
    if found is None:
        raise Unprocessable(f'"{name}" is not an error of the Pulsar protocol{did_you_mean(str(name), names)}')
    return found


def _delay(value: object) -> int:
    if isinstance(value, str):
        try:
            value = duration(value)
        except ValueError as error:
            raise BadRequest(str(error)) from None
    if type(value) is not int or not 0 < value <= 86_400_000:
        raise BadRequest('"delay" must be a duration of up to a day, such as 250ms, or a number of milliseconds')
    return value
