"""``pulsarbox apply``: create and change what a file declares."""

from typing import TYPE_CHECKING

import click

from pulsarbox.cli.common.confirmation import confirm, dry_run_option, yes_option
from pulsarbox.cli.common.exits import InTheWay, Partly, ending
from pulsarbox.cli.common.progress import CountLine
from pulsarbox.cli.common.terminal_text import clean, counted, notify
from pulsarbox.cli.connect.admin_client import with_admin
from pulsarbox.cli.declaration.admin_exchange import exchanged, problems_as
from pulsarbox.cli.declaration.declared_steps import DeclaredSteps, declaration_options

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin
    from pulsarbox.declaration.plan import Step


@click.command()
@declaration_options
@yes_option
@dry_run_option
@with_admin
def apply(files: tuple[str, ...], token_key: str | None, prune: bool, yes: bool, dry_run: bool, admin: "Admin") -> None:
    """Create and change what files declare: tenants, namespaces, topics, subscriptions, policies, schemas, tokens.

    Validates the files and compares them with the box before the first change. Objects and policies that are not
    declared stay unchanged, unless --prune is given. If a change fails, the command ends; run it again to continue.

    --prune prompts for the number of deletions on a terminal; otherwise it requires --yes.

    \b
    Exit codes:
      2  a file is invalid: every problem is reported with its line
      4  an object exists and cannot be changed as declared, or not confirmed
      8  some changes were made, then one failed

    \b
    Examples:
      pulsarbox apply -f box.yaml
      pulsarbox apply -f box.yaml --dry-run
      pulsarbox apply -f declarations/ --prune
    """
    found = DeclaredSteps(admin, files, token_key, prune=prune)
    if not found.steps:
        notify("nothing to change")
        return
    if found.removals:
        names = [f"{each.what} {each.name}" for each in found.removals]
        confirm(f"delete {len(names)} undeclared objects and policies", names, yes=yes, dry_run=dry_run)
    if dry_run:
        for step in found.steps:
            click.echo(clean(f"would have {step.done}"))
        return
    _apply(admin, found)


def _apply(admin: "Admin", found: DeclaredSteps) -> None:
    from pulsarbox.declaration.step_execution import StepFailed, carried_out

    line = CountLine("applying:", "request")
    done: list[Step] = []

    def report(step: "Step") -> None:
        if step.token is not None:
            found.tokens.write(step.token)
        done.append(step)
        line.clear()
        click.echo(clean(step.done))

    try:
        with problems_as(InTheWay):
            exchanged(admin, carried_out(found.steps, report), line)
    except StepFailed as error:
        failure = ending(error)
        if not done:
            raise failure from error
        raise Partly(
            f"{failure.message}; {len(done)} of {counted(len(found.steps), 'change')} made: apply again"
        ) from error
