"""``pulsarbox completion``: shell completion scripts."""

from typing import Final

import click

SHELLS: Final = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print a completion script for SHELL.

    Completes commands, options and values. Names of tenants, namespaces, topics and subscriptions come from the Admin
    API of the command's broker, with a timeout of 0.5 s. Topics in public/default have short names.

    \b
    Examples:
      eval "$(pulsarbox completion bash)"                                           (in ~/.bashrc)
      eval "$(pulsarbox completion zsh)"                                            (in ~/.zshrc)
      pulsarbox completion fish > ~/.config/fish/completions/pulsarbox.fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None, f"click completes {shell}"
    click.echo(found(click.get_current_context().find_root().command, {}, "pulsarbox", "_PULSARBOX_COMPLETE").source())
