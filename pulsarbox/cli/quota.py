"""``pulsarbox quota``: how large a backlog may become, and how old."""

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.admin import topic_named, with_admin
from pulsarbox.cli.exits import Misused
from pulsarbox.cli.lazy import Group
from pulsarbox.cli.policies import Subject
from pulsarbox.cli.writing import carry_out, dry_run_option

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin

SIZE: Final = "destination_storage"
AGE: Final = "message_age"
THEN: Final = {
    "hold": "producer_request_hold",
    "refuse": "producer_exception",
    "evict": "consumer_backlog_eviction",
}
_NAME: Final = click.argument("name", metavar="TOPIC|TENANT/NAMESPACE")


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
def quota() -> None:
    """Limit the backlog of a topic, or of each topic of a namespace: its size, its age, and what is done then.

    `tenant/namespace` is a namespace; `orders` and `tenant/namespace/orders` are topics.

    \b
    Examples:
      pulsarbox quota set orders --size 2G --then hold
      pulsarbox quota set acme/prod --age 1d --then evict
      pulsarbox quota unset orders
    """


def _size(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    from pulsarbox.cli.pulsar_admin.values import size

    return _read(size, value)


def _age(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    from pulsarbox.cli.pulsar_admin.values import seconds

    return _read(seconds, value)


def _read(how: Any, value: str | None) -> int | None:
    if value is None:
        return None
    try:
        number: int = how(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    if number < 0:
        raise click.BadParameter("a limit is 0 or more; `pulsarbox quota unset` takes it away")
    return number


@quota.command("set")
@_NAME
@click.option("--size", metavar="SIZE", callback=_size, help="So many bytes: 2G, 500M.")
@click.option("--age", metavar="TIME", callback=_age, help="The oldest message may be so old: 1h, 7d.")
@click.option(
    "--then",
    type=click.Choice(tuple(THEN)),
    required=True,
    help="hold producers until there is room, refuse them, or evict the oldest messages from the backlog.",
)
@click.option("--exclude-delayed", is_flag=True, help="Messages that are not due yet do not count. Boxes only.")
@dry_run_option
@with_admin
def set_quota(
    name: str, size: int | None, age: int | None, then: str, exclude_delayed: bool, dry_run: bool, admin: "Admin"
) -> None:
    """Set the limit of the size of a backlog, of its age, or of both. Each has its own rule for what is done then.

    \b
    Examples:
      pulsarbox quota set orders --size 2G --then hold
      pulsarbox quota set orders --age 1h --then refuse
      pulsarbox quota set acme/prod --size 10G --age 7d --then evict
    """
    if size is None and age is None:
        raise Misused("say what is limited: --size, --age, or both")
    subject = _subject(admin, name)
    rule: dict[str, Any] = {"policy": THEN[then]} | ({"excludeDelayed": True} if exclude_delayed else {})
    things = []
    if size is not None:
        body = {"limit": size, "limitSize": size, "limitTime": -1, **rule}
        things.append(("set the quota of the size of", subject.name, partial(_set, admin, subject, SIZE, body)))
    if age is not None:
        body = {"limit": -1, "limitSize": -1, "limitTime": age, **rule}
        things.append(("set the quota of the age of", subject.name, partial(_set, admin, subject, AGE, body)))
    carry_out(things, dry_run=dry_run)


@quota.command()
@_NAME
@click.option("--size", is_flag=True, help="That of the size.")
@click.option("--age", is_flag=True, help="That of the age.")
@dry_run_option
@with_admin
def unset(name: str, size: bool, age: bool, dry_run: bool, admin: "Admin") -> None:
    """Take the quotas of a topic or a namespace away, or one of them. What the level above says holds again.

    \b
    Examples:
      pulsarbox quota unset orders
      pulsarbox quota unset acme/prod --age
    """
    subject = _subject(admin, name)
    both = size == age
    things = []
    if size or both:
        things.append(("unset the quota of the size of", subject.name, partial(_unset, admin, subject, SIZE)))
    if age or both:
        things.append(("unset the quota of the age of", subject.name, partial(_unset, admin, subject, AGE)))
    carry_out(things, dry_run=dry_run)


def _subject(admin: "Admin", name: str) -> Subject:
    if "://" not in name and name.count("/") == 1:
        return Subject(admin, name)
    return Subject(admin, topic_named(name))


def _set(admin: "Admin", subject: Subject, kind: str, body: dict[str, Any]) -> None:
    with subject.suggesting():
        admin.ask("POST", f"{subject.path}/backlogQuota", body, backlogQuotaType=kind)


def _unset(admin: "Admin", subject: Subject, kind: str) -> None:
    with subject.suggesting():
        admin.ask("DELETE", f"{subject.path}/backlogQuota", backlogQuotaType=kind)
