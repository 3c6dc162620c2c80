"""Errors of embedded boxes."""


class BoxError(Exception):
    """The box cannot start, has ended, or cannot do what was requested. The message gives the reason and what to do.

    ``status`` is the HTTP status of a rejected request; None for any other error.
    """

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status
