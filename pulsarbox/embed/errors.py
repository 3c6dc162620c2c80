"""What goes wrong with a box that is embedded."""


class BoxError(Exception):
    """The box does not start, has ended, or cannot do this. Says why, and what to do."""
