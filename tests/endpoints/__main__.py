"""Command that asks a box and a Pulsar broker all rows of the endpoint table and prints the differences."""

import argparse
import contextlib
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from tests.differences.__main__ import web_of
from tests.endpoints import facts
from tests.endpoints.answers import Answer
from tests.endpoints.comparison import Compared, compare
from tests.endpoints.known import PASSING, TABLE, Known, is_about
from tests.endpoints.playing import GroupRequests, Target, Tenant, open_coordinator, send
from tests.endpoints.steps import Group, Step, groups
from tests.tools.box import BoxProcess

JOBS: Final = 4
"""Groups at the same time at each broker."""
SETTLE_SECONDS: Final = 0.1, 1.0
"""Pauses after each change in the first attempt at a group, and in the second if the first one differs."""
OPTIONAL: Final = (
    (
        "/admin/v3/functions/builtins",
        ("functions", "sink", "sinks", "source", "sources", "worker", "worker-stats"),
        "functions worker",
    ),
    ("/admin/v3/packages/function/public/default", ("packages",), "package management"),
)
"""Services that a broker may run without: a path that refuses then, the endpoints of the service, its name."""

SLOW: Final = ("/properties", "/backlog")
"""Groups to be asked last: Pulsar leaves some of their requests unanswered, and answers others slowly meanwhile."""

METHODS: Final = ("GET", "PUT", "POST", "DELETE")

Answers = Sequence[tuple[Step, Answer]]


def arguments_of(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.endpoints",
        description="Asks two brokers all rows of the endpoint table, each in several states, and prints the answers "
        "that differ. Ends with 1 if a difference is not in the table of intended ones, or a row of that table matches "
        "none. Only separate test brokers: requests without a body can damage the metadata of Pulsar. Creates tenants "
        "compared-*, and deletes them. Takes some minutes, because Pulsar leaves some requests without an answer.",
    )
    parser.add_argument("--a", metavar="URL", help="service URL of the box; without it a box is started")
    parser.add_argument("--a-web", metavar="URL", help="its Admin API (default: port 8080 of the same host)")
    parser.add_argument("--b", metavar="URL", help="service URL of Pulsar; without it, its recorded answers are used")
    parser.add_argument("--b-web", metavar="URL", help="its Admin API (default: port 8080 of the same host)")
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="groups whose path contains a word")
    parser.add_argument("--record", action="store_true", help="record the answers of Pulsar for the tests")
    parser.add_argument("--once", action="store_true", help="do not ask a group that differs again")
    parser.add_argument("--all", action="store_true", help="print known differences too")
    return parser.parse_args(words)


class Broker:
    """One of the two brokers, with a tenant for the comparison."""

    def __init__(self, target: Target, *, temporary: bool = False) -> None:
        self.target = target
        self._temporary = temporary
        self.tenant = Tenant(target, f"compared-{time.time_ns():x}")
        self.lacks: dict[str, str] = {}
        """Services that the broker runs without, by the first word of their endpoints' paths."""

    def __enter__(self) -> "Broker":
        self.tenant.create()
        open_coordinator(self.target)
        for path, words, service in OPTIONAL:
            if send(self.target.web_url, "GET", path)[0] in (409, 503):
                self.lacks |= dict.fromkeys(words, service)
        return self

    def __exit__(self, *error: object) -> None:
        if self._temporary:
            return
        for left in self.tenant.delete():
            sys.stderr.write(f"left at {self.target.web_url}: {left}\n")

    def answers(self, group: Group, number: int, settle: float = 0.0) -> Answers:
        """Return the answers to the requests of a group. Groups with the same number share a namespace."""
        return list(GroupRequests(self.target, self.tenant.name, group, number, settle).play())

    def runs(self, group: Group) -> bool:
        """Return whether the broker runs the service of these endpoints."""
        return group.name.split("/")[3] not in self.lacks


@contextlib.contextmanager
def box_of(arguments: argparse.Namespace) -> Iterator[Broker]:
    with contextlib.ExitStack() as held:
        if arguments.a:
            target = Target(arguments.a, arguments.a_web or web_of(arguments.a))
        else:
            box = BoxProcess(Path(held.enter_context(tempfile.TemporaryDirectory())) / "data")
            held.callback(box.kill)
            box.start()
            target = Target(box.url, box.web_url)
        yield held.enter_context(Broker(target, temporary=not arguments.a))


def compared_with_facts(box: Broker, chosen: Sequence[tuple[int, Group]]) -> Iterator[tuple[Group, Compared]]:
    """Compare a box with the recorded answers of Pulsar."""
    recorded = facts.read()
    known = [each for each in chosen if each[1].name in recorded]
    with ThreadPoolExecutor(JOBS) as pool:
        found = pool.map(lambda each: box.answers(each[1], each[0]), known)
        for (_, group), answers in zip(known, found, strict=True):
            yield group, compare(answers, facts.of_group(group, recorded))


