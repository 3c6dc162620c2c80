"""What can go wrong between a client and a broker; an error that a broker tells is one of ``pulsarbox.errors``."""

from functools import lru_cache

from pulsarbox import errors
from pulsarbox.errors import PulsarBoxError


class NotConnected(PulsarBoxError):
    """There is no connection to the broker, or it was lost. The text says why."""


class NoAnswer(PulsarBoxError):
    """The broker did not answer in time. The text says what was asked."""


class Unusable(PulsarBoxError):
    """Something that came cannot be used: a codec is missing, a body cannot be decompressed."""


@lru_cache(maxsize=1)
def _by_code() -> dict[int, type[PulsarBoxError]]:
    classes = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, PulsarBoxError)]
    found: dict[int, type[PulsarBoxError]] = {}
    for each in classes:  # in the order of the file: a base class before those that share its code
        found.setdefault(each.server_error, each)
    return found


def told(code: int, text: str) -> PulsarBoxError:
    """The error that a broker tells by a ServerError and its text."""
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
    """Whether it is worth trying again: the broker is not there, or says that it cannot just now."""
    return isinstance(error, _PASSING) and not isinstance(error, errors.StoreFull)
