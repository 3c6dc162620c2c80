"""Local runs of functions, sinks and sources, by the local runner of a Pulsar installation, as in pulsar-admin."""

import os
import subprocess
from pathlib import Path
from typing import Any, Final

from pulsarbox.cli.common.exits import Failed, Misused
from pulsarbox.cli.pulsar_admin.printing import compact
from pulsarbox.cli.pulsar_admin.steps.connectors import check, connector_config, given_type
from pulsarbox.cli.pulsar_admin.steps.functions import check_code, function_config
from pulsarbox.cli.pulsar_admin.table import Command

HOME_VARIABLE: Final = "PULSAR_HOME"

_OPTIONS: Final = {
    "state_storage_service_url": "stateStorageServiceUrl",
    "broker_service_url": "brokerServiceUrl",
    "web_service_url": "webServiceUrl",
    "client_auth_plugin": "clientAuthPlugin",
    "client_auth_params": "clientAuthParams",
    "use_tls": "useTls",
    "tls_allow_insecure": "tlsAllowInsecureConnection",
    "hostname_verification_enabled": "tlsHostNameVerificationEnabled",
    "tls_trust_cert_path": "tlsTrustCertFilePath",
    "instance_id_offset": "instanceIdOffset",
    "runtime": "runtime",
    "secrets_provider_classname": "secretsProviderClassName",
    "secrets_provider_config": "secretsProviderConfig",
    "metrics_port_start": "metricsPortStart",
}
"""Options of the local runner."""
_FLAGS: Final = ("use_tls", "tls_allow_insecure", "hostname_verification_enabled")


def started(command: Command, values: dict[str, Any]) -> None:
    """Run a component until its runner ends. Raises Failed if the runner is missing or fails."""
    config = _config(command, values)
    kind = command.group.removesuffix("s")
    try:
        done = subprocess.run(
            [str(runner()), f"--{kind}Config", compact(_local(config)), *arguments(values)], check=False
        )
    except OSError as error:
        raise Failed(f"cannot start {runner()}: {error.strerror}") from None
    if done.returncode:
        raise Failed(f"the local runner failed with exit code {done.returncode}")


def _local(config: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration as the local runner spells it."""
    specs = config.get("inputSpecs")
    return config if specs is None else {**config, "inputSpecs": {name: _spec(one) for name, one in specs.items()}}


def _spec(spec: dict[str, Any]) -> dict[str, Any]:
    return {"isRegexPattern" if name == "regexPattern" else name: value for name, value in spec.items()}


def runner() -> Path:
    """Return the local runner of the Pulsar installation. Raises Misused without one."""
    home = os.environ.get(HOME_VARIABLE)
    if not home:
        raise Misused(f"set {HOME_VARIABLE} to a Pulsar installation: its bin/function-localrunner runs the component")
    return Path(home, "bin", "function-localrunner")


def arguments(values: dict[str, Any]) -> list[str]:
    """Return the arguments of the local runner after the configuration."""
    made = {**values, **{name: "true" if values[name] else "false" for name in _FLAGS}}
    if "instance_id_offset" in values and values["instance_id_offset"] is None:
        made["instance_id_offset"] = 0
    return [
        word
        for name, option in _OPTIONS.items()
        if made.get(name) is not None
        for word in (f"--{option}", str(made[name]))
    ]


def _config(command: Command, values: dict[str, Any]) -> dict[str, Any]:
    if command.group == "functions":
        config = function_config(command, values)
        check_code(config)
        return config
    kind = given_type(command, values)
    config = connector_config(command, values, kind)
    if kind is None:
        check(config)
    return config
