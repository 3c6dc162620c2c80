"""Selection of the topics to read and of their starting and ending positions, from the options."""

import time
from collections.abc import Callable, Mapping
from typing import Final

from pulsarbox.client.admin import AdminRefused
from pulsarbox.errors import NotFound, SubscriptionNotFound, TopicNotFound
from pulsarbox.names import parse_topic
from pulsarbox.protocol.topics_pattern import PatternError, TopicsPattern
from pulsarbox.spark.connect.broker_api import LATEST as END
from pulsarbox.spark.connect.broker_api import Service
from pulsarbox.spark.options import EARLIEST, LATEST, SUBSCRIPTION, OptionError, SparkOptions
from pulsarbox.spark.source.offsets import FIRST, IN_FRONT, Mark
from pulsarbox.spark.topic_segments import ReadPosition

_POLL_SECONDS: Final = 0.25


class NoTopicError(OptionError):
    """A named topic does not exist."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"topic {topic} does not exist. Create it, or set waitForTopic=true to wait for it")
        self.topic = topic


def topics(service: Service, options: SparkOptions) -> list[str]:
    """Return the existing topics that the options select: full names, each partition separately, sorted.

    Raises NoTopicError for a named topic that does not exist, unless waitForTopic is set.
    """
    if options.topics_pattern:
        return _matching(service, options.topics_pattern)
    found: set[str] = set()  # a topic and one of its partitions may both be named
    for topic in options.named:
        there = _partitions(service, topic)
        if not there and not options.wait_for_topic:
            raise NoTopicError(topic)
        found |= set(there)
    return sorted(found)


def _partitions(service: Service, topic: str) -> list[str]:
    """Return the existing partitions, or the topic itself if it is not partitioned."""
    try:
        found = service.partitions(topic)
    except (NotFound, TopicNotFound):
        return []
    there = service.all_bounds(found)
    return [partition for partition in found if partition in there]


def awaited(service: Service, options: SparkOptions) -> list[str]:
    """Return the selected topics, waiting for missing ones if ``waitForTopic`` is set.

    Raises OptionError on timeout.
    """
    deadline = time.monotonic() + options.timeout_ms / 1000
    found = topics(service, options)
    while options.wait_for_topic and not _complete(found, options):
        if time.monotonic() > deadline:
            raise OptionError(
                f"{options.topics_pattern or ', '.join(options.named)}: still missing after {options.timeout_ms} ms "
                "(pollTimeoutMs)"
            )
        time.sleep(_POLL_SECONDS)
        found = topics(service, options)
    return found


def _complete(found: list[str], options: SparkOptions) -> bool:
    there = {str(parse_topic(topic).base) for topic in found} | set(found)
    return set(options.named) <= there if options.named else bool(found)


def exists(service: Service, topic: str) -> bool:
    """Return whether a topic exists."""
    return topic in service.all_bounds([topic])


def _matching(service: Service, pattern: str) -> list[str]:
    namespace, matches = matcher(pattern)
    return sorted(topic for topic in service.topics(namespace) if matches(topic))


def matcher(pattern: str) -> tuple[str, Callable[[str], bool]]:
    """Return the namespace of a pattern and a predicate on its topics. Raises OptionError."""
    text = pattern.removeprefix("persistent://")
    if text.count("/") < 2:
        text = f"public/default/{text}"
    tenant, namespace, expression = text.split("/", 2)
    try:
        matches = TopicsPattern(f"{tenant}/{namespace}/{expression}").matches
    except PatternError as error:
        raise OptionError(f"option topicsPattern = {pattern!r}: {error}") from None
    return f"{tenant}/{namespace}", lambda topic: matches(topic) and not parse_topic(topic).local.startswith("__")


def is_meant(options: SparkOptions, topic: str) -> bool:
    """Return whether the options select a topic, directly or as a partition."""
    if options.topics_pattern:
        namespace, matches = matcher(options.topics_pattern)
        return parse_topic(topic).namespace == namespace and matches(topic)
    return topic in options.named or str(parse_topic(topic).base) in options.named


def start(service: Service, options: SparkOptions, topic: str, default: str) -> Mark:
    """Return the position from which to read a topic. Raises OptionError."""
    if options.starting_time is not None:
        return Mark(service.at_time(topic, options.starting_time))
    return _mark(service, options, topic, _of(options.starting_offsets or default, topic, EARLIEST))


def end(service: Service, options: SparkOptions, topic: str) -> ReadPosition:
    """Return the exclusive end position of a topic. Raises OptionError."""
    if options.ending_time is not None:
        return service.at_time(topic, options.ending_time)
    asked = _of(options.ending_offsets, topic, LATEST)
    return END if asked == LATEST else _mark(service, options, topic, asked).place


def check_named(options: SparkOptions, found: list[str]) -> None:
    """Reject positions for topics that are not read. Raises OptionError."""
    known = {*found, *(str(parse_topic(topic).base) for topic in found)}
    for option, asked in (("startingOffsets", options.starting_offsets), ("endingOffsets", options.ending_offsets)):
        for topic in () if isinstance(asked, str) else asked:
            if topic not in known:
                raise OptionError(f"option {option} names {topic}, which is not read: remove it, or read the topic too")


def _of(asked: str | Mapping[str, ReadPosition | Mark | str], topic: str, default: str) -> ReadPosition | Mark | str:
    if isinstance(asked, str):
        return asked
    return asked.get(topic) or asked.get(str(parse_topic(topic).base)) or default


def _mark(service: Service, options: SparkOptions, topic: str, asked: ReadPosition | Mark | str) -> Mark:
    if isinstance(asked, Mark):
        return asked
    if isinstance(asked, ReadPosition):
        return Mark(asked, IN_FRONT)  # whether messages followed is unknown: assume that they are wanted
    if asked == EARLIEST:
        return FIRST
    if asked == SUBSCRIPTION:
        return Mark(_of_subscription(service, options, topic))
    bounds = service.bounds(topic)
    return Mark(bounds.end, bounds.total)


def _of_subscription(service: Service, options: SparkOptions, topic: str) -> ReadPosition:
    try:
        return service.subscription_place(topic, options.subscription)
    except (NotFound, SubscriptionNotFound, AdminRefused) as error:
        if isinstance(error, AdminRefused) and error.status != 404:
            raise
        raise OptionError(
            f"subscription {options.subscription} does not exist on {topic}: create it, or set startingOffsets=earliest"
        ) from None
