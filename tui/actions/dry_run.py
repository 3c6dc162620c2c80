"""Dry runs of jobs: waiting for their end, their result in a sentence, and the same operation for real."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from pulsarbox.tui.actions.operation import OperationSpec, Request, Values
from pulsarbox.tui.actions.replay_operations import JOBS
from pulsarbox.tui.feed import Feed, aside

FIELD: Final = "dry_run"
"""The field of an operation that makes it a dry run."""
POLLS_MAX: Final = 240
"""Number of requests for the state of a dry run."""
_SECONDS: Final = 0.25
_ENDED: Final = frozenset({"done", "failed", "cancelled"})
_ACTS: Final = {"dlq-replay": "Replay", "dlq-drop": "Drop"}
_VERBS: Final = {"dlq-replay": "replayed", "dlq-drop": "dropped"}


def is_dry(request: Request) -> bool:
    """Return whether a request starts a dry run."""
    return request.target == JOBS and isinstance(request.body, dict) and bool(request.body.get("dryRun"))


async def finished(feed: Feed, job: str, seconds: float = _SECONDS) -> Mapping[str, Any] | None:
    """Wait for the end of a job and return it; None if it takes too long. Raises FeedError."""
    for _ in range(POLLS_MAX):
        told = await aside(lambda: feed.ask("GET", f"{JOBS}/{job}"))
        if isinstance(told, dict) and told.get("state") in _ENDED:
            return told
        await asyncio.sleep(seconds)
    return None


def result_of(job: Mapping[str, Any]) -> str:
    """Return the result of a dry run in a sentence."""
    if job.get("state") != "done":
        return f"The dry run is {job.get('state')}: {job.get('error') or 'no reason given'}. Nothing was changed."
    verb = _VERBS.get(str(job.get("kind")), "processed")
    done, skipped, failed = (int(job.get(name) or 0) for name in ("done", "skipped", "failed"))
    told = f"{done:,} message{'' if done == 1 else 's'} would be {verb}"
    told += f", {skipped:,} excluded by the filter" if skipped else ""
    told += f", {failed:,} rejected" if failed else ""
    reasons = job.get("reasons") or {}
    why = f" Rejected: {'; '.join(f'{reason} ({count:,})' for reason, count in list(reasons.items())[:3])}."
    return f"{told}. Nothing was changed.{why if reasons else ''}"


def real_run(job: Mapping[str, Any]) -> str:
    """Return the title of the operation for real, such as ``Replay 12 messages``; empty if it would change nothing."""
    verb, done = _ACTS.get(str(job.get("kind"))), int(job.get("done") or 0)
    if verb is None or job.get("state") != "done" or not done:
        return ""
    return f"{verb} {done:,} message{'' if done == 1 else 's'}"


def explained(deed: OperationSpec) -> str:
    """Return what a dry run of an operation does, in a sentence."""
    verb = _VERBS.get(deed.name.replace(" ", "-"), "processed")
    return f"A dry run changes nothing. It counts messages that would be {verb}."


def for_real(deed: OperationSpec, values: Values) -> OperationSpec:
    """Return an operation whose fields have the typed values, and which is not a dry run."""
    typed = {**values, FIELD: "no"}
    fields = tuple(field._replace(default=typed.get(field.name, field.default)) for field in deed.fields)
    return deed._replace(fields=fields)
