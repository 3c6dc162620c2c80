"""Resource groups: the namespaces that are attached to a group share its rates.

Source: https://pulsar.apache.org/docs/4.2.x/admin-api-resource-groups/. Pulsar 4.2 limits what is published only; here
a group's dispatch rate holds as well.
"""

from typing import Any, Final, NamedTuple

from pulsarbox.broker.policies.kinds.dispatch_rate import DispatchRate
from pulsarbox.broker.policies.kinds.publish_rate import PublishRate
from pulsarbox.broker.policies.policy import Policy


def _read(name: str | None) -> str:
    return name or ""


RESOURCE_GROUP: Final = Policy("resource-group", _read)
"""The group that a namespace is attached to; empty where there is none."""


class GroupRates(NamedTuple):
    """The rates of a group, a second."""

    publish: PublishRate
    dispatch: DispatchRate


def group_key(name: str) -> str:
    """The row of a group: Pulsar's ResourceGroup, as JSON."""
    return f"resourcegroup/{name}"


def group_rates(row: dict[str, Any]) -> GroupRates:
    """The rates that a group's row stands for. What is missing, null, 0 or less is no limit."""

    def rate(key: str) -> int:
        return max(row.get(key) or 0, 0)

    return GroupRates(
        PublishRate(rate("publishRateInMsgs"), rate("publishRateInBytes")),
        DispatchRate(rate("dispatchRateInMsgs"), rate("dispatchRateInBytes")),
    )
