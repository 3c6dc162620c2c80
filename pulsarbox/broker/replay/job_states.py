"""The states of a job, which can be known without the rest of what jobs take to work."""

from typing import Final

RUNNING: Final = "running"
PAUSED: Final = "paused"
DONE: Final = "done"
CANCELLED: Final = "cancelled"
FAILED: Final = "failed"
TRIPPED: Final = "tripped"
STATES: Final = (RUNNING, PAUSED, DONE, CANCELLED, FAILED, TRIPPED)
ENDED: Final = frozenset({DONE, CANCELLED, FAILED})
"""Nothing more is done. A job that is paused or tripped can be resumed."""
