"""Suggestion of a similar topic name when the named topic does not exist."""

import contextlib
from collections.abc import Iterator

from pulsarbox.cli.common.exits import NotThere
from pulsarbox.client.client import Client
from pulsarbox.errors import PulsarBoxError, TopicNotFound
from pulsarbox.names import parse_topic


@contextlib.contextmanager
def suggesting(client: Client, topic: str) -> Iterator[None]:
    """Append the nearest topic name of the namespace to the broker's error for a missing topic."""
    try:
        yield
    except TopicNotFound as error:
        raise NotThere(f"{error}{_hint(client, topic)}") from error


def _hint(client: Client, topic: str) -> str:
    from pulsarbox.cli.connect.admin_client import did_you_mean, short

    name = parse_topic(topic)
    try:
        found = client.topics(name.namespace)
    except PulsarBoxError:  # the hint is optional
        return ""
    others = {short(parse_topic(each).base) for each in (found[0] if found else ())}
    return did_you_mean(short(name), others)
