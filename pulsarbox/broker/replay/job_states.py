"""Job states, importable without the modules that run jobs."""

from typing import Final

RUNNING: Final = "running"
PAUSED: Final = "paused"
DONE: Final = "done"
CANCELLED: Final = "cancelled"
FAILED: Final = "failed"
TRIPPED: Final = "tripped"
STATES: Final = (RUNNING, PAUSED, DONE, CANCELLED, FAILED, TRIPPED)
ENDED: Final = frozenset({DONE, CANCELLED, FAILED})
"""Final states; a paused or tripped job can be resumed."""
