"""Command that runs the Java tools against a box and prints what differs from Apache Pulsar."""

import argparse
import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.differences.__main__ import web_of
from tests.differences.fields import fields
from tests.java_tools import files
from tests.java_tools.known import reason_of
from tests.java_tools.playing import Seen, Target, play
from tests.java_tools.scripts import Script, ScriptError, scripts
from tests.java_tools.secure import secure_settings
from tests.java_tools.tools import LATE, tools
from tests.tools.box import BoxProcess
from tests.tools.java import TOOLS, JavaError

RECORDED: Final = Path(__file__).with_name("recorded.json")
PATIENCE: Final = (1.0, 3.0)
"""Patience of each attempt at a scenario. A differing scenario is repeated, because Pulsar applies policies later."""


def arguments_of(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.java_tools",
        description="Runs Pulsar's own Java tools against a box, and prints what differs from Apache Pulsar: from its "
        "recorded results, or with --b from a broker. The exit code is 1 if a difference is not a known one.",
    )
    parser.add_argument("--a", metavar="URL", help="service URL of the first broker; without it a box is started")
    parser.add_argument("--a-web", metavar="URL", help="its Admin API (default: port 8080 of the same host)")
    parser.add_argument("--b", metavar="URL", help="service URL of a Pulsar broker, in place of the recorded results")
    parser.add_argument("--b-web", metavar="URL", help="its Admin API (default: port 8080 of the same host)")
    parser.add_argument("--tools", metavar="CLASSPATH", help="tools of another version, such as DISTRIBUTION/lib/*")
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[], help="files or single scenarios")
    parser.add_argument("--list", action="store_true", help="print the names of the scenarios and end")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results to FILE")
    parser.add_argument("--record", action="store_true", help="record the results of --b")
    arguments = parser.parse_args(words)
    if arguments.record and not arguments.b:
        parser.error("--record needs --b, a Pulsar broker")
    if arguments.tools and not arguments.b:
        parser.error("--tools needs --b: the recorded results are those of the version in pom.xml")
    return arguments


def main(words: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    arguments = arguments_of(words)
    try:
        chosen = scripts(arguments.only)
        if arguments.list:
            print("\n".join(each.name for each in chosen))
            return 0
        with targets_of(arguments, arguments.tools or TOOLS.fetched(), chosen) as targets:
            return compare(chosen, targets, arguments)
    except (JavaError, ScriptError) as error:
        print(f"java-tools: {error}", file=sys.stderr)
        return 2


@contextlib.contextmanager
def targets_of(arguments: argparse.Namespace, jars: str, chosen: list[Script]) -> Iterator[list[Target]]:
    """Return one target, or two with --b. A secure box is started if a scenario needs one."""
    with contextlib.ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory()))
        files.write(folder / "files")

        def target(name: str, url: str, web: str) -> Target:
            settings = {"brokerServiceUrl": url, "webServiceUrl": web}
            return Target(web, held.enter_context(tools(jars, folder / name, settings)), folder / "files")

        if arguments.a:
            made = [target("a", arguments.a, arguments.a_web or web_of(arguments.a))]
        else:
            box = BoxProcess(folder / "data")
            held.callback(box.kill)
            box.start()
            made = [target("a", box.url, box.web_url)]
        if arguments.b:
            made.append(target("b", arguments.b, arguments.b_web or web_of(arguments.b)))
        if any(each.is_secure for each in chosen):
            settings = held.enter_context(secure_settings(folder / "secure"))
            made[0] = replace(made[0], secure=held.enter_context(tools(jars, folder / "secure", settings)))
        yield made


def compare(chosen: list[Script], targets: list[Target], arguments: argparse.Namespace) -> int:
    """Run the scenarios, print the differences and return the exit code."""
    recorded = recorded_results()
    told: dict[str, Any] = {}
    bad = commands = 0
    for number, script in enumerate(chosen, 1):
        print(f"{number}/{len(chosen)} {script.name}", file=sys.stderr, flush=True)
        stories, found = look(script, targets, recorded.get(script.name, {}))
        commands += len(stories[0])
        for step, a, b, reason in found:
            show(f"{script.name} | {step}", a, b, reason)
            bad += not reason
        told[script.name] = stories
        if arguments.record and not script.box_only:
            record(recorded_results() | {script.name: stories[1]})
    if arguments.json:
        arguments.json.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(chosen)} scenarios, {commands} commands, {bad} differences that are not known", file=sys.stderr)
    return 1 if bad else 0


Found = list[tuple[str, Any, Any, str]]
"""Step, first result, second result, reason of a known difference."""


def look(script: Script, targets: list[Target], recorded: Seen) -> tuple[list[Seen], Found]:
    """Run the scenario; repeat with more patience while the results differ."""
    stories: list[Seen] = []
    found: Found = []
    for patience in PATIENCE if len(targets) == 2 else PATIENCE[:1]:
        played = targets[:1] if script.box_only else targets
        with ThreadPoolExecutor(2) as pool:
            stories = list(pool.map(partial(play, script, patience=patience), played))
        if script.box_only:
            return stories, [(step, seen, "success", "") for step, seen in stories[0].items() if seen["exit"] != "0"]
        found = differences(stories[0], stories[1] if len(stories) == 2 else recorded)
        if all(reason for *_, reason in found):
            break
    return stories, found


def differences(a: Seen, b: Seen) -> Found:
    """Return what differs, in order. A command to which Pulsar did not respond in time is not compared."""
    missing = {"exit": "-", "out": "not recorded", "err": ""}
    return [
        (f"{step}{field}", one, other, reason_of(f"{step}{field}", (one, other)))
        for step in a
        if b.get(step, missing)["exit"] != LATE
        for field, one, other in fields(a[step], b.get(step, missing))
    ]


def show(step: str, a: Any, b: Any, reason: str) -> None:
    """Print a difference."""
    print(f"{step}{f'  (known: {reason})' if reason else ''}")
    print(f"    A: {json.dumps(a, ensure_ascii=False)}")
    print(f"    B: {json.dumps(b, ensure_ascii=False)}", flush=True)


def recorded_results() -> dict[str, Seen]:
    """Return the results of Apache Pulsar by scenario."""
    found: dict[str, Seen] = json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() else {}
    return found


def record(recorded: dict[str, Seen]) -> None:
    """Write the recorded results, one line for each command."""
    named = (
        f"{json.dumps(name)}: {{\n"
        + ",\n".join(f" {json.dumps(step)}: {json.dumps(seen, sort_keys=True)}" for step, seen in story.items())
        + "\n}"
        for name, story in sorted(recorded.items())
    )
    RECORDED.write_text("{\n" + ",\n".join(named) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
