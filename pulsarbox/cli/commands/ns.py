"""``pulsarbox ns``: namespaces."""

from functools import partial
from typing import TYPE_CHECKING

import click

from pulsarbox.cli.commands.policies import Subject, called, complete
from pulsarbox.cli.common.confirmation import carry_out, confirm, dry_run_option, yes_option
from pulsarbox.cli.common.lazy_group import SuggestingGroup
from pulsarbox.cli.common.output import OutputOptions, TableOutput, output_options, show
from pulsarbox.cli.common.value_types import BoundedInteger
from pulsarbox.cli.connect.admin_client import (
    advising_force,
    namespace_named,
    suggesting,
    tenant_named,
    topic_named,
    with_admin,
)
from pulsarbox.cli.process import completions

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin


@click.group(cls=SuggestingGroup, context_settings={"help_option_names": ["-h", "--help"]})
def ns() -> None:
    """Create, delete, list and inspect namespaces. `prod` alone means public/prod.

    \b
    Examples:
      pulsarbox ns create acme/prod
      pulsarbox ns list acme
      pulsarbox ns policy acme/prod
    """


@ns.command()
@click.argument("names", metavar="NAMESPACE...", nargs=-1, required=True)
@click.option("--bundles", type=BoundedInteger(1), metavar="N", help="Number of bundles. [default: 4]")
@dry_run_option
@with_admin
def create(names: tuple[str, ...], bundles: int | None, dry_run: bool, admin: "Admin") -> None:
    """Create namespaces. The tenant must exist.

    \b
    Examples:
      pulsarbox ns create acme/prod acme/test
    """
    namespaces = [namespace_named(name) for name in names]
    things = [("created namespace", each, partial(_create, admin, each, bundles)) for each in namespaces]
    carry_out(things, dry_run=dry_run)


def _create(admin: "Admin", namespace: str, bundles: int | None) -> None:
    from pulsarbox.client.admin import AdminRefused, quoted

    try:
        admin.ask(
            "PUT", f"/namespaces/{quoted(*namespace.split('/'))}", bundles and {"bundles": {"numBundles": bundles}}
        )
    except AdminRefused as error:
        if error.status == 404:
            from pulsarbox.cli.connect.admin_client import tenant_missing

            raise tenant_missing(admin, namespace.partition("/")[0]) from error
        raise


@ns.command()
@click.argument("names", metavar="NAMESPACE...", nargs=-1, required=True, shell_complete=completions.namespaces)
@click.option("-f", "--force", is_flag=True, help="Delete its topics too, if the broker allows it.")
@yes_option
@dry_run_option
@with_admin
def delete(names: tuple[str, ...], force: bool, yes: bool, dry_run: bool, admin: "Admin") -> None:
    """Delete namespaces.

    A namespace with topics requires --force, and forceDeleteNamespaceAllowed=true on the broker.

    Prompts for the name on a terminal; otherwise requires --yes.

    \b
    Examples:
      pulsarbox ns delete acme/test
      pulsarbox ns delete acme/test --force --yes
    """
    namespaces = [namespace_named(name) for name in names]
    what = f"delete namespace {namespaces[0]}" if len(namespaces) == 1 else f"delete {len(namespaces)} namespaces"
    confirm(what + (" with all topics" if force else ""), namespaces, yes=yes, dry_run=dry_run)
    things = [("deleted namespace", each, partial(_delete, admin, each, force)) for each in namespaces]
    carry_out(things, dry_run=dry_run, check=partial(_check_exists, admin))


def _check_exists(admin: "Admin", namespace: str) -> None:
    with suggesting(admin, topic_named(f"{namespace}/-")):
        admin.topics(namespace)


def _delete(admin: "Admin", namespace: str, force: bool) -> None:
    from pulsarbox.client.admin import quoted

    forced = advising_force("forceDeleteNamespaceAllowed", force, "topics")
    with suggesting(admin, topic_named(f"{namespace}/-")), forced:
        admin.ask("DELETE", f"/namespaces/{quoted(*namespace.split('/'))}", force=str(force).lower())


@ns.command("list")
@click.argument("tenant", required=False, shell_complete=completions.tenants)
@output_options
@with_admin
def list_namespaces(tenant: str | None, output: OutputOptions, admin: "Admin") -> None:
    """List the namespaces of TENANT, by default of all tenants. Fields: name, tenant.

    \b
    Examples:
      pulsarbox ns list
      pulsarbox ns list acme -o name
    """
    show(output, partial(_listed, admin, tenant))


def _listed(admin: "Admin", tenant: str | None) -> TableOutput:
    from pulsarbox.client.admin import AdminRefused

    rows = []
    for each in admin.tenants() if tenant is None else [tenant_named(tenant)]:
        try:
            rows += [{"name": name, "tenant": each} for name in admin.namespaces(each)]
        except AdminRefused as error:
            if error.status != 404:
                raise
            if tenant:
                from pulsarbox.cli.connect.admin_client import tenant_missing

                raise tenant_missing(admin, tenant) from error
    return TableOutput(rows, ["name"], wide=["tenant"], fields=["name", "tenant"])


@ns.command()
@click.argument("name", metavar="NAMESPACE", shell_complete=completions.namespaces)
@click.argument("policies", metavar="[POLICY [VALUE]]...", nargs=-1, shell_complete=complete)
@click.option("--unset", is_flag=True, help="Remove the policies; the values of the broker apply again.")
@click.option("--levels", is_flag=True, help="In every format, show the effective policies, with the level of each.")
@dry_run_option
@output_options
@with_admin
def policy(
    name: str,
    policies: tuple[str, ...],
    unset: bool,
    levels: bool,
    dry_run: bool,
    output: OutputOptions,
    admin: "Admin",
) -> None:
    """Show the effective policies of a namespace and the level that sets each; show, set or unset POLICY.

    VALUE is as people write it (7d, 1.5G, 100/s, 5MB/s, on, off), name=value pairs, or JSON as in the Admin API;
    default removes the policy. docs/policies.md lists the policies. Without POLICY and --levels, formats other than
    table and wide print the Admin API response.

    \b
    Examples:
      pulsarbox ns policy public/default
      pulsarbox ns policy acme/prod -o json | jq .retention_policies
      pulsarbox ns policy acme/prod message-ttl 1h
      pulsarbox ns policy acme/prod retention 7d,10G backlog-quota 1.5G,refuse
      pulsarbox ns policy acme/prod retention retentionTimeInMinutes=60,retentionSizeInMB=-1
      pulsarbox ns policy acme/prod retention default
      pulsarbox ns policy acme/prod --unset retention message-ttl
    """
    namespace = namespace_named(name)
    if policies or unset or levels or output.is_table:
        called(Subject(admin, namespace), policies, unset=unset, dry_run=dry_run, output=output)
    else:
        show(output, partial(_policy, admin, namespace))


def _policy(admin: "Admin", namespace: str) -> TableOutput:
    from pulsarbox.client.admin import quoted

    with suggesting(admin, topic_named(f"{namespace}/-")):
        policies = admin.ask("GET", f"/namespaces/{quoted(*namespace.split('/'))}")
    return TableOutput([{"name": namespace, **policies}], lines=[])  # a document, of which no table is shown
