"""Options of pipelines, as they are written; what cannot be meant is a misuse, whoever finds out."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pulsarbox.cli.common.exits import Misused, NotThere
from pulsarbox.errors import Conflict, PulsarBoxError
from pulsarbox.spark.pipelines.declaration import is_url


def pairs_of(given: tuple[str, ...]) -> dict[str, str]:
    """What --option gives. Raises Misused."""
    pairs = [each.partition("=") for each in given]
    for each, (_, mark, _text) in zip(given, pairs, strict=True):
        if not mark:
            raise Misused(f"--option {each}: it looks like header=true")
    return {name: text for name, _, text in pairs}


def absolute(place: str) -> str:
    """A directory of this machine by its whole path, as a JVM may be elsewhere; a URL as it is, empty as it is."""
    return place if not place or is_url(place) else str(Path(place).expanduser().absolute())


@contextmanager
def checked() -> Iterator[None]:
    """Whatever is wrong with what was given is a misuse of the command."""
    try:
        yield
    except Conflict:  # it is about what is there
        raise
    except (PulsarBoxError, ValueError) as error:
        raise Misused(str(error)) from error


@contextmanager
def topics_there() -> Iterator[None]:
    """A topic that does not exist is said as other commands say it."""
    from pulsarbox.cli.connect.admin_client import short
    from pulsarbox.spark.options import OptionError
    from pulsarbox.spark.source.topic_selection import NoTopicError

    try:
        yield
    except NoTopicError as error:
        raise NotThere(
            f"there is no topic {short(error.topic)}: `pulsarbox topic list` has those that there are"
        ) from None
    except OptionError as error:
        raise Misused(str(error)) from error
