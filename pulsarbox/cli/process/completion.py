"""``pulsarbox completion``: shell completion scripts."""

from typing import Final

import click

SHELLS: Final = ("bash", "zsh", "fish")

_BASH: Final = r"""_pulsarbox_completion() {
    local IFS=' ' words=() word i breaks current part type value
    local line="${COMP_WORDS[*]:0:COMP_CWORD+1}"
    [[ $COMP_LINE ]] && line=${COMP_LINE:0:COMP_POINT}
    IFS=$'\n'
    # Bash splits words at colons and equal signs: join those without a space in between.
    for (( i = 0; i <= COMP_CWORD; i++ )); do
        word=${COMP_WORDS[i]}
        if [[ ${#words[@]} -eq 0 || $line == [[:space:]]* ]]; then
            line=${line#"${line%%[![:space:]]*}"}
            [[ $i -eq $COMP_CWORD ]] && word=$line
            words+=("$word")
        else
            [[ $i -eq $COMP_CWORD ]] && word=$line
            words[-1]+=$word
        fi
        line=${line#"$word"}
    done
    current=${words[-1]}
    # Bash replaces the part after the last separator, and all of a quoted word.
    breaks=
    [[ $COMP_WORDBREAKS == *:* ]] && breaks+=:
    [[ $COMP_WORDBREAKS == *=* ]] && breaks+==
    [[ $current == -*=* ]] && current=${current#*=}
    part=
    if [[ $breaks && $current != [\'\"]* ]]; then
        part=${current%"${current##*[$breaks]}"}
    fi
    COMPREPLY=()
    while IFS=, read -r type value; do
        case $type in
            dir) COMPREPLY=(); compopt -o dirnames ;;
            file) COMPREPLY=(); compopt -o default ;;
            plain)
                value=${value#"$part"}
                if [[ $current != [\'\"]* && $value == *[[:space:]\'\"\(\)\<\>\&\;\|]* ]]; then
                    printf -v value %q "$value"
                fi
                COMPREPLY+=("$value")
                ;;
        esac
    done < <(env COMP_WORDS="${words[*]}" COMP_CWORD=$(( ${#words[@]} - 1 )) _PULSARBOX_COMPLETE=bash_complete "$1")
    return 0
}

complete -o nosort -F _pulsarbox_completion pulsarbox
"""


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
    if shell == "bash":
        click.echo(_BASH, nl=False)
        return
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None, f"click completes {shell}"
    click.echo(found(click.get_current_context().find_root().command, {}, "pulsarbox", "_PULSARBOX_COMPLETE").source())
