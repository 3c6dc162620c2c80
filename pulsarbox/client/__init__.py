"""A thin synchronous Pulsar client for pulsarbox's own tools: blocking calls, one event loop, no threads.

``Client`` opens producers and consumers. All work happens inside calls: between calls nothing is read, and the broker's
keep-alive is not answered. Code that waits for something else therefore waits in ``Client.turn``, which can also
watch other file descriptors.
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
    """Return a routing plugin as a ``message_router`` for one producer of the official Python client.

    ``hashing``: of keys; ``java`` is the default of Java clients, ``boost`` that of the Python client.
    ``topic``: for routers that use its name or its backlogs; the latter need ``admin_url`` as well. ``batch_messages``:
    number of consecutive messages without a key that go to one partition, to match batches. Raises PluginError if the
    plugin does not exist or an option is invalid. Source: docs/plugins.md::
        client.create_producer("orders", message_router=pulsarbox.client.router("consistent", hashing="murmur3"))
    """
    from pulsarbox.client.routing import made_router

    directory = None if plugins_dir is None else Path(plugins_dir)
    return made_router(name, topic, hashing, options or {}, directory, admin_url, batch_messages)
