"""Resource groups: the namespaces that are attached to a group share its rates.

Source: https://pulsar.apache.org/docs/4.2.x/admin-api-resource-groups/. Pulsar 4.2 enforces only the publish rate; here
a group's dispatch rate is enforced as well.
"""

from typing import Any, Final, NamedTuple

from pulsarbox.broker.policies.kinds.dispatch_rate import DispatchRate
from pulsarbox.broker.policies.kinds.publish_rate import PublishRate
from pulsarbox.broker.policies.policy import Policy


def _read(name: str | None) -> str:
    return name or ""


RESOURCE_GROUP: Final = Policy("resource-group", _read)
"""The group that a namespace is attached to; empty for none."""


class GroupRates(NamedTuple):
    """The rates of a group, per second."""

    publish: PublishRate
    dispatch: DispatchRate


def group_key(name: str) -> str:
    """Return the key of a group's row, which is Pulsar's ResourceGroup as JSON."""
    return f"resourcegroup/{name}"


def group_rates(row: dict[str, Any]) -> GroupRates:
    """Return the rates of a group from its row. A missing, null, zero or negative rate is no limit."""

    def rate(key: str) -> int:
        return max(row.get(key) or 0, 0)

    return GroupRates(
        PublishRate(rate("publishRateInMsgs"), rate("publishRateInBytes")),
        DispatchRate(rate("dispatchRateInMsgs"), rate("dispatchRateInBytes")),
    )
