"""``pulsarbox admin``: the root group and its broker options."""

from pathlib import Path
from typing import Any, Final

import click

from pulsarbox.cli.common.lazy_group import SuggestingGroup
from pulsarbox.cli.process.directory_options import CONFIG
from pulsarbox.cli.pulsar_admin import table
from pulsarbox.cli.pulsar_admin.commands import AdminGroup
from pulsarbox.cli.pulsar_admin.version_option import version_option

_LINES: Final = {**table.GROUPS, "tokens": "Create, show and validate keys and tokens."}
"""Groups and their summaries. Tokens are created locally, without a broker."""


def _common() -> list[click.Option]:
    """Return the options accepted both before the group and after the command."""
    return [
        click.Option(["--admin-url"], metavar="URL", help="Admin URL: http:// or https://."),
        click.Option(["--data-dir"], metavar="DIR", help="Connect to the box of this data directory."),
        click.Option(
            ["--client-conf"],
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Pulsar's client.conf, for URL and credentials not set by options. [default: PULSAR_CLIENT_CONF]",
        ),
        click.Option(["--token"], metavar="TOKEN", help="token:eyJ..., or file:///path. [default: PULSARBOX_TOKEN]"),
        click.Option(
            ["--auth-plugin"], metavar="NAME", help="Authentication: token, tls, basic, or Pulsar's Java class name."
        ),
        click.Option(["--auth-params"], metavar="TEXT", help="Its parameters: tlsCertFile:...,tlsKeyFile:..."),
        click.Option(
            ["--request-timeout"],
            type=click.IntRange(1),
            metavar="S",
            help="Seconds to wait for a response. [default: 300]",
        ),
        click.Option(["--tls-trust-cert-path"], metavar="FILE", help="Trusted CA certificates (PEM)."),
        click.Option(["--tls-allow-insecure"], is_flag=True, help="Accept any server certificate."),
        click.Option(
            ["--tls-enable-hostname-verification"], is_flag=True, help="Verify the host name in the certificate."
        ),
        click.Option(["--tls-provider"], hidden=True, help="Ignored: selects a Java library."),
    ]


def _hidden(options: list[click.Option]) -> list[click.Option]:
    for option in options:
        option.hidden = True
    return options


class AdminRoot(SuggestingGroup):
    """Root group. Reads the table of a group only when that is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_LINES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == "tokens":
            from pulsarbox.cli.pulsar_admin.tokens import tokens

            return tokens
        name = table.ALIASES.get(cmd_name, cmd_name)
        summary = table.GROUPS.get(name) or table.OLD_GROUPS.get(name)
        if summary is not None and name not in self.commands:
            self.commands[name] = AdminGroup(name, summary, name in table.OLD_GROUPS, _hidden(_common()))
        return self.commands.get(name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Groups"):
            formatter.write_dl([(name, _LINES[name]) for name in self.list_commands(ctx)])


@click.command(
    cls=AdminRoot, params=[*_common(), *version_option(set())], context_settings={"help_option_names": ["-h", "--help"]}
)
@CONFIG
@click.pass_context
def admin(ctx: click.Context, /, **given: Any) -> None:
    """Run pulsar-admin commands against a box or any Apache Pulsar, without Java.

    Groups, commands, options, units and output are those of pulsar-admin. The broker is that of --admin-url, else of
    PULSARBOX_ADMIN_URL, else of the current context (`pulsarbox context`), else the local box, else
    http://localhost:8080.

    \b
    Exit codes:
      0  success
      1  failed, or not supported by the broker
      2  an option or a name is invalid
      3  the object does not exist
      4  the object already exists, or is in use
      5  not authorized
      6  the broker is unreachable
      7  no response in time

    \b
    Examples:
      pulsarbox admin topics stats orders
      pulsarbox admin namespaces set-retention public/default -t 3h -s 10G
      pulsarbox admin --admin-url https://broker:8443 --token file:///etc/token tenants list
    """
    ctx.obj = given
