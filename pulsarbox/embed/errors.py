"""Errors of embedded boxes."""


class BoxError(Exception):
    """The box cannot start, has ended, or cannot do what was requested. The message gives the reason and what to do."""
