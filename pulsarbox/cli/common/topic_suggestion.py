"""Suggestion of a similar topic name when the named topic does not exist."""

import contextlib
from collections.abc import Iterator

from pulsarbox.cli.common.exits import NotThere
from pulsarbox.client.client import Client
from pulsarbox.errors import PulsarBoxError, TopicNotFound
from pulsarbox.names import TopicName, parse_topic


@contextlib.contextmanager
def suggesting(client: Client, topic: str) -> Iterator[None]:
    """Convert the broker's error for a missing topic into one that suggests the nearest name of its namespace."""
    from pulsarbox.cli.connect.admin_client import short

    try:
        yield
    except TopicNotFound as error:
        name = parse_topic(topic)
        raise NotThere(f"no topic '{short(name)}'{_hint(client, name)}") from error


def _hint(client: Client, name: TopicName) -> str:
    from pulsarbox.cli.connect.admin_client import did_you_mean, short

    try:
        found = client.topics(name.namespace)
    except PulsarBoxError:  # the hint is optional
        return ""
    others = {short(parse_topic(each).base) for each in (found[0] if found else ())}
    return did_you_mean(short(name), others)
