"""Which topic may have been meant, where the broker does not know the one that was named."""

import contextlib
from collections.abc import Iterator

from pulsarbox.cli.common.exits import NotThere
from pulsarbox.client.client import Client
from pulsarbox.errors import PulsarBoxError, TopicNotFound
from pulsarbox.names import parse_topic


@contextlib.contextmanager
def suggesting(client: Client, topic: str) -> Iterator[None]:
    """Adds the nearest name in its namespace to what the broker says of a topic that it does not have."""
    try:
        yield
    except TopicNotFound as error:
        raise NotThere(f"{error}{_hint(client, topic)}") from error


def _hint(client: Client, topic: str) -> str:
    from pulsarbox.cli.connect.admin_client import did_you_mean, short

    name = parse_topic(topic)
    try:
        found = client.topics(name.namespace)
    except PulsarBoxError:  # it is for a hint only
        return ""
    others = {short(parse_topic(each).base) for each in (found[0] if found else ())}
    return did_you_mean(short(name), others)
