"""``pulsarbox dlq replay`` and ``drop``: dead letters put back, or acknowledged, by a job in the box."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pulsarbox.cli.commands.job import COLUMNS, check_ended, lines_of, row_of, wait_for
from pulsarbox.cli.common.confirmation import confirm, dry_run_option, yes_option
from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.output import Found, Output, form_option, show
from pulsarbox.cli.common.terminal_text import say
from pulsarbox.cli.connect.admin_client import suggesting, topic_named, with_admin
from pulsarbox.cli.process import completions

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin

_FILTER = click.option(
    "--filter",
    "expression",
    metavar="E",
    help="Only messages for which E holds, such as 'fingerprint == \"a1b2c3d4e5f6\"' or 'props.region == \"eu\"'.",
)
_SUBSCRIPTION = click.option(
    "-s",
    "--subscription",
    metavar="SUB",
    shell_complete=completions.subscriptions,
    help="What this subscription has not acknowledged; needed where TOPIC has several.",
)


@click.command()
@click.argument("name", metavar="TOPIC", shell_complete=completions.topics)
@_SUBSCRIPTION
@_FILTER
@click.option("--to", "target", metavar="TOPIC", help="Where to; by default each goes where it comes from.")
@click.option("--rate", type=click.FloatRange(0), help="Messages a second; 0 is unlimited. [100]")
@click.option("--set", "put", metavar="NAME=VALUE", multiple=True, help="Give each this property.")
@click.option("--unset", "remove", metavar="NAME", multiple=True, help="Take this property away.")
@click.option("--key", metavar="KEY", help="Give each this key.")
@click.option("--payload", metavar="TEXT", help="Give each this payload; it has to be what the topic's schema says.")
@click.option(
    "--payload-file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="The same, of a file."
)
@click.option("--edit", metavar="JSON", help="All of that in one: setProperties, removeProperties, key, payload.")
@click.option("--skip-refused", is_flag=True, help="Go on where a topic refuses a message, which is kept. [pause]")
@click.option(
    "--max-returned", type=click.IntRange(0), help="Stop when so many are dead letters again; 0: never. [100]"
)
@click.option(
    "--max-returned-share", type=click.FloatRange(0, 1), help="Stop when more than this share are; 0: never. [0.2]"
)
@click.option(
    "--wait", is_flag=True, help="Until it has ended; how far it is goes to stderr. Ctrl-C leaves it running."
)
@dry_run_option
@form_option
@with_admin
def replay(name: str, output: Output, admin: "Admin", wait: bool, dry_run: bool, **given: Any) -> None:
    """Put the dead letters of TOPIC back: a job of the box, which publishes and acknowledges each in one commit.

    It begins slowly, and stops by itself where what it puts back becomes dead letters again. Messages that come after
    it has begun are not meant. While it runs nobody else can consume with its subscription. A dry run counts what would
    go where, and what would be refused and why. Of a box only.

    \b
    Exit codes:
      1  with --wait, or a dry run: it did not come to its end (tripped, paused, failed, cancelled)
      2  an option cannot be used
      3  there is no such topic or subscription
      4  the subscription has consumers, or another job
      8  with --wait, or a dry run: some messages were refused, and are kept

    \b
    Examples:
      pulsarbox dlq replay orders-billing-DLQ --dry-run
      pulsarbox dlq replay orders-billing-DLQ --filter 'fingerprint == "a1b2c3d4e5f6"' --wait
      pulsarbox dlq replay orders-billing-DLQ --to orders-again --rate 10 --set retried=yes
      pulsarbox dlq replay orders-billing-DLQ --filter 'id == "12:3:-1:-1"' --payload '{"n": 1}'
    """
    edit = _edit(given)
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
@click.argument("name", metavar="TOPIC", shell_complete=completions.topics)
@_SUBSCRIPTION
@_FILTER
@click.option("--all", "everything", is_flag=True, help="All of them, in place of --filter.")
@click.option(
    "--wait", is_flag=True, help="Until it has ended; how far it is goes to stderr. Ctrl-C leaves it running."
)
@dry_run_option
@yes_option
@form_option
@with_admin
def drop(
    name: str,
    output: Output,
    admin: "Admin",
    everything: bool,
    wait: bool,
    dry_run: bool,
    yes: bool,
    **given: Any,
) -> None:
    """Acknowledge dead letters of TOPIC: those that --filter says, and were there when it began. A job of the box.

    It cannot be undone: nobody else gets them from that subscription. Of a box only.

    \b
    Exit codes:
      1  with --wait, or a dry run: it did not come to its end
      2  neither --filter nor --all, or no terminal to confirm on and no --yes
      3  there is no such topic or subscription
      4  not confirmed; the subscription has consumers, or another job

    \b
    Examples:
      pulsarbox dlq drop orders-billing-DLQ --filter 'publish_time < time("-30d")' --dry-run
      pulsarbox dlq drop orders-billing-DLQ --filter 'fingerprint == "a1b2c3d4e5f6"' --yes --wait
      pulsarbox dlq drop orders-billing-DLQ --all
    """
    if everything == (given["expression"] is not None):
        raise Misused("say which: --filter E, or --all")
    confirm(f"drop dead letters of {name}", [name], yes=yes, dry_run=dry_run)
    _begin(admin, name, {"kind": "dlq-drop"} | _common(given, dry_run), output, wait=wait or dry_run)


def _common(given: dict[str, Any], dry_run: bool) -> dict[str, Any]:
    return {"subscription": given["subscription"], "filter": given["expression"], "dryRun": dry_run}


def _edit_of(text: str | None) -> dict[str, Any]:
    """Of --edit. Raises Misused."""
    if text is None:
        return {}
    import json

    try:
        found = json.loads(text)
    except ValueError as error:
        raise Misused(f"--edit is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise Misused('--edit takes an object, such as \'{"setProperties": {"fixed": "yes"}}\'')
    return found


def _edit(given: dict[str, Any]) -> dict[str, Any] | None:
    """What is changed of each message. Raises Misused."""
    pairs = [each.partition("=") for each in given["put"]]
    wrong = next((name for name, equals, _ in pairs if not equals or not name), None)
    if wrong is not None:
        raise Misused(f"--set takes NAME=VALUE, not '{wrong}'")
    edit: dict[str, Any] = _edit_of(given["edit"])
    if pairs:
        edit["setProperties"] = {name: value for name, _, value in pairs}
    if given["remove"]:
        edit["removeProperties"] = list(given["remove"])
    if given["key"] is not None:
        edit["key"] = given["key"]
    if given["payload"] is not None and given["payload_file"] is not None:
        raise Misused("--payload and --payload-file do not go together")
    if given["payload"] is not None:
        edit["payload"] = given["payload"]
    if given["payload_file"] is not None:
        from base64 import b64encode

        edit["payloadBase64"] = b64encode(given["payload_file"].read_bytes()).decode()
    return edit or None


def _begin(admin: "Admin", name: str, asked: dict[str, Any], output: Output, *, wait: bool) -> None:
    topic = topic_named(name)
    wanted = {field: value for field, value in asked.items() if value is not None}
    with suggesting(admin, topic, asked["subscription"]):
        row = row_of(admin.begin_job({"topic": str(topic)} | wanted))
    if wait:
        row = wait_for(admin, row["id"])
    show(output, lambda: Found([row], COLUMNS, name="id", lines=lines_of(row)))
    if wait:
        check_ended(row)
    else:
        say(f"the box goes on with it: `pulsarbox job show {row['id']}`, `pulsarbox job cancel {row['id']}`")
