"""``pulsarbox tenant``: tenants."""

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from pulsarbox.cli.commands.stats_text import document_lines
from pulsarbox.cli.common.confirmation import carry_out, confirm, dry_run_option, yes_option
from pulsarbox.cli.common.lazy_group import SuggestingGroup
from pulsarbox.cli.common.output import OutputOptions, TableOutput, output_options, show
from pulsarbox.cli.connect.admin_client import advising_force, tenant_missing, tenant_named, with_admin
from pulsarbox.cli.process import completions

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin


@click.group(cls=SuggestingGroup, context_settings={"help_option_names": ["-h", "--help"]})
def tenant() -> None:
    """Create, delete, list and inspect tenants.

    \b
    Examples:
      pulsarbox tenant create acme
      pulsarbox tenant list
      pulsarbox tenant show acme
    """


@tenant.command()
@click.argument("names", metavar="TENANT...", nargs=-1, required=True)
@click.option(
    "--admin-role", "roles", metavar="ROLE", multiple=True, help="Role that may administer the tenant; repeatable."
)
@click.option(
    "--cluster", "clusters", metavar="NAME", multiple=True, help="Allowed cluster; repeatable. [default: all]"
)
@dry_run_option
@with_admin
def create(
    names: tuple[str, ...], roles: tuple[str, ...], clusters: tuple[str, ...], dry_run: bool, admin: "Admin"
) -> None:
    """Create tenants.

    \b
    Examples:
      pulsarbox tenant create acme
      pulsarbox tenant create acme --admin-role ops --admin-role ann
    """
    make = partial(_create, admin, roles, clusters)
    carry_out([("created tenant", name, partial(make, name)) for name in map(tenant_named, names)], dry_run=dry_run)


def _create(admin: "Admin", roles: tuple[str, ...], clusters: tuple[str, ...], name: str) -> None:
    from pulsarbox.client.admin import quoted

    allowed = list(clusters) or [each for each in admin.clusters() if each != "global"]
    admin.ask("PUT", f"/tenants/{quoted(name)}", {"adminRoles": list(roles), "allowedClusters": allowed})


@tenant.command()
@click.argument("names", metavar="TENANT...", nargs=-1, required=True, shell_complete=completions.tenants)
@click.option("-f", "--force", is_flag=True, help="Delete its namespaces too, if the broker allows it.")
@yes_option
@dry_run_option
@with_admin
def delete(names: tuple[str, ...], force: bool, yes: bool, dry_run: bool, admin: "Admin") -> None:
    """Delete tenants.

    A tenant with namespaces requires --force, and forceDeleteTenantAllowed=true on the broker.

    Prompts for the name on a terminal; otherwise requires --yes.

    \b
    Examples:
      pulsarbox tenant delete acme
    """
    names = tuple(map(tenant_named, names))
    what = f"delete tenant {names[0]}" if len(names) == 1 else f"delete {len(names)} tenants"
    confirm(what + (" with everything in it" if force else ""), list(names), yes=yes, dry_run=dry_run)
    things = [("deleted tenant", name, partial(_delete, admin, name, force)) for name in names]
    carry_out(things, dry_run=dry_run, check=partial(_ask, admin, "GET"))


def _delete(admin: "Admin", name: str, force: bool) -> None:
    with advising_force("forceDeleteTenantAllowed", force, "namespaces"):
        _ask(admin, "DELETE", name, force=str(force).lower())


def _ask(admin: "Admin", method: str, name: str, **query: str) -> Any:
    from pulsarbox.client.admin import AdminRefused, quoted

    try:
        return admin.ask(method, f"/tenants/{quoted(name)}", **query)
    except AdminRefused as error:
        if error.status == 404:
            raise tenant_missing(admin, name) from error
        raise


@tenant.command("list")
@output_options
@with_admin
def list_tenants(output: OutputOptions, admin: "Admin") -> None:
    """List the tenants. Field: name.

    \b
    Examples:
      pulsarbox tenant list
      pulsarbox tenant list -o json
    """
    show(output, lambda: TableOutput([{"name": name} for name in admin.tenants()], ["name"]))


@tenant.command("show")
@click.argument("name", metavar="TENANT", shell_complete=completions.tenants)
@output_options
@with_admin
def show_tenant(name: str, output: OutputOptions, admin: "Admin") -> None:
    """Show the admins, clusters and namespaces of a tenant.

    \b
    Examples:
      pulsarbox tenant show acme
    """
    show(output, partial(_shown, admin, name))


def _shown(admin: "Admin", name: str) -> TableOutput:
    info = _ask(admin, "GET", tenant_named(name))
    row = {"name": name, **info, "namespaces": admin.namespaces(name)}
    return TableOutput([row], lines=document_lines(row))
