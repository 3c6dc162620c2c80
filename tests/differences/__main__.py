"""Command that runs the scenarios and prints the differences."""

import argparse
import contextlib
import importlib
import json
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from tests.differences.playing import Difference, Story, Target, differences, play_to_all
from tests.differences.scenario import SCENARIOS, TIMED, Scenario
from tests.tools.box import PULSARBOX, BoxProcess

THEMES: Final = (
    "access",
    "keyshared",
    "exclusive",
    "failover",
    "shared",
    "producers",
    "positions",
    "redelivery",
    "batches",
    "limits",
    "policies",
    "storedpolicies",
    "nonpersistent",
    "rest",
    "cluster",
    "admin",
    "goclient",
    "terminated",
    "retention",
    "expiry",
    "quotas",
    "throttle",
    "inactive",
    "delayed",
    "bounds",
    "transactions",
    "websocket",
)
_MANAGEMENT: Final = ("policies", "storedpolicies", "rest", "cluster", "admin")
"""The themes in ``themes.management``."""
LOOKS: Final = (1.0, 2.5)
"""Patience of each attempt at a scenario. A differing scenario is repeated, because a broker may have been slow."""


def arguments_of(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.differences",
        description="Plays scenarios to one or two brokers through raw connections and official clients. "
        "With two it prints the steps in which they differ, and ends with 1 if one of those is not a known one; "
        "with one it prints what was seen. Only test brokers: topics named differences-* are deleted by force.",
    )
    parser.add_argument("--a", metavar="URL", help="service URL of the first broker; without it a box is started")
    parser.add_argument("--a-web", metavar="URL", help="its Admin API (default: port 8080 of the same host)")
    parser.add_argument("--b", metavar="URL", help="service URL of the second broker")
    parser.add_argument("--b-web", metavar="URL", help="its Admin API (default: port 8080 of the same host)")
    parser.add_argument(
        "--pulsar-admin",
        metavar="COMMAND",
        help="Pulsar's own pulsar-admin, to be compared with `pulsarbox admin`: the theme admin is played to the first "
        "broker with ours and to the second, else to another box, with that",
    )
    parser.add_argument(
        "--only", nargs="+", metavar="THEME", default=[], help=f"themes or THEME.SCENARIO: {', '.join(THEMES)}"
    )
    parser.add_argument("--jobs", type=int, default=4, metavar="N", help="scenarios at the same time (default: 4)")
    parser.add_argument(
        "--set",
        nargs="+",
        default=[],
        metavar="SETTING=VALUE",
        help="settings of broker.conf for the box that is started; B has to run with the same ones",
    )
    parser.add_argument("--short", action="store_true", help="leave out what waits for timers of the broker")
    parser.add_argument(
        "--timed",
        action="store_true",
        help="what policies do in the course of time, and nothing else; B has to run with: " + " ".join(TIMED),
    )
    parser.add_argument("--list", action="store_true", help="print the names of the scenarios and end")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was seen to FILE")
    arguments = parser.parse_args(words)
    if arguments.timed:
        arguments.set = [*TIMED, *arguments.set]
    for name in ("a", "b"):
        if getattr(arguments, f"{name}_web") and not getattr(arguments, name):
            parser.error(f"--{name}-web without --{name}")
    if arguments.pulsar_admin:
        arguments.only = arguments.only or ["admin"]
    return arguments


def module_of(theme: str) -> ModuleType:
    """Import a theme."""
    folder = "management." if theme in _MANAGEMENT else ""
    return importlib.import_module(f"tests.differences.themes.{folder}{theme}")


def chosen(only: Sequence[str], short: bool = False, timed: bool | None = None) -> list[Scenario]:
    """Return the scenarios of the themes, or single ones by their full names; all if none is named.

    ``timed``: only scenarios that need the ``TIMED`` settings, or only the others.
    """
    for theme in THEMES:
        module_of(theme)
    unknown = [name for name in only if name not in THEMES and name not in SCENARIOS]
    if unknown:
        raise SystemExit(f"no such theme or scenario: {', '.join(unknown)}")
    return [
        each
        for each in SCENARIOS.values()
        if (not only or each.theme in only or each.full_name in only)
        and not (short and each.slow)
        and timed in (None, each.timed)
    ]


