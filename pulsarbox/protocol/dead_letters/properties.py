"""Properties of dead letters and of replayed messages.

The names are those of the official clients (RetryMessageUtil of Java, retry_router.go of Go), in both spellings of
ORIGIN_MESSAGE_ID. ORIGIN_PUBLISH_TIME, DEAD_LETTER_*, REPLAY_*, FAILURE_REASON and PIPELINE_* are specific to
pulsarbox.
"""

from collections.abc import Mapping
from typing import Final

REAL_TOPIC: Final = "REAL_TOPIC"
REAL_SUBSCRIPTION: Final = "REAL_SUBSCRIPTION"
ORIGIN_MESSAGE_ID: Final = "ORIGIN_MESSAGE_ID"
ORIGIN_MESSAGE_ID_OLD: Final = "ORIGIN_MESSAGE_IDY_TIME"
"""Legacy spelling; clients still write it in addition to the other."""
ORIGIN_PUBLISH_TIME: Final = "ORIGIN_PUBLISH_TIME"

RECONSUMETIMES: Final = "RECONSUMETIMES"
DELAY_TIME: Final = "DELAY_TIME"
RETRY_TOPIC: Final = "RETRY_TOPIC"
DEAD_LETTER_REASON: Final = "DEAD_LETTER_REASON"
DEAD_LETTER_REDELIVERIES: Final = "DEAD_LETTER_REDELIVERIES"

FAILURE_REASON: Final = "FAILURE_REASON"
"""Reason of a failure in a pipeline: exception, text, and the user's line."""
PIPELINE_ATTEMPTS: Final = "PIPELINE_ATTEMPTS"
PIPELINE_QUERY: Final = "PIPELINE_QUERY"

REPLAY_JOB: Final = "REPLAY_JOB"
"""Property of a replayed message: the number or name of its job. Kept if the message becomes a dead letter again."""
REPLAY_COUNT: Final = "REPLAY_COUNT"
"""Property of a replayed message: how often it was replayed."""

ORIGIN: Final = frozenset(
    {REAL_TOPIC, REAL_SUBSCRIPTION, ORIGIN_MESSAGE_ID, ORIGIN_MESSAGE_ID_OLD, ORIGIN_PUBLISH_TIME}
)
"""Properties with the origin."""
ATTEMPTS: Final = frozenset(
    {
        *(RECONSUMETIMES, DELAY_TIME, RETRY_TOPIC, DEAD_LETTER_REASON, DEAD_LETTER_REDELIVERIES),
        *(FAILURE_REASON, PIPELINE_ATTEMPTS, PIPELINE_QUERY, REPLAY_JOB, REPLAY_COUNT),
    }
)
"""Properties about earlier attempts."""

_COUNT_DIGITS_MAX: Final = 9


def replays_of(properties: Mapping[str, str]) -> int:
    """Return how often a message with these properties has been replayed."""
    count = properties.get(REPLAY_COUNT, "")
    return int(count) if count.isascii() and count.isdigit() and len(count) <= _COUNT_DIGITS_MAX else 0


def replay_marks(job: str, replays: int) -> dict[str, str]:
    """Return the properties that a job adds to a message that was replayed ``replays`` times before."""
    return {REPLAY_JOB: job, REPLAY_COUNT: str(replays + 1)}
