"""How much one step of packing takes at once."""

from typing import Final

STEP_BYTES: Final = 48 << 20
"""Live bytes of one step of packing, about: a checkpoint may have to wait for it."""
LEARN_FROM: Final = 128 << 10
"""Live bytes of a topic in one step from which on it may get a dictionary of its own."""