def compared(
    box: Broker, pulsar: Broker, chosen: Sequence[tuple[int, Group]], record: dict[str, Answers], once: bool
) -> Iterator[tuple[Group, Compared]]:
    """Compare two brokers. A group that differs is asked again, with longer pauses."""

    def one(each: tuple[int, Group]) -> tuple[Group, Answers, Compared]:
        number, group = each
        theirs, found = asked(group, number, SETTLE_SECONDS[0])
        if not once and not all(each.known for each in found.differences):
            theirs, found = asked(group, number + len(groups()), SETTLE_SECONDS[1])
        return group, theirs, found

    def asked(group: Group, number: int, settle: float) -> tuple[Answers, Compared]:
        with ThreadPoolExecutor(2) as pair:
            mine = pair.submit(box.answers, group, number)
            theirs = pair.submit(pulsar.answers, group, number, settle)
        return theirs.result(), compare(mine.result(), [answer for _, answer in theirs.result()])

    with ThreadPoolExecutor(JOBS) as pool:
        for group, theirs, found in pool.map(one, chosen):
            record[group.name] = theirs
            yield group, found


def chosen_of(only: Sequence[str]) -> list[tuple[int, Group]]:
    """Return the numbered groups whose path contains one of the words; all without words."""
    numbered = sorted(enumerate(groups()), key=lambda each: each[1].name.endswith(SLOW))
    return [each for each in numbered if not only or any(word in each[1].name for word in only)]


def unused(rows: set[Known], pending: Iterable[Step] = (), skipped: Iterable[Group] = ()) -> list[str]:
    """Return a complaint for each row of the known differences that matched none, unless it is about a request that is
    pending, or about a service that the broker runs without.
    """
    waiting = list(pending)
    names = [f"{method} {each.name.removeprefix('/admin')}" for each in skipped for method in METHODS]
    idle = [
        row
        for row in TABLE
        if row not in rows
        and row.part not in PASSING
        and not any(is_about(row, step) for step in waiting)
        and not any(re.fullmatch(row.requests, name) for name in names)
    ]
    return [f"no difference any more: {row.requests} | {row.states} | {row.part}" for row in idle]


class Report:
    """The results of a run, printed as they arrive."""

    def __init__(self, shows_known: bool, total: int) -> None:
        self._shows_known = shows_known
        self._total = total
        self._groups = 0
        self.same = self.known = self.unknown = self.unanswered = 0
        self.rows: set[Known] = set()
        self.pending: list[Step] = []

    def add(self, group: Group, found: Compared) -> None:
        """Count a group and print its differences."""
        self._groups += 1
        sys.stderr.write(f"{self._groups}/{self._total} {group.name.removeprefix('/admin')}\n")
        self.same += found.same
        self.pending += found.pending
        self.unanswered += len(found.unanswered)
        for each in found.differences:
            self.known += each.known is not None
            self.unknown += each.known is None
            if each.known:
                self.rows.add(each.known)
            if self._shows_known or not each.known:
                sys.stdout.write(f"{each}\n")
        sys.stdout.flush()

    def __str__(self) -> str:
        endpoints = len({step.full_name for step in self.pending})
        return (
            f"{self._groups} groups: {self.same} equal answers, {self.known} known differences, {self.unknown} unknown "
            f"ones, {len(self.pending)} requests pending because {endpoints} endpoints are not supported, "
            f"{self.unanswered} not answered by Pulsar"
        )


def main(words: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    arguments = arguments_of(words)
    record: dict[str, Answers] = {}
    skipped: list[Group] = []
    with contextlib.ExitStack() as held:
        box = held.enter_context(box_of(arguments))
        chosen = chosen_of(arguments.only)
        if arguments.b:
            target = Target(arguments.b, arguments.b_web or web_of(arguments.b))
            pulsar = held.enter_context(Broker(target))
            for word, service in pulsar.lacks.items():
                sys.stderr.write(f"not compared: /{word}/, because Pulsar runs without {service}\n")
            skipped = [each for _, each in chosen if not pulsar.runs(each)]
            chosen = [each for each in chosen if pulsar.runs(each[1])]
            found = compared(box, pulsar, chosen, record, arguments.once)
        else:
            found = compared_with_facts(box, chosen)
        report = Report(arguments.all, len(chosen))
        for group, result in found:
            report.add(group, result)
        if arguments.record:
            facts.write(_merged(record))
    stale = [] if arguments.only else unused(report.rows, report.pending, skipped)
    sys.stderr.write("\n".join([*stale, f"{report}\n"]))
    return 1 if report.unknown or stale else 0


def _merged(record: Mapping[str, Answers]) -> dict[str, list[tuple[str, str, Answer]]]:
    """Return the recorded answers with the new ones, in the order of the groups."""
    merged = facts.read() if facts.FILE.exists() else {}
    for name, answers in record.items():
        merged[name] = [(step.state, step.name, answer) for step, answer in answers]
    return {group.name: merged[group.name] for group in groups() if group.name in merged}


if __name__ == "__main__":
    sys.exit(main())
