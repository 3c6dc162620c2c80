"""The JSON shape of offload policies: Pulsar's settings for moving ledgers to object storage.

Source: https://pulsar.apache.org/docs/4.2.x/tiered-storage-overview/.
"""

from collections.abc import Mapping
from typing import Any, Final

from pulsarbox.errors import PreconditionFailed
from pulsarbox.protocol.policies.shapes import LONG_BITS, Flag, ObjectShape, Text, TextMap, WholeNumber, Word

DRIVERS: Final = ("S3", "aws-s3", "google-cloud-storage", "filesystem", "azureblob", "aliyun-oss")
"""Pulsar's offload drivers. Their names are case-insensitive."""
_S3: Final = frozenset({"s3", "aws-s3", "aliyun-oss"})
_GCS: Final = "google-cloud-storage"
_FILES: Final = "filesystem"

THRESHOLD_BYTES: Final = "managedLedgerOffloadThresholdInBytes"
THRESHOLD_SECONDS: Final = "managedLedgerOffloadThresholdInSeconds"
DELETION_LAG: Final = "managedLedgerOffloadDeletionLagInMillis"
EXTRA: Final = "managedLedgerExtraConfigurations"
"""The member that maps names to values; levels are merged by name."""
DRIVER: Final = "managedLedgerOffloadDriver"

_INT: Final = WholeNumber()
_LONG: Final = WholeNumber(LONG_BITS)
_TEXT: Final = Text()
_BLOCK: Final = 64 << 20
_GCS_BLOCK: Final = 128 << 20
_BUFFER: Final = 1 << 20


class OffloadShape(ObjectShape):
    """Offload policies. The last three members are derived from the driver, whatever a request contains."""

    def read(self, value: Any, what: str) -> dict[str, Any]:
        """See Shape.read."""
        found = super().read(value, what)
        driver = found.get(DRIVER, "").lower()
        return found | {
            "s3Driver": driver in _S3,
            "gcsDriver": driver == _GCS,
            "fileSystemDriver": driver == _FILES,
        }


OFFLOAD: Final = OffloadShape(
    {
        "offloadersDirectory": (_TEXT, "./offloaders"),
        DRIVER: (_TEXT, None),
        "managedLedgerOffloadMaxThreads": (_INT, 2),
        "managedLedgerOffloadReadThreads": (_INT, 2),
        "managedLedgerOffloadPrefetchRounds": (_INT, 1),
        THRESHOLD_SECONDS: (_LONG, None),
        THRESHOLD_BYTES: (_LONG, None),
        DELETION_LAG: (_LONG, None),
        "managedLedgerOffloadedReadPriority": (Word(("BOOKKEEPER_FIRST", "TIERED_STORAGE_FIRST")), None),
        EXTRA: (TextMap(), {}),
        "s3ManagedLedgerOffloadRegion": (_TEXT, None),
        "s3ManagedLedgerOffloadBucket": (_TEXT, None),
        "s3ManagedLedgerOffloadServiceEndpoint": (_TEXT, None),
        "s3ManagedLedgerOffloadMaxBlockSizeInBytes": (_INT, _BLOCK),
        "s3ManagedLedgerOffloadReadBufferSizeInBytes": (_INT, _BUFFER),
        "s3ManagedLedgerOffloadCredentialId": (_TEXT, None),
        "s3ManagedLedgerOffloadCredentialSecret": (_TEXT, None),
        "s3ManagedLedgerOffloadRole": (_TEXT, None),
        "s3ManagedLedgerOffloadRoleSessionName": (_TEXT, "pulsar-s3-offload"),
        "gcsManagedLedgerOffloadRegion": (_TEXT, None),
        "gcsManagedLedgerOffloadBucket": (_TEXT, None),
        "gcsManagedLedgerOffloadMaxBlockSizeInBytes": (_INT, _GCS_BLOCK),
        "gcsManagedLedgerOffloadReadBufferSizeInBytes": (_INT, _BUFFER),
        "gcsManagedLedgerOffloadServiceAccountKeyFile": (_TEXT, None),
        "fileSystemProfilePath": (_TEXT, None),
        "fileSystemURI": (_TEXT, None),
        "managedLedgerOffloadBucket": (_TEXT, None),
        "managedLedgerOffloadRegion": (_TEXT, None),
        "managedLedgerOffloadServiceEndpoint": (_TEXT, None),
        "managedLedgerOffloadMaxBlockSizeInBytes": (_INT, None),
        "managedLedgerOffloadReadBufferSizeInBytes": (_INT, None),
        "s3Driver": (Flag(), False),
        "gcsDriver": (Flag(), False),
        "fileSystemDriver": (Flag(), False),
    }
)

EMPTY_OFFLOAD: Final[Mapping[str, Any]] = OFFLOAD.read({}, "offloadPolicies")
"""Offload policies without any member set by a client."""


def check_offload(value: Mapping[str, Any]) -> None:
    """Raise PreconditionFailed without a driver of Pulsar, or without a bucket."""
    driver = value.get(DRIVER, "").lower()
    if driver not in map(str.lower, DRIVERS):
        raise PreconditionFailed(f"The driver is not supported, support value: {','.join(DRIVERS)}")
    if not _has_bucket(driver, value):
        raise PreconditionFailed("The bucket must be specified for namespace offload.")


def _has_bucket(driver: str, value: Mapping[str, Any]) -> bool:
    prefix = "s3" if driver in _S3 else "gcs" if driver == _GCS else ""
    own = value.get(f"{prefix}ManagedLedgerOffloadBucket") if prefix else driver == _FILES
    return bool(value.get("managedLedgerOffloadBucket") or own)
