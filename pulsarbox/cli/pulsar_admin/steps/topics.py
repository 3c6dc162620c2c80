"""Commands for topics with several requests or textual output."""

import re
import time
from pathlib import Path
from typing import Any, Final

import click

from pulsarbox.cli.common.exits import Failed, Misused, Partly
from pulsarbox.cli.common.terminal_text import clean, notify
from pulsarbox.cli.pulsar_admin.printing import compact
from pulsarbox.cli.pulsar_admin.session import Session
from pulsarbox.cli.pulsar_admin.steps.positions import placed, shown
from pulsarbox.cli.pulsar_admin.table import Command
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import parse_topic

_STEP_SECONDS: Final = 1.0
_SHADOW_SOURCE: Final = "PULSAR.SHADOW_SOURCE"


def listed(session: Session, command: Command, values: dict[str, Any]) -> list[str]:
    """List the topics of both domains, or of the given one."""
    wanted = values.get("topic_domain")
    persistent, other = command.calls
    found: list[str] = []
    for call, domain in ((persistent, "persistent"), (other, "non_persistent")):
        if wanted in (None, domain):
            found += session.ask(call, values) or []
    return found


def lookup(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Print the service URL of the topic's broker."""
    click.echo(clean(_broker(session.ask(command.calls[0], values))))


def partitioned_lookup(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Print the service URL of each partition's broker, by partition or by broker."""
    metadata, lookup_call = command.calls
    topic = values["topic"]
    count = (session.ask(metadata, values) or {}).get("partitions", 0)
    if not count:
        raise Misused(f"{topic} is not a partitioned topic")
    brokers = {
        str(topic.partition(index)): _broker(session.ask(lookup_call, {"topic": topic.partition(index)}))
        for index in range(count)
    }
    if not values["sort_by_broker"]:
        for name, broker in brokers.items():
            click.echo(f"{clean(name)}    {clean(broker)}")
        return
    for broker in dict.fromkeys(brokers.values()):
        names = [name for name, its in brokers.items() if its == broker]
        click.echo(f"{clean(broker)}    [{', '.join(map(clean, names))}]")


def delete(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Delete one topic, those listed in a file, or those that match a pattern; continue after a failure."""
    call, persistent, other = command.calls
    text = values["topic"]
    if values["from_file"] and values["regex"]:
        raise Misused("--from-file and --regex cannot be combined")
    if values["from_file"]:
        try:
            names = [line.strip() for line in Path(text).read_text("utf-8").splitlines() if line.strip()]
        except (OSError, UnicodeDecodeError) as error:
            raise Misused(f"cannot read {text}: {error}") from None
    elif values["regex"]:
        names = _matching(session, persistent, other, text)
    else:
        session.ask(call, {**values, "topic": _topic(text)})
        return
    failed = 0
    for name in names:
        try:
            session.ask(call, {**values, "topic": _topic(name)})
        except Failed as error:
            failed += 1
            notify(f"cannot delete {name}: {error.message}")
    if failed:
        raise Partly(f"{failed} of {len(names)} topics were not deleted")


def _matching(session: Session, persistent: Any, other: Any, text: str) -> list[str]:
    name = _topic(text)
    try:
        pattern = re.compile(str(name))
    except re.error as error:
        raise Misused(f"invalid regular expression '{clean(text)}': {error}") from None
    found = [one for call in (persistent, other) for one in session.ask(call, {"namespace": name.namespace}) or []]
    return [one for one in found if pattern.fullmatch(one)]


def _topic(text: str) -> Any:
    try:
        return parse_topic(text)
    except PulsarBoxError as error:
        raise Misused(str(error)) from None


def compact_topic(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Trigger compaction."""
    session.ask(command.calls[0], values)
    click.echo(f"Topic compaction requested for {values['topic']}")


def compaction_status(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Print the compaction status; with --wait-complete, once it has ended."""
    _status(session, command, values, ("Compaction", "compaction", "compacting"))


def offload_status(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Print the offload status; with --wait-complete, once it has ended."""
    _status(session, command, values, ("Offload", "offload", "offloading"))


def _status(session: Session, command: Command, values: dict[str, Any], words: tuple[str, str, str]) -> None:
    found = session.ask(command.calls[0], values) or {}
    while values["wait_complete"] and found.get("status") == "RUNNING":
        time.sleep(_STEP_SECONDS)
        found = session.ask(command.calls[0], values) or {}
    status = found.get("status")
    if status == "ERROR":
        click.echo(f"Error in {words[1]}")
        raise Failed(f"Error {words[2]}: {found.get('lastError', '')}")
    said = {
        "NOT_RUN": f"{words[0]} has not been run for {values['topic']} since broker startup",
        "RUNNING": f"{words[0]} is currently running",
        "SUCCESS": f"{words[0]} was a success",
    }
    click.echo(said.get(str(status)) or clean(compact(found)))


def offload(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Offload ledgers, except the newest ones up to --size-threshold bytes."""
    stats, trigger = command.calls
    found = session.ask(stats, values) or {}
    ledgers = list(found.get("ledgers") or [])
    if not ledgers:
        raise Failed("Topic doesn't have any data")
    ledgers[-1] = {**ledgers[-1], "size": found.get("currentLedgerSize", 0)}
    size, previous = 0, ledgers[-1]["ledgerId"]
    for one in reversed(ledgers):
        size += one["size"]
        if size > values["size_threshold"]:
            break
        previous = one["ledgerId"]
    else:
        click.echo("Nothing to offload")
        return
    session.ask(placed(trigger, {"ledgerId": previous, "entryId": 0}), values)
    click.echo(f"Offload triggered for {values['topic']} for messages before {previous}:0:-1")


def terminate(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Terminate a topic and print its last message ID."""
    click.echo(f"Topic successfully terminated at {shown(session.ask(command.calls[0], values))}")


def terminate_partitions(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Terminate all partitions and print the last message ID of each."""
    for index, at in (session.ask(command.calls[0], values) or {}).items():
        click.echo(f"Topic {values['topic']}-partition-{clean(str(index))} successfully terminated at {shown(at)}")


def internal_info(session: Session, command: Command, values: dict[str, Any]) -> Any:
    """Print the internal metadata as indented JSON."""
    import json

    found = session.ask(command.calls[0], values)
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except ValueError:
            click.echo(clean(found))
            return
    click.echo("Did not find any internal metadata info" if found is None else json.dumps(found, indent=2))


def subscription_properties(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Replace all properties of a subscription, or remove them with --clear."""
    if bool(values["property"]) == values["clear"]:
        raise Misused("specify either --property key=value, or --clear to remove all properties")
    session.ask(command.calls[0], {**values, "property": values["property"] or {}})


def compactly(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Print the response as JSON on one line."""
    click.echo(compact(session.ask(command.calls[0], values)))


def create_shadow_topic(session: Session, command: Command, values: dict[str, Any]) -> None:
    """Create a shadow topic with as many partitions as its source."""
    plain, source, partitioned = command.calls
    count = (session.ask(source, values) or {}).get("partitions", 0)
    properties = {**(values["properties"] or {}), _SHADOW_SOURCE: str(values["source"])}
    if count:
        body = {**partitioned.body, "partitions": count, "properties": properties}
        session.ask(partitioned._replace(body=body), values)
    else:
        session.ask(plain, {**values, "properties": properties})


def shadow_source(session: Session, command: Command, values: dict[str, Any]) -> Any:
    """Return the source of a shadow topic, None for other topics."""
    return (session.ask(command.calls[0], values) or {}).get(_SHADOW_SOURCE)


def _broker(found: Any) -> str:
    return str(found.get("brokerUrl") or found.get("nativeUrl")) if isinstance(found, dict) else str(found)
