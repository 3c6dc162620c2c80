"""Splitting of bundles, and the hash positions of topics by which to split them."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice, pairwise
from typing import Final
from zlib import crc32

from pulsarbox.broker.cluster import bundle_split
from pulsarbox.broker.tenants import BUNDLES_MAX
from pulsarbox.broker.topic.topic import Topic
from pulsarbox.clock import Now
from pulsarbox.errors import BadRequest, NamespaceNotFound, NotFound, PreconditionFailed
from pulsarbox.names import parse_topic
from pulsarbox.server.http.framework.cooperative_work import in_turns
from pulsarbox.server.http.framework.request import DONE, DeferredAnswer, HttpRequest, answer, kind_of
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.http.resources.bundles import Bundles, check_bundle
from pulsarbox.server.http.resources.namespace_topics import unload_bundles
from pulsarbox.server.metrics.rows import look

EQUAL_RANGES: Final = "range_equally_divide"
EQUAL_TOPICS: Final = "topic_count_equally_divide"
POSITIONS: Final = "specified_positions_divide"
ALGORITHMS: Final = (EQUAL_RANGES, EQUAL_TOPICS, POSITIONS)

LARGEST: Final = "LARGEST"
"""The bundle with the most topics."""
HOT: Final = "HOT"
"""The bundle with the highest throughput."""

AT_ONCE: Final = 20
"""Loaded topics measured per turn."""

Step = Callable[[Now], None]


def split(call: HttpRequest) -> DeferredAnswer:
    """Split a bundle; with ``unload``, the topics of the new bundles are unloaded.

    Topics stay where they are: the box owns all bundles.
    """
    algorithm, positions = _algorithm(call), _positions(call)
    if algorithm == POSITIONS and not positions:
        raise PreconditionFailed(f"With {POSITIONS} split algorithm, splitBoundaries must not be empty")
    if not call.tenants.has_namespace(call.namespace()):
        raise NamespaceNotFound("Namespace not found")
    asked = call.path["bundle"]
    if asked not in (HOT, LARGEST):
        check_bundle(call.tenants, call.namespace(), asked)
    found = _BundleContents(call)
    steps: list[Iterator[Step]] = []
    if asked == HOT:
        steps.append(found.measure())
    if asked == LARGEST or algorithm != EQUAL_RANGES:
        steps.append(found.count())

    def finish(now: Now, later: DeferredAnswer) -> None:
        bundle = found.named(asked)
        hashes = found.hashes[bundle]
        points = {
            EQUAL_RANGES: lambda: bundle_split.middle(bundle),
            EQUAL_TOPICS: lambda: bundle_split.median(hashes),
            POSITIONS: lambda: bundle_split.inside(bundle, positions) if len(hashes) > 1 else [],
        }[algorithm]()
        _split(call, bundle, points, later)

    return in_turns(call, (step for some in steps for step in some), lambda step, now: step(now), finish, 1)


def _split(call: HttpRequest, bundle: str, points: list[int], later: DeferredAnswer) -> None:
    """Store new boundaries, and answer. Without points nothing changes, which is no error, as in Pulsar."""
    namespace, tenants = call.namespace(), call.tenants
    check_bundle(tenants, namespace, bundle)  # it may have been split since the request began
    if not points:
        later.complete(DONE)
        return
    boundaries = bundle_split.split(tenants.policies(namespace)["bundles"]["boundaries"], bundle, points)
    count = len(boundaries) - 1
    if count > BUNDLES_MAX:
        raise PreconditionFailed(f"Invalid number of bundles: {count}; at most {BUNDLES_MAX} are possible")
    tenants.set_policy(namespace, "bundles", {"boundaries": boundaries, "numBundles": count})
    call.broker.clusters.quotas.delete(namespace, bundle)
    if call.flag("unload"):
        first = boundaries.index(bundle.partition("_")[0])
        edges = boundaries[first : first + len(points) + 2]
        new = frozenset(f"{lower}_{upper}" for lower, upper in pairwise(edges))
        unload_bundles(call, namespace, new).on_complete(later.complete)
    else:
        later.complete(DONE)


class _BundleContents:
    """Topics and throughput of a namespace, by bundle. Collected in steps, each of one turn."""

    def __init__(self, call: HttpRequest) -> None:
        """Raises NotFound if the namespace is missing."""
        self._call = call
        self._bundles = Bundles(call.tenants, call.namespace())
        self.hashes: defaultdict[str, list[int]] = defaultdict(list)
        """Hashes of the topics, by bundle."""
        self._throughput: defaultdict[str, float] = defaultdict(float)

    def count(self) -> Iterator[Step]:
        """Yield the steps that collect ``hashes``."""
        for page in self._call.topics.pages(self._call.namespace(), system=True):
            yield partial(self._add, page)

    def _add(self, page: list[str], now: Now) -> None:
        for name in page:
            self.hashes[self._bundles.of(parse_topic(name))].append(crc32(name.encode()))

    def measure(self) -> Iterator[Step]:
        """Yield the steps that add up the throughput of loaded topics."""
        topics = (topic for topic in self._call.topics if topic.name.namespace == self._call.namespace())
        while some := list(islice(topics, AT_ONCE)):
            yield partial(self._weigh, some)

    def _weigh(self, topics: list[Topic], now: Now) -> None:
        latencies = self._call.broker.commits.times.last_minute(now)
        for topic in topics:
            row = look(topic, latencies, now).topic
            self._throughput[self._bundles.of(topic.name)] += row.bytes_in + row.bytes_out

    def named(self, asked: str) -> str:
        """Return the requested bundle. Raises NotFound if no bundle is the largest, or hot."""
        if asked not in (HOT, LARGEST):
            return asked
        found = self._throughput if asked == HOT else {bundle: len(each) for bundle, each in self.hashes.items()}
        if not found:
            raise NotFound(f"Bundle range {asked} not found")
        return max(found, key=lambda bundle: found[bundle])


def _algorithm(call: HttpRequest) -> str:
    name = call.query.get("splitAlgorithmName", "").strip() or EQUAL_RANGES
    if name not in ALGORITHMS:
        raise PreconditionFailed(
            f"Unsupported namespace bundle split algorithm, supported algorithms are [{', '.join(ALGORITHMS)}]"
        )
    return name


def _positions(call: HttpRequest) -> list[int]:
    body = call.json()
    if body is None:
        return []
    if not isinstance(body, list):
        raise BadRequest(f"Split boundaries must be a list of whole numbers, not {kind_of(body)}")
    if any(type(each) is not int for each in body):
        raise BadRequest("Split boundaries must be a list of whole numbers")
    return body


def hash_positions(call: HttpRequest) -> DeferredAnswer:
    """Return the hashes of a bundle's topics; with ``topics``, only of those. A partitioned topic is its partitions."""
    namespace = call.namespace()
    bundle = check_bundle(call.tenants, namespace, call.path["bundle"])
    wanted = frozenset(parse_topic(topic) for topic in call.values("topics"))
    bundles = Bundles(call.tenants, namespace)
    found: dict[str, int] = {}

    def add(page: list[str], now: Now) -> None:
        for text in page:
            name = parse_topic(text)
            if bundles.of(name) == bundle and (not wanted or name in wanted or name.base in wanted):
                found[text] = crc32(text.encode())

    def finish(now: Now, later: DeferredAnswer) -> None:
        later.complete(answer({"namespace": namespace, "bundle": bundle, "topicHashPositions": found}))

    return in_turns(call, call.topics.pages(namespace, system=True), add, finish, 1)


_BUNDLE: Final = "/admin/v2/namespaces/{tenant}/{namespace}/{bundle}"

ROUTES = (
    HttpRoute("PUT", f"{_BUNDLE}/split", Permission.SUPERUSER, split),
    HttpRoute("GET", f"{_BUNDLE}/topicHashPositions", Permission.TENANT_ADMIN, hash_positions),
)
