"""Result of a run: how many of the tests that need a broker passed, and which tests did not."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.suite.running import Outcome


@dataclass(frozen=True)
class Count:
    """Outcomes of all tests, the tests that need no broker, and the exit code of the box."""

    outcomes: Sequence[Outcome]
    needless: frozenset[str]
    exit_code: int = 0

    @property
    def asked(self) -> list[Outcome]:
        """Outcomes of the tests that need a broker."""
        return [each for each in self.outcomes if each.test not in self.needless]

    @property
    def failed(self) -> list[Outcome]:
        """Outcomes of all tests that did not pass, including skipped ones."""
        return [each for each in self.outcomes if not each.passed]

    @property
    def all_well(self) -> bool:
        """Whether all tests passed and the box exited cleanly."""
        return not self.failed and self.exit_code == 0

    def text(self) -> str:
        """Return the count, and a line for each test that did not pass."""
        asked, others = self.asked, len(self.outcomes) - len(self.asked)
        passed = sum(each.passed for each in asked)
        lines = [f"passed {passed} of {len(asked)} ({len(self.outcomes)} tests, of which {others} need no broker)"]
        lines += [f"{each.outcome:8}{each.test}: {each.reason or 'no reason given'}" for each in self.failed]
        if self.exit_code:
            lines.append(f"the box ended with {self.exit_code}")
        return "\n".join(lines)
