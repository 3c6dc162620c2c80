"""Whether only encrypted messages may be published.

Source: https://pulsar.apache.org/docs/4.2.x/admin-api-namespaces/, encryptionRequired.
"""

from typing import Any, Final

from pulsarbox.broker.policies.policy import Policy


def _read(value: Any) -> bool | None:
    """A namespace cannot allow what the broker forbids."""
    return True if value else None


ENCRYPTION_REQUIRED: Final = Policy(
    "encryption-required",
    "encryption_required",
    "",
    _read,
    lambda settings: settings.encryptionRequireOnProducer,
)
