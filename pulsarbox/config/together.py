"""What settings must agree on with each other."""

from typing import TYPE_CHECKING, Final

from pulsarbox.config.listeners import advertised, bound
from pulsarbox.config.setting import ConfigError, did_you_mean

if TYPE_CHECKING:
    from pulsarbox.config.settings import Settings

SUBSCRIPTION_TYPES: Final = ("Exclusive", "Shared", "Failover", "Key_Shared")


def check_together(settings: "Settings") -> None:
    """What two settings must agree on. Raises ``ConfigError``."""
    if settings.brokerServicePort == settings.webServicePort != 0:
        raise ConfigError("", "webServicePort", f"is the port of brokerServicePort too ({settings.webServicePort})")
    if settings.journalMaxBatchMbytes > settings.journalVolumeSizeMbytes:
        limit = f"journalVolumeSizeMbytes, {settings.journalVolumeSizeMbytes}"
        raise ConfigError("", "journalMaxBatchMbytes", f"a batch must fit into a volume ({limit})")
    if settings.maxMessageSize > settings.journalVolumeSizeMbytes << 20:
        limit = f"journalVolumeSizeMbytes, {settings.journalVolumeSizeMbytes}"
        raise ConfigError("", "maxMessageSize", f"a message must fit into a volume ({limit})")
    if settings.preciseDispatcherFlowControl and settings.dispatchThrottlingOnBatchMessageEnabled:
        problem = (
            "not together with dispatchThrottlingOnBatchMessageEnabled, which counts a batch as one message where this "
            "looks at the messages in it: set one of them to false"
        )
        raise ConfigError("", "preciseDispatcherFlowControl", problem)
    if settings.authorizationEnabled and not settings.authenticationEnabled:
        problem = (
            "needs authenticationEnabled = true: what a client may do cannot be asked of one that has no name; set "
            "both, or neither"
        )
        raise ConfigError("", "authorizationEnabled", problem)
    _check_listeners(settings)
    for name in settings.subscriptionTypesEnabled.split(","):
        if name.strip() not in SUBSCRIPTION_TYPES:
            hint = did_you_mean(name.strip(), SUBSCRIPTION_TYPES)
            problem = f'"{name.strip()}" is no type of subscription: {", ".join(SUBSCRIPTION_TYPES)}{hint}'
            raise ConfigError("", "subscriptionTypesEnabled", problem)


def _check_listeners(settings: "Settings") -> None:
    key = "advertisedListeners"
    try:
        listeners = advertised(settings.advertisedListeners)
        key = "bindAddresses"
        used = {address.listener: key for address in bound(settings.bindAddresses)}
    except ValueError as error:
        raise ConfigError("", key, str(error)) from None
    if settings.internalListenerName:
        used[settings.internalListenerName] = "internalListenerName"
    for name, where in used.items():
        if name not in listeners:
            there = ", ".join(listeners) or "which is empty"
            raise ConfigError("", where, f"{name} is none of advertisedListeners ({there})")
