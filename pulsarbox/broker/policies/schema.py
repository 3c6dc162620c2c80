"""What schemas clients may bring to a topic.

Source: https://pulsar.apache.org/docs/4.2.x/schema-understand/#schema-compatibility-check-strategy.
"""

from typing import Any, Final

from pulsarbox.broker.policies.policy import Policy

UNDEFINED: Final = "UNDEFINED"
OF_BROKER: Final = "FULL"
"""Pulsar's own value of schemaCompatibilityStrategy."""


def _read_strategy(value: Any) -> str | None:
    return None if value == UNDEFINED else str(value)


SCHEMA_COMPATIBILITY: Final = Policy(
    "schema-compatibility-strategy",
    "schema_compatibility_strategy",
    "schemaCompatibilityStrategy",
    _read_strategy,
    lambda settings: OF_BROKER,
)
ALLOW_AUTO_UPDATE: Final = Policy(
    "is-allow-auto-update-schema",
    "is_allow_auto_update_schema",
    "",
    bool,
    lambda settings: settings.isAllowAutoUpdateSchemaEnabled,
)
VALIDATION_ENFORCED: Final = Policy(
    "schema-validation-enforced",
    "schema_validation_enforced",
    "schemaValidationEnforced",
    bool,
    lambda settings: settings.isSchemaValidationEnforced,
)
