"""Client-side errors, and conversion of a broker's error codes to ``pulsarbox.errors``."""

from functools import lru_cache

from pulsarbox import errors
from pulsarbox.errors import PulsarBoxError


class NotConnected(PulsarBoxError):
    """The connection to the broker failed or was lost; the message gives the reason."""


class NoAnswer(PulsarBoxError):
    """The broker did not respond in time; the message names the request."""


class Unusable(PulsarBoxError):
    """Received data cannot be used: a codec is missing, or a body cannot be decompressed."""


@lru_cache(maxsize=1)
def _by_code() -> dict[int, type[PulsarBoxError]]:
    classes = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, PulsarBoxError)]
    found: dict[int, type[PulsarBoxError]] = {}
    for each in classes:  # in definition order: a base class before subclasses with the same code
        found.setdefault(each.server_error, each)
    return found


def error_for(code: int, text: str) -> PulsarBoxError:
    """Return the error for a broker's ServerError code and message."""
    return _by_code().get(code, PulsarBoxError)(text)


_PASSING = (
    errors.ServiceNotReady,
    errors.MetadataError,
    errors.PersistenceError,
    errors.TooManyRequests,
    NotConnected,
    NoAnswer,
)


def passes(error: PulsarBoxError) -> bool:
    """Return whether a retry may succeed: the broker is unreachable or temporarily unable to serve the request."""
    return isinstance(error, _PASSING) and not isinstance(error, errors.StoreFull)
