"""Execution of scenarios against brokers, and comparison of the responses."""

import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tests.differences.broker import PULSARBOX_ADMIN, Broker
from tests.differences.fields import fields
from tests.differences.known import reason_of
from tests.differences.scenario import Scenario


@dataclass(frozen=True)
class Target:
    """Broker that runs the scenarios."""

    url: str
    web_url: str
    admin_command: tuple[str, ...] = PULSARBOX_ADMIN
    """Command that runs pulsar-admin command lines."""
    bare: bool = False
    """Whether two commands with different error texts are compared: only success or failure counts."""


@dataclass
class Story:
    """Observations of one broker in one scenario; ``error`` is an exception of the scenario itself."""

    steps: list[tuple[str, Any]] = field(default_factory=list)
    error: str = ""
    seconds: float = 0.0

    def named(self) -> dict[str, Any]:
        """Return the observations by step; a repeated step is numbered."""
        named: dict[str, Any] = {}
        for step, seen in self.steps:
            name, count = step, 2
            while name in named:
                name, count = f"{step} ({count})", count + 1
            named[name] = seen
        if self.error:
            named["the scenario itself"] = self.error
        return named


@dataclass(frozen=True)
class Difference:
    """Step in which two brokers differ; ``reason`` explains a known, intended difference."""

    scenario: str
    step: str
    a: Any
    b: Any
    reason: str = ""


def play(scenario: Scenario, target: Target, patience: float = 1.0) -> Story:
    """Run a scenario against a broker. An exception of the scenario is recorded in the result."""
    story = Story()
    begin = time.monotonic()
    broker = Broker(target.url, target.web_url, scenario.full_name, patience, target.admin_command, target.bare)
    try:
        for step in scenario.play(broker):
            story.steps.append(step)
    except Exception:
        story.error = traceback.format_exc()
    finally:
        broker.close()
    story.seconds = time.monotonic() - begin
    return story


def play_to_all(scenario: Scenario, targets: list[Target], patience: float = 1.0) -> list[Story]:
    """Run the scenario against all targets concurrently and return the results."""
    with ThreadPoolExecutor(len(targets)) as pool:
        return list(pool.map(lambda target: play(scenario, target, patience), targets))


def differences(scenario: Scenario, a: Story, b: Story) -> list[Difference]:
    """Return the steps in which two results differ, in order of first occurrence; for commands, field by field."""
    seen_a, seen_b = a.named(), b.named()
    name, found = scenario.full_name, list[Difference]()
    for step in [*seen_a, *(step for step in seen_b if step not in seen_a)]:
        of_a, of_b = seen_a.get(step, "no such step"), seen_b.get(step, "no such step")
        if scenario.theme == "admin" and isinstance(of_a, dict) and isinstance(of_b, dict):
            found += [
                Difference(name, f"{step}{field}", one, other, reason_of(name, f"{step}{field}", (one, other)))
                for field, one, other in fields(of_a, of_b)
            ]
        elif of_a != of_b:
            found.append(Difference(name, step, of_a, of_b, reason_of(name, step, (of_a, of_b))))
    return found
