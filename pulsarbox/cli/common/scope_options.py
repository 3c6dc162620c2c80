"""Which part of a box a look at it is about: --tenant and --namespace, for those who may not see all of it."""

import functools
from collections.abc import Callable
from typing import Any

import click

from pulsarbox.cli.connect.admin_client import namespace_named


def scope_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command --tenant and --namespace; it is called with ``scope``, the words of the query for them."""

    @functools.wraps(command)
    def called(*args: Any, tenant: str | None, namespace: str | None, **kwargs: Any) -> Any:
        if tenant is not None and namespace is not None:
            raise click.UsageError("--namespace names its tenant: leave --tenant out")
        scope = {} if tenant is None else {"tenant": tenant}
        if namespace is not None:
            scope["namespace"] = namespace_named(namespace)
        return command(*args, scope=scope, **kwargs)

    one = click.option("--namespace", metavar="NS", help="Only what is in this namespace (tenant/namespace).")
    return click.option("--tenant", metavar="TENANT", help="Only what is in this tenant; its admins need it.")(
        one(called)
    )
