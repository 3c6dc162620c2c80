"""``pulsarbox version``: print the version."""

import platform

import click

from pulsarbox import __version__
from pulsarbox.cli.common.exits import ended_by_reader
from pulsarbox.cli.common.terminal_text import OUTPUT, print_document


@click.command()
@OUTPUT
@ended_by_reader
def version(output: str) -> None:
    """Print the version. JSON output adds the data directory format and the Python version.

    \b
    Examples:
      pulsarbox version
      pulsarbox version -o json | jq -r .version
    """
    if output == "table":
        click.echo(f"pulsarbox {__version__}")
        return
    from pulsarbox.storage.format import FORMAT

    document = {"version": __version__, "format": FORMAT, "python": platform.python_version()}
    print_document(document, output)
