"""What this broker says of itself in CONNECTED.

Protocol versions, as far as a broker acts on them: 9 end of topic, 12 active consumer change, 18 broker entry
metadata to clients, 19 transaction coordinator connect, 20 topic migration, 21 AUTO_CONSUME sent to the broker.
"""

from __future__ import annotations

from typing import Final

from pulsarbox.protocol.PulsarApi_pb2 import FeatureFlags

PROTOCOL_VERSION: Final = 21
"""The newest protocol version spoken; CONNECTED carries the smaller of this and the client's."""

COMPATIBLE_PULSAR_VERSION: Final = "4.2.4"
"""The Apache Pulsar release whose behaviour is followed."""

SERVER_VERSION: Final = "Pulsar Server" + COMPATIBLE_PULSAR_VERSION
"""``CommandConnected.server_version``, without a space before the number, as the Java broker writes it."""

DEFAULT_MAX_MESSAGE_SIZE: Final = 5 * 1024 * 1024
"""Bytes of one message's metadata and body that clients may send, unless configured otherwise."""

END_OF_TOPIC_SINCE: Final = 9
"""Clients below this protocol version do not know REACHED_END_OF_TOPIC."""

END_OF_TOPIC_CLIENTS: Final = ("Pulsar-Java", "pulsar-rs", "DotPulsar", "pulsarbox")
"""How the names of clients begin that take REACHED_END_OF_TOPIC.

The C++, Python, Node and Go clients drop the connection at it, whatever protocol version they tell; of others it is not
known, and silence harms nobody. A Pulsar broker sends it to all.
"""

TRIES_IN_VAIN: Final = "Pulsar-CPP"
"""How the names of clients begin that try again whatever the code says; see ``told_code``."""
_NOT_ALLOWED: Final = 22
"""The number of ServerError.NotAllowedError."""

ACTIVE_CONSUMER_CHANGE_SINCE: Final = 12
"""Clients below this protocol version do not know ACTIVE_CONSUMER_CHANGE."""

BROKER_ENTRY_METADATA_SINCE: Final = 18
"""Clients below this protocol version cannot read broker entry metadata."""

TC_CLIENT_CONNECT_SINCE: Final = 19
"""Clients below this protocol version do not connect to a transaction coordinator."""


def negotiated_version(client_version: int) -> int:
    """The protocol version of a connection: the smaller of both sides'."""
    return min(PROTOCOL_VERSION, client_version)


def takes_end_of_topic(client_version: str, protocol_version: int) -> bool:
    """Whether a client may be sent REACHED_END_OF_TOPIC."""
    return protocol_version >= END_OF_TOPIC_SINCE and client_version.startswith(END_OF_TOPIC_CLIENTS)


def told_code(code: int, in_vain: bool, client_version: str) -> int:
    """The code of an error as this client is told it.

    The C++ client and those made of it (Python, Node.js) ask again after SubscriptionNotFound and InvalidTopicName
    until their operation times out, half a minute later, and report the time-out. NotAllowedError they report at once,
    with the text; so they are told that where trying again is ``in_vain``.
    """
    return _NOT_ALLOWED if in_vain and client_version.startswith(TRIES_IN_VAIN) else code


def broker_features(
    *,
    topic_watchers: bool = False,
    partitioned_metadata_without_auto_creation: bool = True,
    repl_dedup_by_lid_and_eid: bool = False,
    topic_watcher_reconcile: bool = False,
) -> FeatureFlags:
    """The flags for CONNECTED: what the broker can do, so that clients ask for no more.

    Without ``topic_watchers`` the Java client polls the list of topics every minute, as the other clients always do;
    with ``topic_watcher_reconcile`` it asks its watcher whether it has missed anything. Apache Pulsar 4.2.4 sets all
    four.
    """
    flags = FeatureFlags()
    if topic_watchers:
        flags.supports_topic_watchers = True
    if partitioned_metadata_without_auto_creation:
        flags.supports_get_partitioned_metadata_without_auto_creation = True
    if repl_dedup_by_lid_and_eid:
        flags.supports_repl_dedup_by_lid_and_eid = True
    if topic_watcher_reconcile:
        flags.supports_topic_watcher_reconcile = True
    return flags
