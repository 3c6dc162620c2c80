"""Format ``pulsar``: options as the existing connector, pulsar-spark, understands them. Pure.

The names are those of the format pulsarbox. Where a default or a meaning differs, ``translated`` states the connector's
explicitly. Settings of the connector's Java client without a counterpart are refused by name.
"""

import json
from collections.abc import Mapping
from typing import Final

from google.protobuf.message import DecodeError

from pulsarbox.protocol.PulsarApi_pb2 import MessageIdData
from pulsarbox.spark.source.offsets import OffsetError, parse, text
from pulsarbox.spark.topic_segments import ReadPosition

NAME: Final = "pulsar"
"""Name of the format."""
WRITE: Final = "write"

READER: Final = "pulsar.reader."
PRODUCER: Final = "pulsar.producer."
_JAVA: Final = (READER, PRODUCER, "pulsar.client.", "pulsar.admin.")
"""Prefixes of settings of the connector's Java client."""

_ENCRYPTED: Final = "use bytes as the value: encrypted payloads are neither decrypted nor encrypted"
_TLS: Final = "use PEM files: pulsar.client.tlsTrustCertsFilePath, and pulsar.client.authPluginClassName=tls"
INSTEAD: Final = {
    "subscriptionprefix": "use subscription, the name of a subscription to acknowledge; no others are created",
    "topic.schema.class": "use .schema(...)",
    "pulsar.client.serviceurl": "use service.url",
    "pulsar.admin.serviceurl": "use admin.url",
    "pulsar.client.usetls": "use service.url=pulsar+ssl://...",
    "pulsar.client.authparammap": "use pulsar.client.authParams",
    "pulsar.client.operationtimeoutms": "use pollTimeoutMs",
    "pulsar.client.connectiontimeoutms": "use pollTimeoutMs",
    "pulsar.client.requesttimeoutms": "use pollTimeoutMs",
    "pulsar.client.usekeystoretls": _TLS,
    "pulsar.client.tlstruststorepath": _TLS,
    "pulsar.client.tlskeystorepath": _TLS,
    "pulsar.client.tlskeyfilepath": _TLS,
    "pulsar.client.tlscertificatefilepath": _TLS,
    "pulsar.reader.topicname": "use topic",
    "pulsar.reader.topicnames": "use topics",
    "pulsar.reader.subscriptionname": "use subscription",
    "pulsar.reader.subscriptionroleprefix": "use subscription",
    "pulsar.reader.startmessageid": "use startingOffsets",
    "pulsar.reader.startmessagefromrollbackdurationinsec": "use startingTime=-1h",
    "pulsar.reader.receiverqueuesize": "use maxBytesPerPartition",
    "pulsar.reader.cryptokeyreader": _ENCRYPTED,
    "pulsar.reader.cryptofailureaction": _ENCRYPTED,
    "pulsar.producer.topicname": "use topic, or the column __topic",
    "pulsar.producer.producername": "use sinkId with delivery=exactly-once",
    "pulsar.producer.sendtimeoutms": "use pollTimeoutMs",
    "pulsar.producer.batchingenabled": "use batching=key, mixed or none",
    "pulsar.producer.batcherbuilder": "use batching=key, mixed or none",
    "pulsar.producer.messageroutingmode": "use router",
    "pulsar.producer.custommessagerouter": "use router",
    "pulsar.producer.hashingscheme": "use router.hashing",
    "pulsar.producer.initialsubscriptionname": "use keep",
    "pulsar.producer.encryptionkeys": _ENCRYPTED,
    "pulsar.producer.cryptokeyreader": _ENCRYPTED,
}
"""What replaces an option of the connector, by lowercase name."""


def remedy(key: str) -> str:
    """Return what to do about an option of the connector that has no meaning here; empty for other options."""
    folded = key.lower()
    if folded in INSTEAD:
        return INSTEAD[folded]
    return "it configures the connector's Java client: remove it" if folded.startswith(_JAVA) else ""


def translated(given: Mapping[str, str], use: str) -> dict[str, str]:
    """Return the options of the format ``pulsar`` as options of the format pulsarbox.

    Delivery is at least once, rows that do not fit the schema fail the read, and ``endingOffsets`` are inclusive. An
    unreadable offset is returned unchanged.
    """
    names = {name.lower(): name for name in given}
    found = dict(given)
    if use == WRITE:
        return {"delivery": "at-least-once"} | found if "delivery" not in names else found
    if "mode" not in names:
        found["mode"] = "failfast"
    ending = names.get("endingoffsets")
    if ending is not None and given[ending].lstrip().startswith("{"):
        found[ending] = _after(given[ending])
    return found


def _after(offsets: str) -> str:
    try:
        given = json.loads(offsets)
        return json.dumps({topic: _following(place) for topic, place in given.items()})
    except (ValueError, TypeError, DecodeError, OffsetError, AttributeError):
        return offsets


def _following(place: object) -> object:
    """Return the position after a message; words unchanged."""
    if isinstance(place, list):
        found = MessageIdData.FromString(bytes(number % 256 for number in place))
        if found.ledgerId >= 2**63 - 1:  # the bytes of MessageId.earliest and latest
            return place
        return text(_next(ReadPosition(found.ledgerId, found.entryId), found.batch_index))
    if not isinstance(place, str) or place.lower() in ("earliest", "latest"):
        return place
    return text(_next(parse(place), int(place.split(":")[2]) if place.count(":") > 1 else -1))


def _next(entry: ReadPosition, batch_index: int) -> ReadPosition:
    if batch_index < 0:
        return ReadPosition(entry.ledger, entry.entry + 1)
    return ReadPosition(entry.ledger, entry.entry, batch_index + 1)
