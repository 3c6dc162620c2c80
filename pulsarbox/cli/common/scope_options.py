"""--tenant and --namespace: restrict output to one tenant or namespace, as tenant admins need."""

import functools
from collections.abc import Callable
from typing import Any

import click

from pulsarbox.cli.connect.admin_client import namespace_named


def scope_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --tenant and --namespace to a command, passed to it as query parameters in ``scope``."""

    @functools.wraps(command)
    def called(*args: Any, tenant: str | None, namespace: str | None, **kwargs: Any) -> Any:
        if tenant is not None and namespace is not None:
            raise click.UsageError("--namespace and --tenant cannot be combined: a namespace includes its tenant")
        scope = {} if tenant is None else {"tenant": tenant}
        if namespace is not None:
            scope["namespace"] = namespace_named(namespace)
        return command(*args, scope=scope, **kwargs)

    one = click.option("--namespace", metavar="NS", help="Restrict to this namespace (tenant/namespace).")
    return click.option("--tenant", metavar="TENANT", help="Restrict to this tenant; required for its admins.")(
        one(called)
    )
