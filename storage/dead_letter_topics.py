"""Which topics hold dead letters, by their name or their row."""

from typing import Final

from pulsarbox.names import DEAD_LETTER_SUFFIXES, TopicName
from pulsarbox.storage.catalog import Row

MARK: Final = "deadLetters"
"""Field of a topic's row: the box has moved dead letters there."""


def for_dead_letters(name: TopicName, row: Row) -> bool:
    """Return whether a topic with this row is a dead letter or retry topic."""
    return name.base.local.endswith(DEAD_LETTER_SUFFIXES) or bool(row.get(MARK))
