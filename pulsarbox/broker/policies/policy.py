"""One policy: where its value stands, and what it is where nobody has set it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from pulsarbox.config import Settings

T = TypeVar("T")


class Level(StrEnum):
    """Who has set a value: the nearer to the topic, the stronger."""

    TOPIC = "topic"
    NAMESPACE = "namespace"
    BROKER = "broker"


@dataclass(frozen=True, slots=True, eq=False)
class Policy(Generic[T]):
    """A policy that holds for a topic. Its stored values are JSON as in the Admin API, checked when they are set."""

    name: str
    """As commands and documents call it."""
    namespace_key: str
    """Where it stands in the policies of a namespace, as Pulsar's Policies has it; empty where a namespace has none."""
    topic_key: str
    """Where it stands in the policies of a topic, as Pulsar's TopicPolicies has it; empty where a topic has none."""
    read: Callable[[Any], T | None]
    """What a stored value means to the broker; None: nothing, so that the level below is asked."""
    broker: Callable[[Settings], T]
    """What holds where neither topic nor namespace says anything."""
    by_cluster: bool = False
    """In the policies of a namespace the value stands under the name of the cluster."""
