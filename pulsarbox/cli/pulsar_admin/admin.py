"""``pulsarbox admin``: the group of groups, and the options that say which broker."""

from pathlib import Path
from typing import Any, Final

import click

from pulsarbox.cli.common.lazy_group import Group
from pulsarbox.cli.process.directory_options import CONFIG
from pulsarbox.cli.pulsar_admin import table
from pulsarbox.cli.pulsar_admin.commands import AdminGroup

_LINES: Final = {**table.GROUPS, "tokens": "Keys and tokens for authentication."}
"""The groups, each with its line in the help. Tokens are made here: no broker is asked."""


def _common() -> list[click.Option]:
    """The options that may stand before the group or after the command."""
    return [
        click.Option(["--admin-url"], metavar="URL", help="Admin URL of the broker: http:// or https://."),
        click.Option(["--data-dir"], metavar="DIR", help="Data directory of the box to talk to, without a URL."),
        click.Option(
            ["--client-conf"],
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Pulsar's client.conf: its URL and credentials, where no option gives any. Else PULSAR_CLIENT_CONF.",
        ),
        click.Option(["--token"], metavar="TOKEN", help="token:eyJ..., or file:///path. Else PULSARBOX_TOKEN."),
        click.Option(["--auth-plugin"], metavar="NAME", help="token, tls, basic, or Pulsar's Java class of them."),
        click.Option(["--auth-params"], metavar="TEXT", help="What that needs: tlsCertFile:...,tlsKeyFile:..."),
        click.Option(
            ["--request-timeout"], type=click.IntRange(1), metavar="S", help="Seconds to wait for an answer (300)."
        ),
        click.Option(["--tls-trust-cert-path"], metavar="FILE", help="Certificates to trust with https:// (PEM)."),
        click.Option(["--tls-allow-insecure"], is_flag=True, help="Trust whoever answers with https://."),
        click.Option(
            ["--tls-enable-hostname-verification"], is_flag=True, help="The certificate must name the host of the URL."
        ),
        click.Option(["--tls-provider"], hidden=True, help="Taken and not used: it chooses a Java library."),
    ]


def _hidden(options: list[click.Option]) -> list[click.Option]:
    for option in options:
        option.hidden = True
    return options


class AdminRoot(Group):
    """The groups of pulsar-admin, none of whose tables is read before it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_LINES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == "tokens":
            from pulsarbox.cli.pulsar_admin.tokens import tokens

            return tokens
        summary = table.GROUPS.get(cmd_name) or table.OLD_GROUPS.get(cmd_name)
        if summary is None:
            if cmd_name in table.LEFT_OUT and not ctx.resilient_parsing:
                ctx.fail(f"`{cmd_name}` of pulsar-admin is not here: {table.LEFT_OUT[cmd_name]}")
            return None
        return AdminGroup(cmd_name, summary, cmd_name in table.OLD_GROUPS, _hidden(_common()))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Groups"):
            formatter.write_dl([(name, _LINES[name]) for name in self.list_commands(ctx)])


@click.command(cls=AdminRoot, params=list(_common()), context_settings={"help_option_names": ["-h", "--help"]})
@CONFIG
@click.pass_context
def admin(ctx: click.Context, /, **given: Any) -> None:
    """The words of pulsar-admin, for a box or for any Apache Pulsar, without its Java.

    The same groups, commands, options, units and answers. Which broker: --admin-url, else PULSARBOX_ADMIN_URL, else
    the context in use (`pulsarbox context`), else the box that runs here, else http://localhost:8080.

    \b
    Exit codes:
      0  done
      1  it failed, or the broker does not support it
      2  an option or a name cannot be used
      3  what it is about does not exist
      4  it exists already, or is in use
      5  not allowed
      6  the broker cannot be reached
      7  no answer in time

    \b
    Examples:
      pulsarbox admin topics stats orders
      pulsarbox admin namespaces set-retention public/default -t 3h -s 10G
      pulsarbox admin --admin-url https://broker:8443 --token file:///etc/token tenants list
    """
    ctx.obj = given
