"""``pulsarbox.protocol.features``."""

from __future__ import annotations

from pulsarbox.protocol import features
from pulsarbox.protocol.PulsarApi_pb2 import FeatureFlags, ProtocolVersion


def test_the_newest_version_is_the_protocols() -> None:
    assert max(ProtocolVersion.values()) == features.PROTOCOL_VERSION
    assert features.negotiated_version(20) == 20
    assert features.negotiated_version(99) == 21


def test_the_server_version_is_written_as_the_java_broker_writes_it() -> None:
    assert features.SERVER_VERSION == "Pulsar Server4.2.4"


def test_flags() -> None:
    assert features.broker_features() == FeatureFlags(supports_get_partitioned_metadata_without_auto_creation=True)
    everything = features.broker_features(
        topic_watchers=True, repl_dedup_by_lid_and_eid=True, topic_watcher_reconcile=True
    )
    assert everything == FeatureFlags(
        supports_topic_watchers=True,
        supports_get_partitioned_metadata_without_auto_creation=True,
        supports_repl_dedup_by_lid_and_eid=True,
        supports_topic_watcher_reconcile=True,
    )
    assert not features.broker_features(partitioned_metadata_without_auto_creation=False).ListFields()
