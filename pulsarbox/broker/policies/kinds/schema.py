"""Schema policies: compatibility strategy, auto-update and enforced validation.

Source: https://pulsar.apache.org/docs/4.2.x/schema-understand/#schema-compatibility-check-strategy.
"""

from typing import Final

from pulsarbox.broker.policies.policy import Policy

SCHEMA_COMPATIBILITY: Final = Policy("schema-compatibility-strategy", str)
"""A namespace may also set it by the legacy schemaAutoUpdateCompatibilityStrategy."""
ALLOW_AUTO_UPDATE: Final = Policy("is-allow-auto-update-schema", bool)
VALIDATION_ENFORCED: Final = Policy("schema-validation-enforced", bool)
