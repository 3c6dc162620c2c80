"""The row of one accepted command in the command table."""

from collections.abc import Callable
from typing import Any, NamedTuple

from pulsarbox.broker.security.command_rules import Needs, Rule
from pulsarbox.clock import Now
from pulsarbox.protocol import replies

Handler = Callable[[Any, Any, Now], None]
"""Handles a command: its connection, the command and the time."""
Refusal = Callable[[int, int, str], bytes]
"""Builds the error response from the request ID, error code and message."""


class CommandRow(NamedTuple):
    """One command that the broker accepts."""

    type: int
    states: frozenset[str]
    permission: Needs
    handler: Handler
    words: str = ""
    """The operation named in "not authorized" errors, in Pulsar's wording."""
    refusal: Refusal = replies.error
    rule: Rule | None = None
    """Authorizes the command; None if nothing is to check or authorization is disabled."""
