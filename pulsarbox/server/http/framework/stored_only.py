"""Answers to changes that a box stores, returns and deletes like Pulsar, but that have no effect in a single broker."""

import logging
from functools import cache

from pulsarbox.errors import WARNING_HEADER
from pulsarbox.server.http.framework.request import DONE, HttpResponse

log = logging.getLogger(__name__)


def stored_only(subject: str, reason: str, given: HttpResponse = DONE) -> HttpResponse:
    """Return an answer with a warning that a change has no effect, and log the warning once per subject.

    Several warnings of one answer are joined by a semicolon. ``subject`` names the kind of object, such as
    ``failure domains``, never a particular one, which keeps the log short. ``reason`` is a clause
    in ASCII without a line break.
    """
    text = f"{subject}: stored, without effect: {reason}"
    _log_once(text)
    return with_warning(text, given)


def with_warning(text: str, given: HttpResponse = DONE) -> HttpResponse:
    """Return an answer with another warning, which is in ASCII without a line break."""
    before = given.headers.get(WARNING_HEADER)
    return given._replace(headers={**given.headers, WARNING_HEADER: f"{before}; {text}" if before else text})


@cache
def _log_once(text: str) -> None:
    log.warning("%s", text)
