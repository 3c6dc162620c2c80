"""Shell completion of names: tenants, namespaces, topics and subscriptions of the command's broker.

Completion must neither block nor print errors: without a quick response, there are no names.
"""

import contextlib
import io
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin

ANSWER_SECONDS: Final = 0.5
"""Timeout of one request."""
ALL_SECONDS: Final = 1.0
"""Time after which no more requests are sent."""
NAMES_MAX: Final = 1000
"""Maximum number of names to offer."""
_SCHEMES: Final = ("persistent://", "non-persistent://")
_HOME: Final = "public/default"
_TOPICS: Final = ("topic", "topic_name", "topics", "name")
"""Parameter names of topic arguments."""

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def asking(find: Callable[["Admin", Mapping[str, Any], str], Iterable[str]]) -> Complete:
    """Return a completer that asks the broker. Any error, of the broker or the command line, yields no names."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        with contextlib.suppress(Exception, SystemExit), contextlib.redirect_stderr(io.StringIO()):
            given = _given(context)
            with _admin(context, given) as admin:
                names = (name for name in find(admin, given, incomplete) if name.startswith(incomplete))
                return list(dict.fromkeys(islice(names, NAMES_MAX)))
        return []

    return complete


def _given(context: click.Context | None) -> dict[str, Any]:
    """Return the parameters before the word to complete, of the command and its groups."""
    if context is None:
        return {}
    own = {name: value for name, value in context.params.items() if value is not None}
    if context.args and not any(own.get(name) for name in _TOPICS):
        own["topic"] = context.args[0]  # before an option's value, click leaves the arguments unparsed
    return _given(context.parent) | own


@contextlib.contextmanager
def _admin(context: click.Context, given: Mapping[str, Any]) -> Iterator["Admin"]:
    """Connect to the Admin API of the command's broker. Raises Misused if it is unknown."""
    from pulsarbox.cli.connect.target import TRUST_NAMES, TargetOptions, admin_target
    from pulsarbox.client.admin import Admin

    options = {name: value for name, value in given.items() if name in TRUST_NAMES}
    urls = given.get("url"), given.get("admin_url")
    target = admin_target(
        TargetOptions(*urls, given.get("config_file"), given.get("data_dir"), options, ANSWER_SECONDS)
    )
    with Admin(target.hosts, ANSWER_SECONDS, secure=target.secure, credentials=target.credentials()) as admin:
        yield admin


def _tenants(admin: "Admin", given: Mapping[str, Any], incomplete: str) -> Iterable[str]:
    return admin.tenants()


def _namespaces(admin: "Admin", given: Mapping[str, Any], incomplete: str) -> Iterator[str]:
    end = time.monotonic() + ALL_SECONDS
    tenant, slash, _ = incomplete.partition("/")
    for each in [tenant] if slash else admin.tenants():
        if time.monotonic() < end and each.startswith(tenant):
            yield from admin.namespaces(each)


def _topics(admin: "Admin", given: Mapping[str, Any], incomplete: str) -> Iterator[str]:
    """Yield short names in public/default, ``tenant/namespace/topic`` elsewhere, and with a scheme if one was typed."""
    end = time.monotonic() + ALL_SECONDS
    scheme = next((each for each in _SCHEMES if incomplete.startswith(each)), "")
    domain, begun = scheme.partition(":")[0] or "persistent", incomplete.removeprefix(scheme)
    if "/" not in begun and not scheme:
        yield from (name.removeprefix(f"{_HOME}/") for name in _of_namespace(admin, _HOME, domain))
    home = [] if scheme or "/" in begun else [_HOME]
    namespaces = [begun.rpartition("/")[0]] if begun.count("/") == 2 else _namespaces(admin, given, begun)
    for each in namespaces:
        if time.monotonic() < end and each not in home:
            yield from (f"{scheme}{name}" for name in _of_namespace(admin, each, domain))


def _topics_and_namespaces(admin: "Admin", given: Mapping[str, Any], incomplete: str) -> Iterator[str]:
    if "://" not in incomplete:
        yield from _namespaces(admin, given, incomplete)
    yield from _topics(admin, given, incomplete)


def _dead_letter_topics(admin: "Admin", given: Mapping[str, Any], incomplete: str) -> Iterator[str]:
    """Yield the dead letter topics of a box in the form of ``_topics``."""
    end = time.monotonic() + ALL_SECONDS
    scheme = next((each for each in _SCHEMES if incomplete.startswith(each)), "")
    begun = incomplete.removeprefix(scheme)
    namespaces = [begun.rpartition("/")[0]] if begun.count("/") == 2 else [_HOME, *_namespaces(admin, given, begun)]
    for each in dict.fromkeys(namespaces):
        if time.monotonic() < end:
            for told in admin.dead_letter_topics(each):
                name = str(told["topic"]).partition("://")[2]
                yield name.removeprefix(f"{_HOME}/") if not scheme and "/" not in begun else f"{scheme}{name}"


def _of_namespace(admin: "Admin", namespace: str, domain: str) -> list[str]:
    """Return the topics of a namespace without scheme. A partitioned topic replaces its partitions."""
    from pulsarbox.names import parse_topic

    whole = admin.partitioned_topics(namespace, domain)
    parts = set(whole)
    single = [name for name in admin.topics(namespace, domain) if str(parse_topic(name).base) not in parts]
    return sorted(name.partition("://")[2] for name in (*whole, *single))


def _subscriptions(admin: "Admin", given: Mapping[str, Any], incomplete: str) -> Iterator[str]:
    from pulsarbox.names import parse_topic

    found = next((given[name] for name in _TOPICS if given.get(name)), ())
    for each in found if isinstance(found, tuple) else (found,):
        yield from admin.subscriptions(parse_topic(str(each)))


def _sinks(admin: "Admin", given: Mapping[str, Any], incomplete: str) -> Iterator[str]:
    """Yield short names in public/default, ``tenant/namespace/sink`` elsewhere."""
    end = time.monotonic() + ALL_SECONDS
    if "/" not in incomplete:
        yield from (each["sink"].removeprefix(f"{_HOME}/") for each in admin.sinks(_HOME))
    whole = incomplete.count("/") == 2
    for each in [incomplete.rpartition("/")[0]] if whole else _namespaces(admin, given, incomplete):
        if time.monotonic() < end and (each != _HOME or "/" in incomplete):
            yield from (told["sink"] for told in admin.sinks(each))


tenants: Final = asking(_tenants)
namespaces: Final = asking(_namespaces)
topics: Final = asking(_topics)
dead_letter_topics: Final = asking(_dead_letter_topics)
topics_and_namespaces: Final = asking(_topics_and_namespaces)
subscriptions: Final = asking(_subscriptions)
sinks: Final = asking(_sinks)

BY_NAME: Final[Mapping[str, Complete]] = {
    "tenant": tenants, "namespace": namespaces, "topic": topics, "subscription": subscriptions,
}  # fmt: skip
"""Completer of a pulsar-admin parameter, by its name."""


def words(*known: str) -> Complete:
    """Return a completer of fixed words: examples of values that are written freely."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        return [each for each in known if each.startswith(incomplete)]

    return complete


POSITIONS: Final = words("earliest", "latest", "@-10m", "@-1h", "@-1d")


def plugins(kind: str | None = None) -> Complete:
    """Return a completer of plugin names, of one kind or all. It imports no plugin and asks no broker."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        from pulsarbox.plugins.registry import find

        found = find(context.params.get("plugins_dir"))
        return [each.name for each in found if kind in (None, each.kind) and each.name.startswith(incomplete)]

    return complete
