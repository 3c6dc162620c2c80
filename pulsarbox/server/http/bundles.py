"""Bundles: the hash ranges of a namespace. One broker owns all of them; tools print them, and list topics by them."""

from bisect import bisect_right
from zlib import crc32

from pulsarbox.broker.tenants import Tenants
from pulsarbox.names import TopicName


def bundle_of(tenants: Tenants, topic: TopicName) -> str:
    """The bundle that a topic falls into, as its two boundaries. Raises NotFound without its namespace."""
    boundaries: list[str] = tenants.policies(topic.namespace)["bundles"]["boundaries"]
    starts = [int(boundary, 16) for boundary in boundaries[:-1]]
    i = bisect_right(starts, crc32(str(topic).encode())) - 1
    return f"{boundaries[i]}_{boundaries[i + 1]}"
