"""Limits of one packing step."""

from typing import Final

STEP_BYTES: Final = 48 << 20
"""Approximate live bytes per packing step: a checkpoint may have to wait for it."""
LEARN_FROM: Final = 128 << 10
"""Live bytes of a topic in one step from which it may get a dictionary."""
