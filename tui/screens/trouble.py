"""Texts for a screen that the box has not answered: the whole reason with the remedy, and a short form for tables."""

from typing import Final, NamedTuple

from pulsarbox.tui.feed import FeedError
from pulsarbox.tui.widgets import numbers

_UNAUTHENTICATED: Final = 401
_FORBIDDEN: Final = 403
_MISSING: Final = 404
_UNAVAILABLE: Final = 503


class ScreenFacts(NamedTuple):
    """State of the screen that has queried the box."""

    label: str
    """Name or address of the box."""
    title: str
    """Title of the screen."""
    is_past: bool = False
    """Whether it shows recorded history."""
    age: float | None = None
    """Seconds since the last response, None without one."""
    interval: float | None = None
    """Seconds between requests, None if they are not repeated."""
    is_filtered: bool = False
    """Whether its rows are filtered."""


def trouble_line(trouble: FeedError, screen: ScreenFacts) -> str:
    """Return the reason and the remedy, in one or two sentences."""
    if trouble.is_gone:
        retry = "press r to retry"
        if screen.interval is not None:
            retry = f"retrying every {numbers.span(screen.interval)} (r: now)"
        told = f"✕ cannot connect to {screen.label}: {trouble}; {retry}"
        if screen.age is not None:
            return f"{told}. Showing data from {numbers.moment_before(screen.age)}."
        return f"{told}. Start the box with `pulsarbox start`, or check --admin-url."
    if _is_unrecorded(trouble, screen):
        verb = "are" if screen.title.endswith("s") else "is"
        return f"✕ {screen.title} {verb} not recorded. Press n to return to now."
    if trouble.status == _UNAUTHENTICATED:
        return f"✕ {trouble}. Authenticate with --token-file or a context; see docs/security.md."
    if trouble.status == _FORBIDDEN:
        return f"✕ {trouble}. Use a role with this permission (--token-file or a context); see docs/security.md."
    if _needs_box(trouble):
        return f"✕ {trouble}"
    if screen.is_filtered and trouble.is_invalid:
        return f"✕ {trouble}; press / to change the filter, esc to remove it"
    return f"✕ {trouble}; press {'n to return to now' if screen.is_past else 'r to retry'}"


def no_rows(trouble: FeedError, screen: ScreenFacts) -> str:
    """Return why a table is empty, in a few words."""
    if trouble.is_gone:
        return "No connection to the box."
    if _is_unrecorded(trouble, screen):
        return "Not recorded."
    if trouble.status in (_UNAUTHENTICATED, _FORBIDDEN):
        return "A permission is missing." if trouble.status == _FORBIDDEN else "Not authenticated."
    return "Needs a running box." if _needs_box(trouble) else "The request failed."


def _needs_box(trouble: FeedError) -> bool:
    """Return whether the files of a stopped box have been asked for what they do not contain."""
    return trouble.status == _UNAVAILABLE and "running" in str(trouble)


def _is_unrecorded(trouble: FeedError, screen: ScreenFacts) -> bool:
    return screen.is_past and trouble.status == _MISSING and "is not recorded" in str(trouble)
