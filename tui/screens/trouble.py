"""Texts for a screen that the box has not answered: the whole reason with the remedy, and a short form for tables."""

from typing import Final, NamedTuple

from pulsarbox.tui.actions.key_bindings import DEFAULT_KEYS, Keys, key_or_command
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
    keys: Keys = DEFAULT_KEYS
    """Keys of its actions."""

    def key_of(self, name: str) -> str:
        """Return the first key of an action for display, else its command."""
        return key_or_command(self.keys, name)


def check_recorded(at: int | None) -> None:
    """Check that a screen that has only what is there now is wanted of now.

    Raises FeedError for a time of history, as the box does for views that are not recorded.
    """
    if at is not None:
        raise FeedError("This is not recorded", _MISSING)


def trouble_line(trouble: FeedError, screen: ScreenFacts) -> str:
    """Return the reason and the remedy, in one or two sentences."""
    if trouble.is_gone:
        retry = f"press {screen.key_of('refresh')} to retry"
        if screen.interval is not None:
            retry = f"retrying every {numbers.span(screen.interval)} ({screen.key_of('refresh')}: now)"
        told = f"✕ cannot connect to {screen.label}: {trouble}; {retry}"
        if screen.age is not None:
            return f"{told}. Showing data from {numbers.moment_before(screen.age)}."
        return f"{told}. Start the box with `pulsarbox start`, or check --admin-url."
    if _is_unrecorded(trouble, screen):
        verb = "are" if screen.title.endswith("s") else "is"
        return f"✕ {screen.title} {verb} not recorded. Press {screen.key_of('live')} to return to now."
    if trouble.status == _UNAUTHENTICATED:
        return f"✕ {trouble}. Authenticate with --token-file or a context; see docs/security.md."
    if trouble.status == _FORBIDDEN:
        return f"✕ {trouble}. Use a role with this permission (--token-file or a context); see docs/security.md."
    if _needs_box(trouble):
        return f"✕ {trouble}"
    if screen.is_filtered and trouble.is_invalid:
        change, remove = screen.key_of("filter"), screen.key_of("back")
        return f"✕ {trouble}; press {change} to change the filter, {remove} to remove it"
    remedy = f"{screen.key_of('live')} to return to now" if screen.is_past else f"{screen.key_of('refresh')} to retry"
    return f"✕ {trouble}; press {remedy}"


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
