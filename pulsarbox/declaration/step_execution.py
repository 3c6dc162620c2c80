"""Execution of steps, one after the other, up to the first that fails."""

from collections.abc import Callable, Iterable

from pulsarbox.declaration.admin_calls import CallRejected, Exchange, reply_to
from pulsarbox.declaration.plan import Step
from pulsarbox.errors import PulsarBoxError


class StepFailed(PulsarBoxError):
    """A step failed; the steps before it are done. Applying the declaration again continues with it."""

    def __init__(self, step: Step, error: CallRejected) -> None:
        where = f"{step.place}: " if step.place is not None else ""
        super().__init__(f"{where}cannot {step}: {error}")
        self.status = error.status
        self.method = error.method


def carried_out(steps: Iterable[Step], report: Callable[[Step], object]) -> Exchange[None]:
    """Carry out steps and report each that is done. Steps of tokens are left to the reporter. Raises StepFailed."""
    for step in steps:
        try:
            for call in step.calls:
                yield from reply_to(call, *step.settled)
        except CallRejected as error:
            raise StepFailed(step, error) from error
        report(step)
