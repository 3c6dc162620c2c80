"""Bundles: the hash ranges of a namespace, all owned by the only broker; tools print them, and list topics by them."""

import re
from bisect import bisect_right
from typing import Final
from zlib import crc32

from pulsarbox.broker.tenants import Tenants
from pulsarbox.errors import PreconditionFailed
from pulsarbox.names import TopicName


class Bundles:
    """A snapshot of a namespace's bundles, for many lookups."""

    def __init__(self, tenants: Tenants, namespace: str) -> None:
        """Raises NotFound if the namespace is missing."""
        self._boundaries: list[str] = tenants.policies(namespace)["bundles"]["boundaries"]
        self._starts = [int(boundary, 16) for boundary in self._boundaries[:-1]]

    def of(self, topic: TopicName) -> str:
        """Return the bundle of a topic in the namespace, as its two boundaries."""
        i = bisect_right(self._starts, crc32(str(topic).encode())) - 1
        return f"{self._boundaries[i]}_{self._boundaries[i + 1]}"


class AllBundles:
    """The bundles of all namespaces, cached per namespace."""

    def __init__(self, tenants: Tenants) -> None:
        self._tenants = tenants
        self._found: dict[str, Bundles | None] = {}

    def of(self, topic: TopicName) -> str | None:
        """Return the bundle of a topic, or None if its namespace is being deleted."""
        namespace = topic.namespace
        if namespace not in self._found:
            there = self._tenants.has_namespace(namespace)
            self._found[namespace] = Bundles(self._tenants, namespace) if there else None
        bundles = self._found[namespace]
        return None if bundles is None else bundles.of(topic)


def bundle_of(tenants: Tenants, topic: TopicName) -> str:
    """Return the bundle of a topic, as its two boundaries. Raises NotFound if its namespace is missing."""
    return Bundles(tenants, topic.namespace).of(topic)


def check_bundle(tenants: Tenants, namespace: str, bundle: str) -> str:
    """Validate a client's bundle name. Raises NotFound without the namespace, PreconditionFailed without the bundle."""
    boundaries: list[str] = tenants.policies(namespace)["bundles"]["boundaries"]
    lower, _, upper = bundle.partition("_")
    if not (_BOUNDARY.fullmatch(lower) and _BOUNDARY.fullmatch(upper)):
        raise PreconditionFailed(f"Invalid bundle range: {bundle}: it looks like {boundaries[0]}_{boundaries[1]}")
    if lower not in boundaries[:-1]:
        raise PreconditionFailed(f"Cannot find bundle {namespace}/{bundle} in the bundles list")
    expected = boundaries[boundaries.index(lower) + 1]
    if upper != expected:
        raise PreconditionFailed(
            f"Invalid upper boundary for bundle {namespace}/{bundle}."
            f" Expected upper boundary of {namespace}/{lower}_{expected}"
        )
    return bundle


_BOUNDARY: Final = re.compile("0x[0-9a-f]{8}")
