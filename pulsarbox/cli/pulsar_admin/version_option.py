"""The option ``--version`` of the root, of groups and of commands."""

import click


def version_option(taken: set[str], *, hidden: bool = False) -> list[click.Option]:
    """Return the option in the spellings that are not ``taken``; none if all are."""
    spellings = [one for one in ("-v", "--version") if one not in taken]
    if not spellings:
        return []
    return [
        click.Option(
            ["print_version", *spellings],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_print,
            hidden=hidden,
            help="Print the version and exit.",
        )
    ]


def _print(ctx: click.Context, parameter: click.Parameter, given: bool) -> None:
    if not given or ctx.resilient_parsing:
        return
    from pulsarbox import __version__
    from pulsarbox.protocol.features import COMPATIBLE_PULSAR_VERSION

    click.echo(f"Current version of pulsar admin client is: {COMPATIBLE_PULSAR_VERSION} (pulsarbox {__version__})")
    ctx.exit()
