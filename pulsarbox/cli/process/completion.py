"""``pulsarbox completion``: the script with which a shell completes our commands and options."""

from typing import Final

import click

SHELLS: Final = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script with which SHELL completes commands, options and their values.

    Tenants, namespaces, topics and subscriptions are those of the broker that the command would talk to: asked of its
    Admin API, for half a second at most. Topics of public/default go by their short names.

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
