"""Required encryption: whether only encrypted messages may be published.

Source: https://pulsar.apache.org/docs/4.2.x/admin-api-namespaces/, encryptionRequired.
"""

from typing import Final

from pulsarbox.broker.policies.policy import Policy

ENCRYPTION_REQUIRED: Final = Policy("encryption-required", bool)
"""False does not set the policy: a namespace cannot relax the broker's requirement."""
