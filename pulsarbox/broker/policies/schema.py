"""What schemas clients may bring to a topic.

Source: https://pulsar.apache.org/docs/4.2.x/schema-understand/#schema-compatibility-check-strategy.
"""

from typing import Any, Final

from pulsarbox.broker.policies.policy import Policy
from pulsarbox.protocol.schema.compatibility import FROM_OLD_WORDS

UNDEFINED: Final = "UNDEFINED"


def _read_strategy(value: Any) -> str | None:
    return None if value == UNDEFINED else str(value)


SCHEMA_COMPATIBILITY: Final = Policy(
    "schema-compatibility-strategy",
    "schema_compatibility_strategy",
    "schemaCompatibilityStrategy",
    _read_strategy,
    lambda settings: settings.schemaCompatibilityStrategy,
)
OLD_STRATEGY: Final = Policy(
    "schema-auto-update-compatibility-strategy",
    "schema_auto_update_compatibility_strategy",
    "",
    FROM_OLD_WORDS.get,
    lambda settings: "",
)
"""The strategy of a namespace by its old words, where it has none by the new ones."""
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
