"""Pattern subscriptions and topics that grow, with official clients; the watch of lists of topics as Java uses it."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.clients import EARLIEST, connect
from tests.e2e.conftest import Running

DISCOVERY_SECONDS = 1


@pytest.fixture
def space(box: Running, fresh: Callable[[str], str]) -> str:
    """A namespace of the test's own."""
    name = "public/" + fresh("space").rpartition("/")[2]
    box.admin("PUT", f"namespaces/{name}")
    return name


def growing(url: str) -> Any:
    """A client that looks every second whether topics have more partitions."""
    return connect(url, partition_update_interval_in_seconds=1)


def matching(client: Any, space: str, name: str = "w-.*", **options: Any) -> Any:
    import re

    pattern = re.compile(f"persistent://{space}/{name}")
    return client.subscribe(
        pattern, "s", initial_position=EARLIEST, pattern_auto_discovery_period=DISCOVERY_SECONDS, **options
    )
