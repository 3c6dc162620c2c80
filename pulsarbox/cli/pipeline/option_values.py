"""Parsing of pipeline options. Invalid values raise Misused."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pulsarbox.cli.common.exits import Misused, NotThere
from pulsarbox.errors import Conflict, PulsarBoxError
from pulsarbox.spark.pipelines.declaration import is_url


def pairs_of(given: tuple[str, ...]) -> dict[str, str]:
    """Parse --option values. Raises Misused."""
    pairs = [each.partition("=") for each in given]
    for each, (_, mark, _text) in zip(given, pairs, strict=True):
        if not mark:
            raise Misused(f"--option {each}: expected NAME=VALUE, such as header=true")
    return {name: text for name, _, text in pairs}


def absolute(place: str) -> str:
    """Return an absolute path, because the JVM may have another working directory; a URL or empty text unchanged."""
    return place if not place or is_url(place) else str(Path(place).expanduser().absolute())


@contextmanager
def checked() -> Iterator[None]:
    """Convert errors in the options into Misused."""
    try:
        yield
    except Conflict:  # about existing data, not the options
        raise
    except (PulsarBoxError, ValueError) as error:
        raise Misused(str(error)) from error


@contextmanager
def topics_there() -> Iterator[None]:
    """Convert the error for a missing topic into that of other commands."""
    from pulsarbox.cli.connect.admin_client import short
    from pulsarbox.spark.options import OptionError
    from pulsarbox.spark.source.topic_selection import NoTopicError

    try:
        yield
    except NoTopicError as error:
        raise NotThere(f"no topic {short(error.topic)}; `pulsarbox topic list` lists the topics") from None
    except OptionError as error:
        raise Misused(str(error)) from error
