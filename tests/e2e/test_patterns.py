"""Pattern subscriptions and topics that grow, with the official clients; the watch of lists of topics as Java uses it."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pulsar
import pytest

from pulsarbox.protocol.commands import encode_frame
from pulsarbox.protocol.PulsarApi_pb2 import BaseCommand, CommandWatchTopicList
from pulsarbox.protocol.topics_hash import topics_hash
from tests.e2e.clients import EARLIEST, admin_path, connect, numbered, receive, send_all, take, until
from tests.e2e.conftest import Running
from tests.e2e.raw import Raw

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
