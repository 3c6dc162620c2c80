"""``pulsarbox export``: write the declaration of a box."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pulsarbox.cli.common.exits import InTheWay, Misused
from pulsarbox.cli.common.progress import CountLine
from pulsarbox.cli.common.terminal_text import counted, notify
from pulsarbox.cli.connect.admin_client import namespace_named, with_admin
from pulsarbox.cli.connect.token_files import write
from pulsarbox.cli.declaration.admin_exchange import exchanged
from pulsarbox.cli.process import completions

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin


def _no_topics(context: click.Context, parameter: click.Parameter, others: tuple[str, ...]) -> None:
    if others:
        raise Misused(
            f"unexpected argument '{others[0]}': export writes declarations, of one namespace with -n NAMESPACE. "
            f"For the messages of a topic: pulsarbox consume {shlex.quote(others[0])} --until end -o ndjson"
        )


@click.command()
@click.option("-f", "--file", metavar="FILE", help="File to write. [default: stdout]")
@click.option(
    "-n",
    "--namespace",
    "namespaces",
    metavar="NAMESPACE",
    multiple=True,
    shell_complete=completions.namespaces,
    help="Export only this namespace and its topics; repeatable.",
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.argument("others", metavar="", nargs=-1, expose_value=False, callback=_no_topics)
@with_admin
def export(file: str | None, namespaces: tuple[str, ...], force: bool, admin: "Admin") -> None:
    """Write what a box contains as YAML that `pulsarbox apply` and `pulsarbox start --init` accept.

    Contains clusters, tenants, resource groups, namespaces, topics, subscriptions, policies, permissions and the newest
    schemas; no messages, no positions of subscriptions, no tokens and no credentials of clusters.

    \b
    Examples:
      pulsarbox export
      pulsarbox export -f box.yaml
      pulsarbox export -n acme/orders -f orders.yaml
    """
    from pulsarbox.cli.common.yaml_text import to_yaml
    from pulsarbox.declaration.exported_document import document_of
    from pulsarbox.declaration.present_state import all_present

    if file is not None and not force and Path(file).exists():
        raise InTheWay(f"{file} exists: choose another file, or replace it with --force")
    wanted = [namespace_named(each) for each in namespaces]
    state = exchanged(admin, all_present(wanted), CountLine("reading:", "request"))
    missing = [each for each in wanted if each not in state.namespaces]
    if missing:
        from pulsarbox.cli.connect.admin_client import missing as missing_error
        from pulsarbox.cli.connect.admin_client import topic_named

        raise missing_error(admin, topic_named(f"{missing[0]}/-"), None, f"no namespace '{missing[0]}'")
    text = to_yaml(document_of(state))
    if file is None:
        sys.stdout.write(text)
        return
    write(file, text.encode(), 0o644)
    notify(f"wrote {counted(len(state.namespaces), 'namespace')} and {counted(len(state.topics), 'topic')} to {file}")
