"""Names of tenants, namespaces, topics and subscriptions: parsing and the rules they obey.

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

COMPACTION_SUBSCRIPTION = "__compaction"
"""The subscription that holds what is to be compacted yet; Pulsar's name for it."""

TOPIC_NAME_MAX = 4096
"""Characters of a topic's name."""
_DASHES_MAX = 100
"""Dashes in a name that ``origin_of`` takes apart: for each it looks a topic up."""
_ENTITY = re.compile(r"[-=:.\w]+")
_PARTITION = re.compile(r"(?P<base>.+)-partition-(?P<index>0|[1-9][0-9]{0,8})")


class TopicName(NamedTuple):
    """A full topic name, taken apart."""

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
        """Whether the topic's messages are stored."""
        return self.domain == PERSISTENT

    @property
    def partition_index(self) -> int:
        """The partition's number, or -1 for a topic that is none."""
        match = _PARTITION.fullmatch(self.local)
        return int(match["index"]) if match else -1

    @property
    def base(self) -> "TopicName":
        """The partitioned topic that this is a partition of; itself where it is none."""
        match = _PARTITION.fullmatch(self.local)
        return self._replace(local=match["base"]) if match else self

    def partition(self, index: int) -> "TopicName":
        """The name of partition ``index`` of this topic."""
        return self._replace(local=f"{self.local}{PARTITION_SUFFIX}{index}")


def parse_topic(text: str) -> TopicName:
    """Take a topic name apart, filling in what the short forms leave out.

    Raises InvalidTopicName, with what is wrong, for anything else.
    """
    if len(text) > TOPIC_NAME_MAX:  # before it is remembered
        raise InvalidTopicName(
            f"Invalid topic name {text[:100]!r}...: it has {len(text)} characters, and {TOPIC_NAME_MAX} are allowed"
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
            raise InvalidTopicName(f"Invalid topic name {text!r}: a short name is 'topic' or 'tenant/namespace/topic'")
        domain, rest = PERSISTENT, "/".join(parts)
    if domain not in DOMAINS:
        raise InvalidTopicName(f"Invalid topic name {text!r}: the domain must be persistent:// or non-persistent://")
    parts = rest.split("/")
    if len(parts) != 3:
        raise InvalidTopicName(f"Invalid topic name {text!r}: it must be {domain}://tenant/namespace/topic")
    tenant, namespace, local = parts
    for what, part in (("tenant", tenant), ("namespace", namespace)):
        if not is_entity_name(part):
            raise InvalidTopicName(f"Invalid topic name {text!r}: {part!r} is no valid {what} name")
    if not local.strip():
        raise InvalidTopicName(f"Invalid topic name {text!r}: the topic's own name is empty")
    return TopicName(domain, tenant, namespace, local)


def origin_of(letters: TopicName, suffix: str, there: Callable[[TopicName], bool]) -> tuple[TopicName, str] | None:
    """The topic and the subscription that a topic for dead letters is called after; None where its name tells of none.

    Clients call it after both, with a dash between and ``suffix`` behind. Names may have dashes as well: it is the
    longest name of a topic that is ``there``.
    """
    local = letters.base.local
    if not local.endswith(suffix):
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
    """Whether ``text`` may name a tenant or a namespace: letters, digits, ``-``, ``=``, ``:``, ``.`` and ``_``."""
    return text.isascii() and _ENTITY.fullmatch(text) is not None


def check_entity_name(what: str, text: str) -> str:
    """``text`` itself; raises PreconditionFailed where it cannot name a ``what``."""
    if not is_entity_name(text):
        raise PreconditionFailed(f"{what} name is not valid: {text!r} has more than letters, digits and - = : . _")
    return text


def parse_namespace(text: str) -> tuple[str, str]:
    """``tenant/namespace`` as a pair; raises PreconditionFailed for anything else."""
    parts = text.split("/")
    if len(parts) != 2:
        raise PreconditionFailed(f"Invalid namespace {text!r}: it must be tenant/namespace")
    return check_entity_name("Tenant", parts[0]), check_entity_name("Namespace", parts[1])
