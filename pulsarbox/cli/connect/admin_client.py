"""Admin API client of commands: options, short names, and errors with name suggestions."""

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.common.exits import Failed, InTheWay, Misused, NotThere, ending
from pulsarbox.cli.common.terminal_text import notify
from pulsarbox.cli.common.value_types import Seconds
from pulsarbox.cli.connect.target import Target, admin_options
from pulsarbox.client.errors import NoAnswer, NotConnected
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import TopicName, is_entity_name, parse_topic, short_topic

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin


def with_admin(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the broker options and --timeout to a command, which gets a connected client as ``admin``.

    Broker errors map to the exit codes of ``exits``.
    """

    @functools.wraps(command)
    def called(*args: Any, admin: Target, timeout: float, **kwargs: Any) -> Any:
        from pulsarbox.client.admin import Admin

        with Admin(admin.hosts, timeout, secure=admin.secure, credentials=admin.credentials(), warn=notify) as client:
            try:
                return command(*args, admin=client, **kwargs)
            except NotConnected as error:
                raise admin.unreachable(str(error)) from error
            except NoAnswer as error:
                raise admin.silent(timeout) from error
            except PulsarBoxError as error:
                raise ending(error) from error

    seconds = click.option(
        "--timeout",
        type=Seconds(0.1),
        default="30s",
        show_default=True,
        help="Time to wait for each response.",
    )
    return admin_options(seconds(called))


# Names


short: Final = short_topic
"""The name of a topic as commands print it."""


def topic_named(text: str) -> TopicName:
    """Parse a short or full topic name. Raises InvalidTopicName."""
    return parse_topic(text)


def tenant_named(text: str) -> str:
    """Return the name of a tenant. Raises Misused if it is not valid."""
    text.encode()  # text that is not valid UTF-8 has its own message
    if not is_entity_name(text):
        raise Misused(f"invalid tenant '{text}': expected letters, digits and - = : . _")
    return text


def subscription_named(text: str) -> str:
    """Return the name of a new subscription. Raises Misused if it is empty."""
    if not text:
        raise Misused("invalid subscription '': the name is empty")
    return text


def namespace_named(text: str) -> str:
    """Return ``tenant/namespace``; the default tenant is public. Raises Misused."""
    tenant, slash, rest = text.partition("/")
    if not slash:
        tenant, rest = "public", text
    if not tenant or not rest or "/" in rest:
        raise Misused(f"invalid namespace '{text}': expected tenant/namespace")
    return f"{tenant}/{rest}"


# Suggestions


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """See ``config.setting.did_you_mean``, which is imported only when needed."""
    from pulsarbox.config import setting

    return setting.did_you_mean(name, known)


@contextlib.contextmanager
def advising_force(setting: str, force: bool, what: str) -> Iterator[None]:
    """Add advice to a refused deletion: delete the contained ``what`` first, or use or allow --force."""
    from pulsarbox.client.admin import AdminRefused

    try:
        yield
    except AdminRefused as error:
        if force and error.status == 405:
            change = f"pulsarbox admin brokers update-dynamic-config -c {setting} -v true"
            raise Failed(f"{error}: delete its {what} first, or allow it with `{change}`") from None
        if not force and error.status == 409:
            raise InTheWay(f"{error}: delete its {what} first, or use --force if {setting} is on") from None
        raise


@contextlib.contextmanager
def suggesting(admin: "Admin", topic: TopicName, subscription: str | None = None) -> Iterator[None]:
    """Convert the broker's 404 into an error that names the missing object and suggests a similar name."""
    from pulsarbox.client.admin import AdminRefused

    try:
        yield
    except AdminRefused as error:
        if error.status != 404:
            raise
        raise missing(admin, topic, subscription, str(error)) from error


def missing(admin: "Admin", topic: TopicName, subscription: str | None, said: str) -> NotThere:
    """Return the error for a missing topic or subscription, or a missing parent of it."""
    if topic.tenant not in (tenants := _names(admin.tenants)):
        return NotThere(f"no tenant '{topic.tenant}'{did_you_mean(topic.tenant, tenants)}")
    if topic.namespace not in (namespaces := _names(lambda: admin.namespaces(topic.tenant))):
        return NotThere(f"no namespace '{topic.namespace}'{did_you_mean(topic.namespace, namespaces)}")
    topics = _names(lambda: every_topic(admin, topic.namespace, topic.domain))
    if str(topic) not in topics:
        return NotThere(f"no topic '{short(topic)}'{did_you_mean(short(topic), map(short, topics))}")
    if subscription is not None and subscription not in (names := _names(lambda: admin.subscriptions(topic))):
        hint = did_you_mean(subscription, names)
        return NotThere(f"no subscription '{subscription}' on {short(topic)}{hint}")
    return NotThere(said)


def every_topic(admin: "Admin", namespace: str, domain: str) -> list[str]:
    """Return all topics of a namespace, both partitioned topics and their partitions."""
    return [*admin.partitioned_topics(namespace, domain), *admin.topics(namespace, domain)]


def _names(ask: Callable[[], Iterable[str]]) -> list[str]:
    try:
        return list(ask())
    except PulsarBoxError:  # the hint is optional
        return []


def tenant_missing(admin: "Admin", tenant: str) -> NotThere:
    """Return the error for a missing tenant."""
    return NotThere(f"no tenant '{tenant}'{did_you_mean(tenant, _names(admin.tenants))}")
