"""Commands for namespaces and policies with interdependent options or textual output."""

from collections.abc import Iterator
from typing import Any, Final

import click

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.pulsar_admin.session import Session, chosen
from pulsarbox.cli.pulsar_admin.table import Command
from pulsarbox.protocol.policies.offload_shape import DRIVERS
from pulsarbox.protocol.policies.policy_values import QUOTA_SIZE, UNDEFINED

_S3: Final = ("S3", "aws-s3")
_PRIORITIES: Final = {"bookkeeper-first": "BOOKKEEPER_FIRST", "tiered-storage-first": "TIERED_STORAGE_FIRST"}
_OLD_STRATEGIES: Final = {"FULL": "Full", "BACKWARD": "Backward", "FORWARD": "Forward", "NONE": "AlwaysCompatible"}
_BUNDLES_MAX: Final = 1 << 32


def create_namespace(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Create a namespace with the given clusters and number of bundles."""
    bundles = values["bundles"]
    if bundles is not None and not 0 <= bundles <= _BUNDLES_MAX:
        raise Misused(f"--bundles {bundles}: expected a number between 0 and 2^32")
    body: dict[str, Any] = {}
    if values["clusters"]:
        body["replication_clusters"] = values["clusters"]
    if bundles:
        body["bundles"] = {"numBundles": bundles}
    session.ask(command.calls[0]._replace(body=body), values)


def unload(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Unload a namespace, or one bundle, optionally to a given broker."""
    if values["destination_broker"] and not values["bundle"]:
        raise Misused("--destinationBroker requires --bundle")
    session.ask(chosen(command, values), values)


def split_bundle(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Split a bundle, named by its range or as the largest or busiest one."""
    if bool(values["bundle"]) == bool(values["bundle_type"]):
        raise Misused("specify exactly one of --bundle and --bundle-type")
    plain, with_body = command.calls
    bundle = values["bundle"] or values["bundle_type"]
    session.ask(with_body if values["split_boundaries"] else plain, {**values, "bundle": bundle})


def retention(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Set both retention limits. Brokers reject a limit of 0 with a nonzero other one."""
    if (values["time"] == 0) != (values["size"] == 0):
        zero, other = ("--time", "--size") if values["time"] == 0 else ("--size", "--time")
        raise Misused(
            f"{zero} 0 keeps nothing, and {other} names a limit: give {zero} -1 for no limit of that kind, or {other} 0"
            " to keep nothing"
        )
    session.ask(command.calls[0], values)


def backlog_quota(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Set a quota: a size for destination_storage, a time for message_age."""
    by_size = values["type"] == QUOTA_SIZE
    if values["limit" if by_size else "limit_time"] is None:
        raise Misused(
            f"--type {values['type']} requires {'--limit, such as 10G' if by_size else '--limitTime, such as 3h'}"
        )
    limits = {"limit": values["limit"] if by_size else -1, "limit_time": -1 if by_size else values["limit_time"]}
    session.ask(command.calls[0], {**values, **limits})


def auto_topic_creation(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Set automatic topic creation. Partitioned topics require a number of partitions."""
    kind = values["type"].strip().lower()
    if values["enable"]:
        if kind not in ("partitioned", "non-partitioned"):
            raise Misused("--type: expected partitioned or non-partitioned")
        if kind == "partitioned" and (values["num_partitions"] or 0) <= 0:
            raise Misused("--type partitioned requires --num-partitions, greater than 0")
    session.ask(command.calls[0], {**values, "type": kind})


def persistence(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Set persistence policies, whose three numbers must be positive."""
    for name in ("bookkeeper_ensemble", "bookkeeper_write_quorum", "bookkeeper_ack_quorum"):
        if values[name] <= 0:
            raise Misused(f"--{name.replace('_', '-')} must be greater than 0")
    session.ask(command.calls[0], values)


def offload_threshold(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Print the offload threshold in bytes and seconds."""
    size, seconds = (session.ask(call, values) for call in command.calls)
    click.echo(f"offloadThresholdInBytes: {size}\noffloadThresholdInSeconds: {seconds}")


def set_offload_threshold(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Set both offload thresholds."""
    for call in command.calls:
        session.ask(call, values)


def offload_deletion_lag(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Print the offload deletion lag in minutes."""
    found = session.ask(command.calls[0], values)
    unset = "Unset for namespace. Defaulting to broker setting."
    click.echo(unset if found is None else f"{int(found) // 60000} minute(s)")


def offload_policies(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Set offload policies. Requires a driver of Pulsar, and for S3 a region or an endpoint."""
    driver = values["driver"]
    if driver.lower() not in map(str.lower, DRIVERS):
        raise Misused(f"--driver: expected one of {', '.join(DRIVERS)}")
    if driver.lower() in map(str.lower, _S3) and not values["region"] and not values["endpoint"]:
        raise Misused(f"--driver {driver} requires --region or --endpoint")
    priority = values["offloaded_read_priority"]
    if priority is not None and priority not in _PRIORITIES:
        raise Misused(f"--offloadedReadPriority: expected one of {', '.join(_PRIORITIES)}")
    changed = {"offloaded_read_priority": _PRIORITIES.get(priority)} if priority else {}
    call = command.calls[0]
    body = {**call.body, **{key: call.body.get(of, of) for key, of in _own_keys(driver)}}
    session.ask(call._replace(body=body), {**values, **changed})


def _own_keys(driver: str) -> Iterator[tuple[str, str]]:
    """Yield the additional keys of a driver, each with the key or option that holds its value."""
    prefix = "s3" if driver.lower() in map(str.lower, _S3) else "gcs" if driver == "google-cloud-storage" else ""
    if not prefix:
        return
    for word in ("Region", "Bucket", "MaxBlockSizeInBytes", "ReadBufferSizeInBytes"):
        yield f"{prefix}ManagedLedgerOffload{word}", f"managedLedgerOffload{word}"
    if prefix == "s3":
        yield "s3ManagedLedgerOffloadServiceEndpoint", "managedLedgerOffloadServiceEndpoint"
        yield "s3ManagedLedgerOffloadCredentialId", "?aws_id"
        yield "s3ManagedLedgerOffloadCredentialSecret", "?aws_secret"
        yield "s3ManagedLedgerOffloadRole", "?s3_role"
        yield "s3ManagedLedgerOffloadRoleSessionName", "?s3_role_session_name"


def old_schema_strategy(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Set the schema strategy by its old name."""
    word = "AutoUpdateDisabled" if values["disabled"] else _OLD_STRATEGIES.get((values["compatibility"] or "").upper())
    if word is None:
        raise Misused(f"specify --compatibility ({', '.join(_OLD_STRATEGIES)}) or --disabled")
    session.ask(command.calls[0], {**values, "compatibility": word})


def shown_old_schema_strategy(session: Session, command: Command, values: dict[str, Any]) -> Any:
    """Return the schema strategy in upper case, as the option accepts it."""
    found = session.ask(command.calls[0], values)
    return found.upper() if isinstance(found, str) else found


def schema_strategy(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Set the schema compatibility strategy."""
    from pulsarbox.config.sections.client_policy_settings import SCHEMA_STRATEGIES

    name, words = "strategy" if "strategy" in values else "compatibility", (UNDEFINED, *SCHEMA_STRATEGIES)
    word = (values[name] or "").upper()
    if word not in words:
        raise Misused(f"--{name}: expected one of {', '.join(words)}")
    session.ask(command.calls[0], {**values, name: word})


def resource_quota(session: Session, command: Command, values: dict[str, Any]) -> Any:
    """Get or set the quota of a bundle, or the default quota."""
    if bool(values["namespace"]) != bool(values["bundle"]):
        raise Misused("specify --namespace and --bundle together, or neither for the default quota")
    return session.ask(chosen(command, values), values)
