"""``pulsarbox context``: named brokers, one of which is current."""

import json
from typing import Any, Final

import click

from pulsarbox.cli.common.box_label import checked_label
from pulsarbox.cli.common.exits import InTheWay, Misused, NotThere, run
from pulsarbox.cli.common.lazy_group import SuggestingGroup
from pulsarbox.cli.common.output import OutputOptions, TableOutput, form_option
from pulsarbox.cli.common.output import show as print_rows
from pulsarbox.cli.common.terminal_text import clean, notify
from pulsarbox.cli.connect import context_store


class ContextGroup(SuggestingGroup):
    """The group ``context``, whose help explains the connection options of all commands."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from pulsarbox.cli.connect.connection_option import connection_options
        from pulsarbox.cli.connect.target import service_and_admin_options

        every = click.command()(service_and_admin_options(lambda: None))
        with formatter.section("Connection options of all commands"):
            formatter.write_dl([option.explained(ctx) for option in connection_options(every)])


@click.group(cls=ContextGroup, context_settings={"help_option_names": ["-h", "--help"]})
def context() -> None:
    """Manage named brokers and select the current one.

    A context holds the URLs and credentials of a broker. The current context takes precedence over a local box, but
    not over --url, --admin-url, --data-dir, PULSARBOX_SERVICE_URL and PULSARBOX_ADMIN_URL. PULSARBOX_CONTEXT selects
    another context for one command.

    \b
    Examples:
      pulsarbox context add production --url pulsar://broker:6650 --admin-url https://broker:8443 --token-file ~/.token
      pulsarbox context use production
      pulsarbox context list
    """


@context.command()
@click.argument("name")
@click.option("--url", metavar="URL", help="Service URL: pulsar://host:6650 or pulsar+ssl://host:6651.")
@click.option("--admin-url", metavar="URL", help="Admin URL: http://host:8080 or https://host:8443.")
@click.option("--token-file", metavar="FILE", help="Token file, read by each command.")
@click.option("--auth-plugin", metavar="NAME", help="Authentication: token, tls, basic, or Pulsar's Java class name.")
@click.option("--auth-params", metavar="TEXT", help="Its parameters, such as tlsCertFile:PATH,tlsKeyFile:PATH.")
@click.option("--tls-trust-cert-path", metavar="FILE", help="Trusted CA certificates (PEM).")
@click.option("--tls-allow-insecure", is_flag=True, help="Accept any server certificate.")
@click.option("--tls-enable-hostname-verification", is_flag=True, help="Verify the host name in the certificate.")
@click.option("--label", metavar="TEXT", help="Label above every screen of `pulsarbox top`, such as PRODUCTION.")
@click.option("--label-color", metavar="COLOR", help="Colour of the label: red, darkgreen, #b3202d.")
@click.option("-f", "--force", is_flag=True, help="Replace an existing context.")
def add(name: str, force: bool, **given: str | bool | None) -> None:
    """Add a broker as context NAME. The first context becomes current.

    \b
    Examples:
      pulsarbox context add local --url pulsar://localhost:6650 --admin-url http://localhost:8080
      pulsarbox context add staging --admin-url https://staging:8443 --token-file ~/.staging-token
      pulsarbox context add live --admin-url https://live:8443 --label PRODUCTION --label-color darkred
    """
    run(_add, name, force, {key: str(value) for key, value in given.items() if value})


def _add(name: str, force: bool, given: dict[str, str]) -> None:
    from pulsarbox.cli.connect.target import checked_urls

    if not name.isprintable() or not name.strip():
        raise Misused("invalid context name: expected printable text")
    if not given.get("url") and not given.get("admin_url"):
        raise Misused("a context requires --url or --admin-url")
    checked_urls(given)
    checked_label(given.get("label"), given.get("label_color"))
    document = context_store.load()
    if name in document["contexts"] and not force:
        raise InTheWay(f"context '{name}' already exists; use --force to replace it")
    document["contexts"][name] = given
    if document["current"] is None:
        document["current"] = name
    context_store.save(document)
    notify(f"context {name} saved in {context_store.path()}{' and selected' if document['current'] == name else ''}")


@context.command()
@click.argument("name")
def use(name: str) -> None:
    """Make NAME the current context; - for none.

    \b
    Examples:
      pulsarbox context use production
      pulsarbox context use -
    """
    run(_use, name)


def _use(name: str) -> None:
    document = context_store.load()
    if name != "-" and name not in document["contexts"]:
        raise NotThere(f"context '{clean(name)}' does not exist; `pulsarbox context list` lists all contexts")
    document["current"] = None if name == "-" else name
    context_store.save(document)
    notify("no context is current" if name == "-" else f"context {name} is current")


@context.command("list")
@form_option
def list_(output: OutputOptions) -> None:
    """List the contexts.

    Fields: current, name, url, admin_url, label, token_file.

    \b
    Examples:
      pulsarbox context list
      pulsarbox context list -o name
      pulsarbox context list -o json
    """
    run(_list, output)


def _list(output: OutputOptions) -> None:
    document = context_store.load()
    rows = [
        {"current": name == document["current"], "name": name, **{field: one.get(field) for field in _FIELDS}}
        for name, one in sorted(document["contexts"].items())
    ]
    columns = ["current", "name", "url", "admin_url", *(["label"] if any(row["label"] for row in rows) else [])]
    cut, fields = {"url": 16, "admin_url": 16}, ("current", "name", *_FIELDS)
    print_rows(
        output,
        lambda: TableOutput(
            rows, columns, document=document, cut=cut, wide=["token_file"], fields=fields, empty=_EMPTY
        ),
    )


_FIELDS: Final = ("url", "admin_url", "label", "token_file")
_EMPTY: Final = "no contexts; name a broker: pulsarbox context add NAME --url pulsar://HOST:6650"


@context.command()
@click.argument("name", required=False)
def show(name: str | None) -> None:
    """Show the context NAME, by default the current one, as JSON. Hides --auth-params.

    \b
    Examples:
      pulsarbox context show
      pulsarbox context show production
    """
    run(_show, name)


def _show(name: str | None) -> None:
    found = context_store.current() if name is None else _named(name)
    if found is None:
        raise NotThere("no context is current; `pulsarbox context use NAME` selects one")
    shown: dict[str, Any] = {"name": found[0], **found[1]}
    if "auth_params" in shown:
        shown["auth_params"] = "..."
    click.echo(json.dumps(shown, indent=2))


def _named(name: str) -> tuple[str, dict[str, Any]]:
    document = context_store.load()
    if name not in document["contexts"]:
        raise NotThere(f"context '{clean(name)}' does not exist; `pulsarbox context list` lists all contexts")
    return name, document["contexts"][name]


@context.command()
@click.argument("name")
def remove(name: str) -> None:
    """Remove the context NAME.

    \b
    Examples:
      pulsarbox context remove staging
    """
    run(_remove, name)


def _remove(name: str) -> None:
    document = context_store.load()
    if document["contexts"].pop(name, None) is None:
        raise NotThere(f"context '{clean(name)}' does not exist; `pulsarbox context list` lists all contexts")
    if document["current"] == name:
        document["current"] = None
    context_store.save(document)
    notify(f"removed context {name}")
