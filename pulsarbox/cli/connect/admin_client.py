"""How commands talk to the Admin API: the client, names as people write them, errors with what may have been meant."""

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.common.exits import Failed, InTheWay, Misused, NotThere, ending
from pulsarbox.cli.connect.target import Target, admin_options
from pulsarbox.client.errors import NoAnswer, NotConnected
from pulsarbox.errors import PulsarBoxError
from pulsarbox.names import PERSISTENT, TopicName, parse_topic

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin

_HOME: Final = f"{PERSISTENT}://public/default/"


def with_admin(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command the options that name a broker, and --timeout; it is called with ``admin``, a client.

    Errors of the broker end it with the codes of ``exits``.
    """

    @functools.wraps(command)
    def called(*args: Any, admin: Target, timeout: float, **kwargs: Any) -> Any:
        from pulsarbox.client.admin import Admin

        with Admin(admin.hosts, timeout, secure=admin.secure, credentials=admin.credentials()) as client:
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
        metavar="S",
        type=click.FloatRange(0.1),
        default=30,
        show_default=True,
        help="Seconds to wait for each answer.",
    )
    return admin_options(seconds(called))


# Names


def short(topic: TopicName | str) -> str:
    """A topic's name as people write it: ``orders`` in public/default, else as much of it as is needed."""
    text = str(topic)
    if text.startswith(_HOME):
        return text.removeprefix(_HOME)
    return text.removeprefix(f"{PERSISTENT}://")


def topic_named(text: str) -> TopicName:
    """The topic of a short or a full name. Raises InvalidTopicName."""
    return parse_topic(text)


def namespace_named(text: str) -> str:
    """``tenant/namespace``; a word alone is a namespace of the tenant public. Raises Misused."""
    tenant, slash, rest = text.partition("/")
    if not slash:
        tenant, rest = "public", text
    if not tenant or not rest or "/" in rest:
        raise Misused(f"'{text}' is no namespace: it looks like tenant/namespace")
    return f"{tenant}/{rest}"


# What may have been meant


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """See ``config.setting.did_you_mean``; what it needs is imported when something is missing."""
    from pulsarbox.config import setting

    return setting.did_you_mean(name, known)


@contextlib.contextmanager
def advising_force(setting: str, force: bool, what: str) -> Iterator[None]:
    """A deletion that the broker refuses, because of ``what`` is inside or because force is off, says what to do."""
    from pulsarbox.client.admin import Refused

    try:
        yield
    except Refused as error:
        if force and error.status == 405:
            change = f"pulsarbox admin brokers update-dynamic-config -c {setting} -v true"
            raise Failed(f"{error}: delete its {what} first, or allow it with `{change}`") from None
        if not force and error.status == 409:
            raise InTheWay(f"{error}: delete its {what} first, or with --force, if {setting} is on") from None
        raise


@contextlib.contextmanager
def suggesting(admin: "Admin", topic: TopicName, subscription: str | None = None) -> Iterator[None]:
    """Adds to the broker's 404 which name may have been meant: of the namespace, the topic or the subscription."""
    from pulsarbox.client.admin import Refused

    try:
        yield
    except Refused as error:
        if error.status != 404:
            raise
        raise missing(admin, topic, subscription, str(error)) from error


def missing(admin: "Admin", topic: TopicName, subscription: str | None, said: str) -> NotThere:
    """The ending of a command whose topic, or its subscription, does not exist."""
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
    """All topics of a namespace: partitioned ones, and partitions one by one."""
    return [*admin.partitioned_topics(namespace, domain), *admin.topics(namespace, domain)]


def _names(ask: Callable[[], Iterable[str]]) -> list[str]:
    try:
        return list(ask())
    except PulsarBoxError:  # it is for a hint only
        return []


def tenant_missing(admin: "Admin", tenant: str) -> NotThere:
    """The ending of a command whose tenant does not exist."""
    return NotThere(f"no tenant '{tenant}'{did_you_mean(tenant, _names(admin.tenants))}")
