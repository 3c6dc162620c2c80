"""Texts for errors: the reason, what happens next, and the remedy."""

from pulsarbox.tui.feed import FeedError
from pulsarbox.tui.screens.trouble import ScreenFacts, trouble_line
from pulsarbox.tui.widgets import numbers
from tests.unit.tui.fake import NOW
from tests.unit.tui.seen import stopped

GONE = FeedError("connection refused")


def test_a_lost_box_is_retried_and_the_data_shown_has_its_time() -> None:
    with stopped():
        told = trouble_line(GONE, ScreenFacts("prod", "Topics", age=65.0, interval=1.0))
        time = numbers.moment(NOW - 65_000)
    assert told == (
        f"✕ cannot connect to prod: connection refused; retrying every 1 s (r: now). Showing data from {time}."
    )


def test_without_data_the_remedy_is_to_start_the_box() -> None:
    told = trouble_line(GONE, ScreenFacts("prod", "Topics", interval=60.0))
    assert told == (
        "✕ cannot connect to prod: connection refused; retrying every 60 s (r: now). "
        "Start the box with `pulsarbox start`, or check --admin-url."
    )


def test_while_nothing_is_refreshed_a_key_retries() -> None:
    told = trouble_line(GONE, ScreenFacts("prod", "Topics", is_past=True))
    assert "connection refused; press r to retry. Start" in told


def test_a_refusal_names_what_to_use_in_a_sentence() -> None:
    facts = ScreenFacts("prod", "Topics")
    told = trouble_line(FeedError("the role 'reader' lacks the permission 'consume'", status=403), facts)
    assert told == (
        "✕ the role 'reader' lacks the permission 'consume'. "
        "Use a role with this permission (--token-file or a context); see docs/security.md."
    )
    told = trouble_line(FeedError("authentication required", status=401), facts)
    assert told == "✕ authentication required. Authenticate with --token-file or a context; see docs/security.md."
