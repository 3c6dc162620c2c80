"""``python -m tests.mutants.run --count 50``: sample mutants of the pure packages, and list those that survive all
tests.

Exit codes: 0 if the tests kill all mutants, 1 if some survive, 2 if tests fail without a mutant.
"""

import argparse
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path, PurePath
from random import Random
from typing import Final, NamedTuple

from tests.mutants.checkout import BrokenTestsError, CheckoutCopy
from tests.mutants.mutation import Mutant, Mutations
from tests.mutants.stages import stages_of
from tests.tools.pure_rooms import ROOT, files

BASE: Final = ("cleaning", "clock", "expressions", "names", "times")
"""Pure modules outside the packages."""
MEMORY_DISK: Final = Path("/dev/shm")


class Verdict(NamedTuple):
    """Result of the tests of a mutant."""

    killed: bool
    timed_out: bool
    tests: tuple[str, ...]
    """The stages that ran; the last one killed the mutant, if any did."""


def modules(only: Sequence[str] = ()) -> list[PurePath]:
    """Return the modules to mutate, relative to the root; with ``only``, those at or below one of these paths."""
    found = [*files(), *(ROOT / "pulsarbox" / f"{name}.py" for name in BASE)]
    paths = sorted(path.relative_to(ROOT) for path in found)
    return [path for path in paths if not only or any(path.is_relative_to(each) for each in only)]


def sample(paths: Sequence[PurePath], random: Random) -> Iterator[tuple[PurePath, Mutant]]:
    """Yield random mutants without repetition until none is left. A module's probability is its share of bytes."""
    sizes = {path: (ROOT / path).stat().st_size for path in paths}
    mutations: dict[PurePath, Mutations] = {}
    while sizes:
        path = random.choices(list(sizes), list(sizes.values()))[0]
        if path not in mutations:
            mutations[path] = Mutations((ROOT / path).read_text("utf-8"))
        mutant = mutations[path].sample(random)
        if mutant is None:
            del sizes[path]
        else:
            yield path, mutant


def judge(copy: CheckoutCopy, path: PurePath, mutant: Mutant, *, quick: bool = False) -> Verdict:
    """Run the stages of a module until one fails. Raises BrokenTestsError."""
    ran: list[str] = []
    for stage in stages_of(path, copy.folder, quick=quick):
        ran.append(stage.name)
        outcome = copy.judge(path, mutant.text, stage)
        if not outcome.passed:
            return Verdict(True, outcome.timed_out, tuple(ran))
    return Verdict(False, False, tuple(ran))


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; the module docstring lists the exit codes."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants.run", description=__doc__)
    parser.add_argument("--count", type=int, default=50, metavar="N", help="how many mutants (default: 50)")
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the sample (default: a random one, printed)")
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="leave out the first N mutants of the sample")
    parser.add_argument("--only", nargs="+", default=[], metavar="PATH", help="modules or folders (default: all)")
    parser.add_argument("--quick", action="store_true", help="without folders of tests that take long: more survive")
    given = parser.parse_args(words)
    paths = modules(given.only)
    if not paths:
        parser.error(f"no pure module at {', '.join(given.only)}")
    seed = secrets.randbelow(1 << 32) if given.seed is None else given.seed
    sys.stdout.write(f"seed {seed}: {given.count} mutants of {len(paths)} modules\n")
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as folder:
        try:
            return _run(CheckoutCopy(ROOT, Path(folder) / "copy"), sample(paths, Random(seed)), given)
        except BrokenTestsError as error:
            sys.stderr.write(f"{error}\n")
            return 2


def _run(copy: CheckoutCopy, mutants: Iterator[tuple[PurePath, Mutant]], given: argparse.Namespace) -> int:
    began, timed_out, judged = time.monotonic(), 0, 0
    survivors: list[str] = []
    for path, mutant in islice(mutants, given.skip, given.skip + given.count):
        verdict = judge(copy, path, mutant, quick=given.quick)
        judged += 1
        timed_out += verdict.timed_out
        word = "timeout" if verdict.timed_out else "killed" if verdict.killed else "SURVIVED"
        place, last = f"{path}:{mutant.line}", verdict.tests[-1]
        seconds = time.monotonic() - began
        sys.stdout.write(f"[{judged}/{given.count}] {seconds:4.0f} s  {word:8}  {place}  {last}\n")
        if not verdict.killed:
            survivors.append("\n".join([f"{place}  ({', '.join(verdict.tests)})", *mutant.change]))
            sys.stdout.write("".join(f"    {line}\n" for line in mutant.change))
        sys.stdout.flush()
    killed = judged - len(survivors)
    sys.stdout.write(f"{judged} mutants, {killed} killed ({timed_out} by a time limit), {len(survivors)} survived\n")
    sys.stdout.write("".join(f"\n{each}\n" for each in survivors))
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
