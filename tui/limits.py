"""Deeds about quotas: a limit changed or taken away in its place, at the level that the row names."""

from typing import Final

from pulsarbox.tui.deed import Deed

LIMITS: Final[tuple[Deed, ...]] = ()
