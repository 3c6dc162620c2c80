"""Names of tenants, namespaces, topics and subscriptions: parsing and validation.

A topic name is ``domain://tenant/namespace/local``; the short forms ``local`` and ``tenant/namespace/local`` mean
``persistent://public/default/local`` and ``persistent://tenant/namespace/local``. Partition i of a partitioned topic
is the topic ``<name>-partition-<i>``. Source: Pulsar documentation, "Messaging: topics".
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from pulsarbox.errors import InvalidTopicName, PreconditionFailed

PERSISTENT = "persistent"
NON_PERSISTENT = "non-persistent"
DOMAINS = (PERSISTENT, NON_PERSISTENT)

PARTITION_SUFFIX = "-partition-"
DEAD_LETTER_SUFFIX = "-DLQ"
RETRY_SUFFIX = "-RETRY"
DEAD_LETTER_SUFFIXES = (DEAD_LETTER_SUFFIX, RETRY_SUFFIX)
"""Suffixes that clients append to ``<topic>-<subscription>``, or in old clients to ``<subscription>``."""

PERMISSION_ACTIONS = ("produce", "consume", "functions", "sources", "sinks", "packages")
"""Actions that can be granted to a role, in Pulsar's order."""

PACKAGE_TYPES = ("function", "sink", "source")
"""Types of packages, as in their URLs."""

COMPACTION_SUBSCRIPTION = "__compaction"
"""Pulsar's name of the compaction subscription, whose cursor keeps messages until they are compacted."""

OFFLOAD_SUBSCRIPTION = "pulsarbox-offload-"
"""Prefix of the subscriptions that hold topics for offloads; the ID of the target follows."""
OFFLOADED_PROPERTY = "pulsarbox.offloaded"
"""Property of such a subscription: IDs of the first and the last offloaded ledger, as ``12-345``."""

TOPIC_NAME_MAX = 4096
"""Characters in a topic name."""
_DASHES_MAX = 100
"""Dashes in a name that ``origin_of`` splits: each one costs a topic lookup."""
_ENTITY = re.compile(r"[-=:.\w]+")
_PARTITION = re.compile(r"(?P<base>.+)-partition-(?P<index>0|[1-9][0-9]{0,8})")


class TopicName(NamedTuple):
    """A parsed, fully qualified topic name."""

    domain: str
    tenant: str
    namespace_local: str
    local: str

    def __str__(self) -> str:
        return f"{self.domain}://{self.tenant}/{self.namespace_local}/{self.local}"

    @property
    def namespace(self) -> str:
        """``tenant/namespace``."""
        return f"{self.tenant}/{self.namespace_local}"

    @property
    def persistent(self) -> bool:
        """Whether the topic is persistent."""
        return self.domain == PERSISTENT

    @property
    def partition_index(self) -> int:
        """The partition index, or -1 if the topic is not a partition."""
        match = _PARTITION.fullmatch(self.local)
        return int(match["index"]) if match else -1

    @property
    def base(self) -> "TopicName":
        """The partitioned topic of a partition; otherwise the topic name itself."""
        match = _PARTITION.fullmatch(self.local)
        return self._replace(local=match["base"]) if match else self

    def partition(self, index: int) -> "TopicName":
        """Return the name of partition ``index`` of this topic."""
        return self._replace(local=f"{self.local}{PARTITION_SUFFIX}{index}")


def parse_topic(text: str) -> TopicName:
    """Parse a topic name, completing the short forms.

    Raises InvalidTopicName if the name is malformed.
    """
    if len(text) > TOPIC_NAME_MAX:  # checked first, to keep it out of the cache
        raise InvalidTopicName(
            f"Invalid topic name {text[:100]!r}...: {len(text)} characters, the maximum is {TOPIC_NAME_MAX}"
        )
    return _parsed(text)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> TopicName:
    domain, separator, rest = text.partition("://")
    if not separator:
        parts = text.split("/")
        if len(parts) == 1:
            parts = ["public", "default", text]
        elif len(parts) != 3:
            raise InvalidTopicName(f"Invalid topic name {text!r}: expected topic or tenant/namespace/topic")
        domain, rest = PERSISTENT, "/".join(parts)
    if domain not in DOMAINS:
        raise InvalidTopicName(f"Invalid topic name {text!r}: the domain must be persistent:// or non-persistent://")
    parts = rest.split("/")
    if len(parts) != 3:
        raise InvalidTopicName(f"Invalid topic name {text!r}: expected {domain}://tenant/namespace/topic")
    tenant, namespace, local = parts
    for what, part in (("tenant", tenant), ("namespace", namespace)):
        if not is_entity_name(part):
            raise InvalidTopicName(f"Invalid topic name {text!r}: {part!r} is not a valid {what} name")
    if not local.strip():
        raise InvalidTopicName(f"Invalid topic name {text!r}: the local name is empty")
    return TopicName(domain, tenant, namespace, local)


def short_topic(name: TopicName | str) -> str:
    """Return the shortest unambiguous name of a topic, such as ``orders`` in public/default."""
    short = str(name).removeprefix(f"{PERSISTENT}://")
    return short.removeprefix("public/default/")


def is_retry_topic(name: TopicName) -> bool:
    """Whether clients use a topic of this name to retry messages."""
    return name.base.local.endswith(RETRY_SUFFIX)


def origin_of(letters: TopicName, there: Callable[[TopicName], bool]) -> tuple[TopicName, str] | None:
    """Return the topic and subscription that a dead letter topic is named after, or None if its name does not match.

    Clients name it ``<topic>-<subscription>-DLQ`` or ``-RETRY``. Both names may contain dashes: the longest prefix that
    names an existing topic (``there``) wins.
    """
    local = letters.base.local
    suffix = next((each for each in DEAD_LETTER_SUFFIXES if local.endswith(each)), None)
    if suffix is None:
        return None
    words = local.removesuffix(suffix).split("-")
    if len(words) > _DASHES_MAX:
        return None
    for count in range(len(words) - 1, 0, -1):
        topic = letters._replace(local="-".join(words[:count]))
        if topic.local.strip() and there(topic):
            return topic, "-".join(words[count:])
    return None


def is_entity_name(text: str) -> bool:
    """Whether ``text`` is a valid tenant or namespace name: letters, digits, ``-``, ``=``, ``:``, ``.`` and ``_``."""
    return text.isascii() and _ENTITY.fullmatch(text) is not None


def check_entity_name(what: str, text: str) -> str:
    """Return ``text``. Raises PreconditionFailed if it is not a valid name for a ``what``."""
    if not is_entity_name(text):
        raise PreconditionFailed(f"{what} name is not valid: {text!r}; expected letters, digits and - = : . _ only")
    return text


def parse_namespace(text: str) -> tuple[str, str]:
    """Split ``tenant/namespace``. Raises PreconditionFailed if the text has another form."""
    parts = text.split("/")
    if len(parts) != 2:
        raise PreconditionFailed(f"Invalid namespace {text!r}: expected tenant/namespace")
    return check_entity_name("Tenant", parts[0]), check_entity_name("Namespace", parts[1])
