"""Protocol version and feature flags that the broker announces in CONNECTED.

Protocol versions that change broker behaviour: 9 end of topic, 12 active consumer change, 18 broker entry
metadata to clients, 19 transaction coordinator connect, 20 topic migration, 21 AUTO_CONSUME sent to the broker.
"""

from __future__ import annotations

from typing import Final

from pulsarbox.protocol.PulsarApi_pb2 import FeatureFlags

PROTOCOL_VERSION: Final = 21
"""The newest supported protocol version; CONNECTED carries the smaller of this and the client's."""

COMPATIBLE_PULSAR_VERSION: Final = "4.2.4"
"""The Apache Pulsar release that pulsarbox is compatible with."""

SERVER_VERSION: Final = "Pulsar Server" + COMPATIBLE_PULSAR_VERSION
"""``CommandConnected.server_version``, without a space before the number, as the Java broker writes it."""

DEFAULT_MAX_MESSAGE_SIZE: Final = 5 * 1024 * 1024
"""Default limit of a message's metadata and body, in bytes."""

END_OF_TOPIC_SINCE: Final = 9
"""Clients below this protocol version do not know REACHED_END_OF_TOPIC."""

END_OF_TOPIC_CLIENTS: Final = ("Pulsar-Java", "pulsar-rs", "DotPulsar", "pulsarbox")
"""Name prefixes of clients that understand REACHED_END_OF_TOPIC.

The C++, Python, Node and Go clients drop the connection on receiving it, whatever protocol version they announce. Other
clients are unknown, and omitting the command is harmless. A Pulsar broker sends it to all.
"""

TRIES_IN_VAIN: Final = "Pulsar-CPP"
"""Name prefix of clients that retry whatever the error code; see ``client_error_code``."""
_NOT_ALLOWED: Final = 22
"""ServerError.NotAllowedError."""

ACTIVE_CONSUMER_CHANGE_SINCE: Final = 12
"""Clients below this protocol version do not know ACTIVE_CONSUMER_CHANGE."""

BROKER_ENTRY_METADATA_SINCE: Final = 18
"""Clients below this protocol version cannot read broker entry metadata."""

TC_CLIENT_CONNECT_SINCE: Final = 19
"""Clients below this protocol version do not connect to a transaction coordinator."""


def negotiated_version(client_version: int) -> int:
    """Return the protocol version of a connection: the smaller of the two sides' versions."""
    return min(PROTOCOL_VERSION, client_version)


def supports_end_of_topic(client_version: str, protocol_version: int) -> bool:
    """Return whether a client may be sent REACHED_END_OF_TOPIC."""
    return protocol_version >= END_OF_TOPIC_SINCE and client_version.startswith(END_OF_TOPIC_CLIENTS)


def client_error_code(code: int, in_vain: bool, client_version: str) -> int:
    """Return the error code to send to this client.

    The C++ client and its derivatives (Python, Node.js) retry after SubscriptionNotFound and InvalidTopicName until
    their operation times out, half a minute later, and then report the timeout. They report NotAllowedError at once,
    with its text, so they get that code if a retry is ``in_vain``.
    """
    return _NOT_ALLOWED if in_vain and client_version.startswith(TRIES_IN_VAIN) else code


def broker_features(
    *,
    topic_watchers: bool = False,
    partitioned_metadata_without_auto_creation: bool = True,
    repl_dedup_by_lid_and_eid: bool = False,
    topic_watcher_reconcile: bool = False,
) -> FeatureFlags:
    """Return the feature flags for CONNECTED.

    Without ``topic_watchers`` the Java client polls the list of topics every minute, as other clients always do. With
    ``topic_watcher_reconcile`` it asks its watcher for missed changes. Apache Pulsar 4.2.4 sets all four.
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