@contextlib.contextmanager
def targets_of(arguments: argparse.Namespace) -> Iterator[list[Target]]:
    with contextlib.ExitStack() as held:

        def started() -> Target:
            box = box_in(Path(held.enter_context(tempfile.TemporaryDirectory())), arguments.set)
            held.callback(box.kill)
            print("starting a box", file=sys.stderr)
            box.start()
            return Target(box.url, box.web_url)

        targets = [Target(arguments.a, arguments.a_web or web_of(arguments.a)) if arguments.a else started()]
        if arguments.b:
            targets.append(Target(arguments.b, arguments.b_web or web_of(arguments.b)))
        if arguments.pulsar_admin:
            second = targets[1] if arguments.b else started()
            command = tuple(shlex.split(arguments.pulsar_admin))
            targets = [replace(targets[0], bare=True), replace(second, bare=True, admin_command=command)]
        yield targets


def box_in(folder: Path, settings: Sequence[str]) -> BoxProcess:
    """Return a box with its own settings, not started yet."""
    if not settings:
        return BoxProcess(folder / "data")
    (folder / "broker.conf").write_text("".join(f"{each}\n" for each in settings), encoding="utf-8")
    return BoxProcess(folder / "data", (*PULSARBOX, "--config", str(folder / "broker.conf")))


def web_of(url: str) -> str:
    """Return the URL of the Admin API: the usual port of the same host."""
    host = url.partition("://")[2].partition(":")[0]
    return f"http://{host}:8080"


def look(scenario: Scenario, targets: list[Target]) -> tuple[list[Story], list[Difference]]:
    """Run the scenario against both brokers; repeat with more patience while the results differ."""
    stories: list[Story] = []
    found: list[Difference] = []
    for patience in LOOKS:
        stories = play_to_all(scenario, targets, patience)
        found = differences(scenario, stories[0], stories[1]) if len(targets) == 2 else []
        if all(each.reason for each in found):
            break
    return stories, found


def looked(
    scenarios: Sequence[Scenario], targets: list[Target], pool: Executor
) -> Iterator[tuple[list[Story], list[Difference]]]:
    """Return the observations of both brokers. Scenarios run in parallel, except those that need exclusive brokers,
    which run last, one by one.
    """
    together = [each for each in scenarios if not each.alone]
    yield from pool.map(lambda each: look(each, targets), together)
    yield from (look(each, targets) for each in scenarios[len(together) :])


def short_text(seen: Any) -> str:
    """Return an observation on one line."""
    return seen if isinstance(seen, str) else json.dumps(seen, ensure_ascii=False)


def show(difference: Difference) -> None:
    known = f"  (known: {difference.reason})" if difference.reason else ""
    print(f"{difference.scenario} | {difference.step}{known}")
    print(f"    A: {short_text(difference.a)}")
    print(f"    B: {short_text(difference.b)}")


def show_story(scenario: Scenario, story: Story) -> None:
    for step, seen in story.named().items():
        print(f"{scenario.full_name} | {step}")
        print(f"    A: {short_text(seen)}")


def main(words: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    arguments = arguments_of(words)
    scenarios = chosen(arguments.only, arguments.short, arguments.timed)
    scenarios.sort(key=lambda each: each.alone)
    if arguments.list:
        print("\n".join(each.full_name for each in scenarios))
        return 0
    told: dict[str, Any] = {}
    bad = failed = 0
    with targets_of(arguments) as targets, ThreadPoolExecutor(arguments.jobs) as pool:
        looks = looked(scenarios, targets, pool)
        for number, (each, (stories, found)) in enumerate(zip(scenarios, looks, strict=True), 1):
            print(f"{number}/{len(scenarios)} {each.full_name}", file=sys.stderr, flush=True)
            failed += sum(bool(story.error) for story in stories)
            bad += sum(not difference.reason for difference in found)
            if len(targets) == 1:
                show_story(each, stories[0])
            for difference in found:
                show(difference)
            sys.stdout.flush()
            told[each.full_name] = {
                "seen": [story.named() for story in stories],
                "seconds": [round(story.seconds, 1) for story in stories],
                "differences": [asdict(difference) for difference in found],
            }
    if arguments.json:
        arguments.json.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(scenarios)} scenarios, {bad} differences that are not known, {failed} failed", file=sys.stderr)
    return 1 if bad or failed else 0


if __name__ == "__main__":
    sys.exit(main())
