"""``pulsarbox dlq replay`` and ``drop``: republish or acknowledge dead letters by a job of the box."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.commands.dead_letters.job import COLUMNS, check_ended, lines_of, row_of, wait_for
from pulsarbox.cli.commands.dlq_options import subscription_option
from pulsarbox.cli.common.confirmation import confirm, dry_run_option, yes_option
from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.output import OutputOptions, TableOutput, form_option, show
from pulsarbox.cli.common.terminal_text import notify
from pulsarbox.cli.common.value_types import BoundedInteger, MessageRate, Share
from pulsarbox.cli.connect.admin_client import suggesting, topic_named, with_admin
from pulsarbox.cli.process import completions

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin

_FILTER = click.option(
    "--filter",
    "expression",
    metavar="E",
    help="Select matching messages, such as 'fingerprint == \"a1b2c3d4e5f6\"' or 'props.region == \"eu\"'.",
)
_EQUAL_EDITS: Final = ("key", "payload", "payloadBase64")
"""Edits after which all messages of a job are alike: what they had there before is lost."""
_SUBSCRIPTION = subscription_option("Process the backlog of this subscription; required if TOPIC has several.")


@click.command()
@click.argument("name", metavar="TOPIC", shell_complete=completions.dead_letter_topics)
@_SUBSCRIPTION
@_FILTER
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Replay all messages, as without --filter; an edit of the key or the payload requires either.",
)
@click.option("--to", "target", metavar="TOPIC", help="Target topic. [default: the origin of each message]")
@click.option("--rate", type=MessageRate(), help="Messages per second, such as 10/s, or off. [default: 100/s]")
@click.option("--set", "put", metavar="NAME=VALUE", multiple=True, help="Set a property; repeatable.")
@click.option("--unset", "remove", metavar="NAME", multiple=True, help="Remove a property; repeatable.")
@click.option("--key", metavar="KEY", help="Set the key; requires --filter or --all.")
@click.option(
    "--payload",
    metavar="TEXT",
    help="Replace the payload, which must match the topic's schema; requires --filter or --all.",
)
@click.option(
    "--payload-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Replace the payload by a file's content; requires --filter or --all.",
)
@click.option("--edit", metavar="JSON", help="Edits as one object: setProperties, removeProperties, key, payload.")
@click.option("--skip-refused", is_flag=True, help="Skip rejected messages and keep them. [default: pause]")
@click.option(
    "--max-returned", type=BoundedInteger(0), help="Stop after this many messages fail again; 0: never. [default: 100]"
)
@click.option(
    "--max-returned-share",
    type=Share(off=True),
    help="Stop if a greater share of messages fails again, such as 5%, or off. [default: 20%]",
)
@click.option("--wait", is_flag=True, help="Wait for the end, with progress on stderr. Ctrl-C leaves the job running.")
@dry_run_option
@form_option
@with_admin
def replay(
    name: str, output: OutputOptions, admin: "Admin", everything: bool, wait: bool, dry_run: bool, **given: Any
) -> None:
    """Republish the dead letters of TOPIC, as a job of the box.

    The job publishes and acknowledges each message in one commit. It starts slowly, and stops if replayed messages
    fail again. It covers the messages present at its start, and holds the subscription exclusively while it runs. A
    dry run counts the messages per target, and the rejections by reason. Not supported against Apache Pulsar.

    \b
    Exit codes:
      1  with --wait, or a dry run: the job did not complete (tripped, paused, failed, cancelled)
      2  an option is invalid, or an edit of the key or the payload with neither --filter nor --all
      3  the topic or subscription does not exist
      4  the subscription has consumers, or another job
      8  with --wait, or a dry run: some messages were rejected and kept

    \b
    Examples:
      pulsarbox dlq replay orders-billing-DLQ --dry-run
      pulsarbox dlq replay orders-billing-DLQ --filter 'fingerprint == "a1b2c3d4e5f6"' --wait
      pulsarbox dlq replay orders-billing-DLQ --to orders-again --rate 10/s --set retried=yes
      pulsarbox dlq replay orders-billing-DLQ --filter 'id == "12:3:-1:-1"' --payload '{"n": 1}'
    """
    edit = _edit(given)
    _check_scope(edit, everything=everything, expression=given["expression"])
    asked = {
        "kind": "dlq-replay",
        "target": given["target"],
        "rate": given["rate"],
        "edit": edit,
        "skipRefused": given["skip_refused"],
        "maxReturned": given["max_returned"],
        "maxReturnedShare": given["max_returned_share"],
    }
    _begin(admin, name, asked | _common(given, dry_run), output, wait=wait or dry_run)


@click.command()
@click.argument("name", metavar="TOPIC", shell_complete=completions.dead_letter_topics)
@_SUBSCRIPTION
@_FILTER
@click.option("--all", "everything", is_flag=True, help="Drop all messages, instead of --filter.")
@click.option("--wait", is_flag=True, help="Wait for the end, with progress on stderr. Ctrl-C leaves the job running.")
@dry_run_option
@yes_option
@form_option
@with_admin
def drop(
    name: str,
    output: OutputOptions,
    admin: "Admin",
    everything: bool,
    wait: bool,
    dry_run: bool,
    yes: bool,
    **given: Any,
) -> None:
    """Acknowledge dead letters of TOPIC, as a job of the box.

    The job covers the messages present at its start. This cannot be undone: the subscription never delivers them
    again. Not supported against Apache Pulsar.

    \b
    Exit codes:
      1  with --wait, or a dry run: the job did not complete
      2  neither --filter nor --all, or no terminal to confirm on and no --yes
      3  the topic or subscription does not exist
      4  not confirmed; the subscription has consumers, or another job

    \b
    Examples:
      pulsarbox dlq drop orders-billing-DLQ --filter 'publish_time < time("-30d")' --dry-run
      pulsarbox dlq drop orders-billing-DLQ --filter 'fingerprint == "a1b2c3d4e5f6"' --yes --wait
      pulsarbox dlq drop orders-billing-DLQ --all
    """
    if everything == (given["expression"] is not None):
        raise Misused("specify either --filter E or --all")
    confirm(f"drop dead letters of {name}", [name], yes=yes, dry_run=dry_run)
    _begin(admin, name, {"kind": "dlq-drop"} | _common(given, dry_run), output, wait=wait or dry_run)


def _common(given: dict[str, Any], dry_run: bool) -> dict[str, Any]:
    return {"subscription": given["subscription"], "filter": given["expression"], "dryRun": dry_run}


def _edit_of(text: str | None) -> dict[str, Any]:
    """Parse --edit. Raises Misused."""
    if text is None:
        return {}
    import json

    try:
        found = json.loads(text)
    except ValueError as error:
        raise Misused(f"--edit: invalid JSON: {error}") from None
    if not isinstance(found, dict):
        raise Misused('--edit: expected an object, such as \'{"setProperties": {"fixed": "yes"}}\'')
    return found


def _edit(given: dict[str, Any]) -> dict[str, Any] | None:
    """Return the edits to apply to each message, None for none. Raises Misused."""
    pairs = [each.partition("=") for each in given["put"]]
    wrong = next((name for name, equals, _ in pairs if not equals or not name), None)
    if wrong is not None:
        raise Misused(f"--set: expected NAME=VALUE, not '{wrong}'")
    edit: dict[str, Any] = _edit_of(given["edit"])
    if pairs:
        edit["setProperties"] = {name: value for name, _, value in pairs}
    if given["remove"]:
        edit["removeProperties"] = list(given["remove"])
    if given["key"] is not None:
        edit["key"] = given["key"]
    if given["payload"] is not None and given["payload_file"] is not None:
        raise Misused("--payload and --payload-file cannot be combined")
    if given["payload"] is not None:
        edit["payload"] = given["payload"]
    if given["payload_file"] is not None:
        from base64 import b64encode

        edit["payloadBase64"] = b64encode(given["payload_file"].read_bytes()).decode()
    return edit or None


def _check_scope(edit: dict[str, Any] | None, *, everything: bool, expression: str | None) -> None:
    """Raise Misused if an edit makes all messages of the topic alike and the command does not ask for all of them."""
    if everything and expression is not None:
        raise Misused("specify either --filter E or --all")
    if everything or expression is not None or edit is None:
        return
    if any(edit.get(name) is not None for name in _EQUAL_EDITS):
        part = "key" if all(edit.get(name) is None for name in _EQUAL_EDITS[1:]) else "payload"
        raise Misused(
            f"this would give every dead letter the same {part}: select messages with --filter E, such as"
            " --filter 'id == \"12:3:-1:-1\"', or specify --all"
        )


def _begin(admin: "Admin", name: str, asked: dict[str, Any], output: OutputOptions, *, wait: bool) -> None:
    topic = topic_named(name)
    wanted = {field: value for field, value in asked.items() if value is not None}
    with suggesting(admin, topic, asked["subscription"]):
        row = row_of(admin.begin_job({"topic": str(topic)} | wanted))
    if wait:
        row = wait_for(admin, row["id"])
    show(output, lambda: TableOutput([row], COLUMNS, name="id", lines=lines_of(row)))
    if wait:
        check_ended(row)
    else:
        notify(f"the job continues in the box: `pulsarbox job show {row['id']}`, `pulsarbox job cancel {row['id']}`")
