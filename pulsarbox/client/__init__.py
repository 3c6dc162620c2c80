"""A thin synchronous Pulsar client for our own tools: blocking sockets, one loop, no threads.

``Client`` opens producers and consumers. Everything happens in the calls that are made: while none is made, nothing is
read, and the broker's keep-alive is not answered. So whoever waits for something else waits in ``Client.turn``, which
also watches other file descriptors.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["router"]


def router(
    name: str = "round-robin",
    *,
    topic: str = "",
    hashing: str = "java",
    options: dict[str, str] | None = None,
    plugins_dir: str | Path | None = None,
    admin_url: str = "",
    batch_messages: int = 1,
) -> Callable[[Any, int], int]:
    """A routing plugin as ``message_router`` of the official Python client, one for each producer.

    ``hashing``: that of keys; ``java`` is what Java clients do, ``boost`` what the Python client does by itself.
    ``topic``: for routers that look at its name, or at backlogs; these need ``admin_url`` as well. ``batch_messages``:
    so many messages in a row without a key go to one partition, as batches should. Raises PluginError where there is no
    such plugin, or an option is wrong. Source: docs/plugins.md::

        client.create_producer("orders", message_router=pulsarbox.client.router("consistent", hashing="murmur3"))
    """
    from pulsarbox.client.routing import made_router

    directory = None if plugins_dir is None else Path(plugins_dir)
    return made_router(name, topic, hashing, options or {}, directory, admin_url, batch_messages)
