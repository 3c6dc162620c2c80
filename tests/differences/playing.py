"""Plays scenarios to brokers and compares what they answered."""

import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tests.differences.broker import Broker
from tests.differences.known import reason_of
from tests.differences.scenario import Scenario


@dataclass(frozen=True)
class Target:
    """A broker to play to."""

    url: str
    web_url: str


@dataclass
class Story:
    """What a broker answered in one scenario; ``error`` is an exception of the scenario itself."""

    steps: list[tuple[str, Any]] = field(default_factory=list)
    error: str = ""
    seconds: float = 0.0

    def named(self) -> dict[str, Any]:
        """The observations by step; a step that comes twice is counted."""
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
    """One step in which two brokers differ; ``reason`` says why, where that is known and wanted."""

    scenario: str
    step: str
    a: Any
    b: Any
    reason: str = ""


def play(scenario: Scenario, target: Target, patience: float = 1.0) -> Story:
    """Plays a scenario to a broker. What the scenario raises becomes part of the story."""
    story = Story()
    begin = time.monotonic()
    broker = Broker(target.url, target.web_url, scenario.full_name, patience)
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
    """The stories of all targets, played at the same time."""
    with ThreadPoolExecutor(len(targets)) as pool:
        return list(pool.map(lambda target: play(scenario, target, patience), targets))


def differences(scenario: Scenario, a: Story, b: Story) -> list[Difference]:
    """The steps in which two stories differ, in the order of the first that has them."""
    seen_a, seen_b = a.named(), b.named()
    return [
        Difference(scenario.full_name, step, of_a, of_b, reason_of(scenario.full_name, step, (of_a, of_b)))
        for step in [*seen_a, *(step for step in seen_b if step not in seen_a)]
        if (of_a := seen_a.get(step, "no such step")) != (of_b := seen_b.get(step, "no such step"))
    ]
