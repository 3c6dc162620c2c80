"""Runner of the official Python client's own suite against a box with the suite's settings.

``make suite SUITE_DIR=DIR``, where DIR is a checkout of github.com/apache/pulsar-client-python; none of it is part of
this project. Tests that pass without a broker do not test one. They are detected by running all tests once without a
broker, and cached until the suite's files change. Progress on stderr, the count on stdout; exits with 1 if a test
failed, and with 2 if the suite cannot be run.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.suite.alone import without_broker
from tests.suite.box import SuiteBox, check_ports, folder_of
from tests.suite.counting import Count
from tests.suite.running import TEST_SECONDS, Outcome, SuiteError, files, listed, run_file
from tests.tools.box import BoxError

SCRATCH = Path(__file__).parents[2] / ".make" / "suite"


def say(text: str) -> None:
    print(f"suite: {text}", file=sys.stderr, flush=True)


def tell(outcome: Outcome) -> None:
    say(f"{outcome.outcome:8}{outcome.seconds:7.1f} s  {outcome.test}" + (f": {outcome.reason}" if outcome.why else ""))


def chosen(names: Sequence[str], words: Sequence[str]) -> list[str]:
    """Return the names that contain one of the words; all if there are no words."""
    return [name for name in names if not words or any(word in name for word in words)]


def suite(folder: Path, words: Sequence[str], seconds: float) -> Count:
    """Run the tests, in file order, against one box. Raises SuiteError, BoxError."""
    SCRATCH.mkdir(parents=True, exist_ok=True)
    check_ports()
    tests = {file: chosen(listed(file, SCRATCH), words) for file in files(folder)}
    if not any(tests.values()):
        raise SuiteError(f"no test's name holds {' or '.join(map(repr, words))}")
    say("which tests pass where nothing listens? The first time, this takes some minutes")
    needless = without_broker(tests, SCRATCH)
    box = SuiteBox(folder, SCRATCH)
    outcomes: list[Outcome] = []
    try:
        box.start()
        for file, names in tests.items():
            if names:
                outcomes += run_file(file, names, SCRATCH, seconds, tell).values()
        ended = box.stop()
    finally:
        box.kill()
    return Count(outcomes, needless, ended)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, required=True, help="a checkout of github.com/apache/pulsar-client-python")
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="tests whose names hold one of these")
    parser.add_argument("--seconds", type=float, default=TEST_SECONDS, help="a test that takes longer has failed")
    arguments = parser.parse_args()
    try:
        count = suite(folder_of(arguments.dir), arguments.only, arguments.seconds)
    except (SuiteError, BoxError) as error:
        say(str(error))
        return 2
    print(count.text())
    return 0 if count.all_well else 1


if __name__ == "__main__":
    sys.exit(main())
