"""Runner of one file of the suite that reports the start and the outcome of each test, as a line of JSON each.

``python child.py FILE REPORT [NAME ...]``: runs the named tests, by default all. With ``NAME`` ``--list``, the tests
are listed and not run. The runner starts in the suite's folder and imports nothing of this project. The tests have the
process to themselves, as some of them count its threads.
"""

import json
import sys
import time
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO


class Telling(unittest.TestResult):
    """Test result that reports each test."""

    def __init__(self, report: TextIO) -> None:
        super().__init__()
        self._report = report
        self._began = 0.0
        self._outcome, self._why = "passed", ""

    def tell(self, test: Any, outcome: str, why: str = "") -> None:
        seconds = round(time.monotonic() - self._began, 2) if self._began else 0.0
        self._report.write(json.dumps({"test": test.id(), "outcome": outcome, "seconds": seconds, "why": why}) + "\n")
        self._report.flush()

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802 - unittest's name, as those below
        super().startTest(test)
        self._began, self._outcome, self._why = time.monotonic(), "passed", ""
        self.tell(test, "started")

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        self.tell(test, self._outcome, self._why)
        super().stopTest(test)

    def _failed(self, test: Any, error: Any) -> None:
        text = self._exc_info_to_string(error, test)  # type: ignore[attr-defined]
        if isinstance(test, unittest.TestCase):
            self._outcome, self._why = "failed", text
        else:  # setUpClass and the like: no test has started
            self.tell(test, "failed", text)

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802
        self._failed(test, err)

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        self._failed(test, err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        if err is not None:
            self._failed(test, err)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        self._outcome, self._why = "skipped", reason

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        self._outcome, self._why = "failed", "it was expected to fail"


def each(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    """Yield the tests of a suite, recursively."""
    for part in suite:
        if isinstance(part, unittest.TestSuite):
            yield from each(part)
        else:
            yield part


def main(file: str, report: str, *names: str) -> None:
    path = Path(file)
    sys.path[0] = str(path.parent)
    tests = list(each(unittest.defaultTestLoader.loadTestsFromName(path.stem)))
    with Path(report).open("a", encoding="utf-8") as told:
        telling = Telling(told)
        if names == ("--list",):
            for test in tests:
                telling.tell(test, "listed")
        else:
            unittest.TestSuite(test for test in tests if not names or test.id() in names).run(telling)


if __name__ == "__main__":
    main(*sys.argv[1:])
