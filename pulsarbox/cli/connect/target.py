"""Which broker a command talks to: ``--url`` and ``--admin-url``, and what stands in for them.

The first that there is: the option; PULSARBOX_SERVICE_URL or PULSARBOX_ADMIN_URL; the context in use; the box that runs
on the data directory; this user's box with --memory; the ports of a Pulsar broker on this machine. Any broker
will do, a box or Apache Pulsar. Where one of the two is named, and the other is not, both are of the named broker:
``counterpart``.
"""

import contextlib
import functools
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from pulsarbox.cli.common.exits import Failed, Misused, TimedOut, Unreachable, run
from pulsarbox.cli.process.directory_options import CONFIG, data_directory
from pulsarbox.client.errors import NotConnected

if TYPE_CHECKING:
    from pulsarbox.client.credentials import Credentials
    from pulsarbox.server.process.runtime_file import Running

SERVICE_VARIABLE: Final = "PULSARBOX_SERVICE_URL"
ADMIN_VARIABLE: Final = "PULSARBOX_ADMIN_URL"
CONTEXT_ORIGIN: Final = "the context in use"
DEFAULT_ORIGIN: Final = "the default"
DEFAULT_SERVICE: Final = "pulsar://localhost:6650"
DEFAULT_ADMIN: Final = "http://localhost:8080"

_DATA_DIR: Final = click.option(
    "--data-dir", help="Data directory of the box to talk to, where no URL is given (dataDirectory)."
)
_URL: Final = click.option(
    "--url",
    metavar="URL",
    help=f"Service URL of the broker, such as {DEFAULT_SERVICE}. Else {SERVICE_VARIABLE}, else that of the broker with"
    " the admin URL, else the box that runs here.",
)
_ADMIN_URL: Final = click.option(
    "--admin-url",
    metavar="URL",
    help=f"Admin URL of the broker, such as {DEFAULT_ADMIN}. Else {ADMIN_VARIABLE}, else that of the broker with"
    " the service URL, else the box that runs here.",
)
TRUST: Final = (
    click.option(
        "--token-file", metavar="FILE", help="A file with a token that proves who asks. Else PULSARBOX_TOKEN."
    ),
    click.option("--auth-plugin", metavar="NAME", help="token, tls, basic. Else PULSARBOX_AUTH_PLUGIN."),
    click.option("--auth-params", metavar="TEXT", help="What that needs, or file:PATH. Else PULSARBOX_AUTH_PARAMS."),
    click.option(
        "--tls-trust-cert-path",
        metavar="FILE",
        help="Certificates to trust over TLS (PEM). Else PULSARBOX_TLS_TRUST_CERT_PATH.",
    ),
    click.option("--tls-allow-insecure", is_flag=True, help="Trust whoever answers over TLS."),
    click.option(
        "--tls-enable-hostname-verification", is_flag=True, help="The certificate must name the host of the URL."
    ),
)
"""With what a broker is talked to; what it is called in ``Target.options``."""
TRUST_NAMES: Final = (
    *("token_file", "auth_plugin", "auth_params"),
    *("tls_trust_cert_path", "tls_allow_insecure", "tls_enable_hostname_verification"),
)

_NOTHING: Final[Mapping[str, Any]] = {}


class Target(NamedTuple):
    """A broker, by its URL, and where that URL comes from."""

    url: str
    """Without a slash at its end."""
    origin: str
    """In words: ``--url``, ``PULSARBOX_SERVICE_URL``, ``the box on data``, ``the default``."""
    hosts: tuple[tuple[str, int], ...]
    """Hosts and ports of the URL, in its order."""
    certificate: str = ""
    """Of a box that runs here: the file with its certificate, which its client expects to see."""
    operator: str = ""
    """What that box has written into its data directory for us; empty where it has not, or is another user's."""
    directory: str = ""
    """The data directory of a box that was found because it runs here; empty for any other broker."""
    options: Mapping[str, Any] = _NOTHING
    """What the command line says of trust and credentials."""
    by_context: bool = False
    """Whether the context in use names the broker, so its credentials are for it."""
    guessed: bool = False
    """Whether only the usual port suggests this server. No secret is sent to it."""

    def __repr__(self) -> str:  # without what is secret
        return f"<Target: {self.url} ({self.origin})>"

    @property
    def secure(self) -> bool:
        """Whether it is talked to over TLS."""
        return self.url.startswith(("pulsar+ssl:", "https:"))

    def credentials(self, options: dict[str, Any] | None = None, file: dict[str, str] | None = None) -> "Credentials":
        """Return the credentials for this broker: see ``credentials_for``.

        Raises Misused, also where a secret is configured and the address of the server is a guess.
        """
        from pulsarbox.cli.connect.credentials import credentials_for

        made = credentials_for({**self.options, **(options or {})}, file or {}, self)
        if self.guessed and made.secret:
            raise Misused(
                f"credentials are not sent to {self.url}: its port is a guess ({self.origin}); name the Admin API with"
                f" {_ADMIN.option}, {ADMIN_VARIABLE} or in the context"
            )
        return made._replace(pinned=self.certificate) if self.certificate and self.secure else made

    def unreachable(self, reason: str) -> Failed:
        """The ending of a command that got no connection, or lost it: what was tried, and what to do."""
        return Unreachable(f"{self.url} ({self.origin}) cannot be reached: {reason}; {self._advice(reason)}")

    def silent(self, seconds: float) -> Failed:
        """The ending of a command that got no answer in time."""
        return TimedOut(f"{self.url} ({self.origin}) has not answered within {seconds:g} s; {self._advice()}")

    def _advice(self, reason: str = "") -> str:
        if "certificate" in reason and self.secure:
            return "name what is to be trusted with --tls-trust-cert-path (docs/tls.md)"
        if "EOF occurred" in reason or "unexpected eof" in reason:
            return f"that may be a port without TLS: {self.url.replace('+ssl', '').replace('https', 'http')}"
        option = "--url" if self.url.startswith("pulsar") else "--admin-url"
        return f"see `pulsarbox status`, start a box with `pulsarbox start --detach`, or name a broker with {option}"


def service_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command --url, --data-dir and --config; it is called with ``service``, a ``Target``.

    What ends the command early ends it as ``exits.run`` says; so with the other two.
    """
    return _with_directory(_URL(_called_with(command, service=True, admin=False)))


def admin_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command --admin-url, --data-dir and --config; it is called with ``admin``, a ``Target``."""
    return _with_directory(_ADMIN_URL(_called_with(command, service=False, admin=True)))


def late_admin_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """As ``admin_options``; ``admin`` is a call that finds its ``Target`` when needed."""
    return _with_directory(_ADMIN_URL(_called_with(command, service=False, admin=True, late=True)))


def service_and_admin_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command both, with --data-dir and --config; it is called with ``service`` and ``admin``."""
    return _with_directory(_URL(_ADMIN_URL(_called_with(command, service=True, admin=True))))


def service_and_late_admin_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command both, with --data-dir and --config; ``admin`` is a call that finds its ``Target`` when needed."""
    return _with_directory(_URL(_ADMIN_URL(_called_with(command, service=True, admin=True, late=True))))


def _with_directory(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(TRUST):
        command = option(command)
    return _DATA_DIR(CONFIG(command))


def _called_with(command: Callable[..., Any], service: bool, admin: bool, late: bool = False) -> Callable[..., Any]:
    @functools.wraps(command)
    def called(
        *args: Any,
        config_file: Path | None,
        data_dir: str | None,
        url: str | None = None,
        admin_url: str | None = None,
        **kwargs: Any,
    ) -> Any:
        options = {name: kwargs.pop(name) for name in TRUST_NAMES}

        given = Given(url, admin_url, config_file, data_dir, options)

        def find() -> Target:
            return _find(_ADMIN, given, os.environ)

        if service:
            kwargs["service"] = _find(_SERVICE, given, os.environ)
        if admin:
            kwargs["admin"] = find if late else find()
        return run(_placed(command, kwargs.get("service")), *args, **kwargs)

    return called


def _placed(command: Callable[..., Any], service: Target | None) -> Callable[..., Any]:
    """The command; a broker that it cannot reach is told with the place that its URL comes from."""

    def placed(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except NotConnected as error:
            if service is None:
                raise
            raise service.unreachable(str(error)) from error

    return placed


class Given(NamedTuple):
    """What a command line says of the broker."""

    url: str | None = None
    admin_url: str | None = None
    config_file: Path | None = None
    data_dir: str | None = None
    options: Mapping[str, Any] = _NOTHING
    """See ``Target.options``."""
    seconds: float = 10.0
    """How long a broker is waited for that is asked for its other URL."""


_NOTHING_GIVEN: Final = Given()


def service_target(given: Given = _NOTHING_GIVEN, environ: Mapping[str, str] = os.environ) -> Target:
    """Return the broker for the Pulsar protocol. Raises Misused for a URL that cannot be one."""
    return _find(_SERVICE, given, environ)


def admin_target(given: Given = _NOTHING_GIVEN, environ: Mapping[str, str] = os.environ) -> Target:
    """Return the broker for the Admin API. Raises Misused for a URL that cannot be one."""
    return _find(_ADMIN, given, environ)


class _Door(NamedTuple):
    """One of the two ports of a broker, and what names it."""

    option: str
    variable: str
    field: str
    """Of a context."""
    default: str
    scheme: str
    secure: str
    """The scheme over TLS."""
    port: int
    tls_port: int


_SERVICE: Final = _Door("--url", SERVICE_VARIABLE, "url", DEFAULT_SERVICE, "pulsar", "pulsar+ssl", 6650, 6651)
_ADMIN: Final = _Door("--admin-url", ADMIN_VARIABLE, "admin_url", DEFAULT_ADMIN, "http", "https", 8080, 443)


def _find(door: _Door, given: Given, environ: Mapping[str, str]) -> Target:
    other = _ADMIN if door is _SERVICE else _SERVICE
    named = _named(door, given, environ)
    if named is not None:
        return _target(door, *named)._replace(options=given.options)
    if given.data_dir is None:
        of_other = _named(other, given, environ)
        if of_other is not None:
            return _counterpart(door, _target(other, *of_other)._replace(options=given.options), given)
        context = current_context(environ) or {}
        if context.get(door.field):
            found = _target(door, context[door.field], CONTEXT_ORIGIN)
            return found._replace(options=given.options, by_context=True)
        if context.get(other.field):
            found = _target(other, context[other.field], CONTEXT_ORIGIN)
            return _counterpart(door, found._replace(options=given.options, by_context=True), given)
    return _of_this_machine(door, given)._replace(options=given.options)


def _named(door: _Door, given: Given, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """The URL that the option or the variable names, and which of them; None where neither does."""
    url = given.url if door is _SERVICE else given.admin_url
    if url is not None:
        if given.data_dir is not None:
            raise Misused(f"{door.option} and --data-dir both name a broker: give one of them")
        return url, door.option
    if given.data_dir is not None:  # an option, so it wins over the environment
        return None
    return (environ[door.variable], door.variable) if environ.get(door.variable) else None


def _counterpart(door: _Door, named: Target, given: Given) -> Target:
    """The other URL of a broker. Raises Misused where the broker does not tell it."""
    from pulsarbox.cli.connect import counterpart_url

    if door is _SERVICE:
        url, guessed = counterpart_url.service_url_of(named, given.seconds), False
    else:
        url, guessed = counterpart_url.admin_url_of(named, _boxes(given.config_file), given.seconds)
    found = _target(door, url, counterpart_url.origin_of(named))
    return found._replace(options=named.options, by_context=named.by_context, guessed=guessed)


def _of_this_machine(door: _Door, given: Given) -> Target:
    found = _of_the_box(given.config_file, given.data_dir) or _in_memory()
    if found is None:
        return _target(door, door.default, DEFAULT_ORIGIN)
    running, origin = found
    target = _target(door, running.local_url(door is _ADMIN), origin)
    return target._replace(certificate=running.certificate, operator=running.operator, directory=running.data)


def _boxes(config_file: Path | None) -> "Iterator[Running]":
    """The boxes on this machine that can be found: that of the data directory, and those in memory."""
    from pulsarbox.server.process.memory_box_entry import entries, pid_of
    from pulsarbox.server.process.runtime_file import read

    with contextlib.suppress(Unreachable):  # it does not serve yet
        found = _of_the_box(config_file, None)
        if found is not None:
            yield found[0]
    yield from (running for path in entries() if (running := read(path, pid_of(path))) is not None)


def current_context(environ: Mapping[str, str] = os.environ) -> dict[str, Any] | None:
    """What the context in use says, None where none is. Raises NotThere, Misused."""
    from pulsarbox.cli.connect import context_store

    if not environ.get(context_store.VARIABLE) and not context_store.path(environ).exists():
        return None
    found = context_store.current(environ)
    return None if found is None else found[1]


def checked_urls(context: Mapping[str, str]) -> None:
    """Raises Misused for a URL of a context that cannot be one."""
    for door in (_SERVICE, _ADMIN):
        if context.get(door.field):
            _target(door, context[door.field], door.option)


def _of_the_box(config_file: Path | None, data_dir: str | None) -> "tuple[Running, str] | None":
    """The box that runs on the data directory. None where none does, unless that directory was named."""
    from pulsarbox.cli.process.lock_holder import Unreadable, find
    from pulsarbox.server.process.runtime_file import read

    directory = data_directory(config_file, data_dir)
    try:
        found = find(directory)
    except Unreadable:
        if data_dir is None:  # it only happens to be here
            return None
        raise
    if found is None:
        if data_dir is None:
            return None
        where = shlex.quote(data_dir)
        raise Unreachable(f"no box runs on {directory}: start it with `pulsarbox start --detach --data-dir {where}`")
    running = read(directory, found.pid)
    if running is None:
        raise Unreachable(f"the box on {directory} (process {found.pid or 'unknown'}) does not serve yet: try again")
    return running, f"the box on {directory}"


def _in_memory() -> "tuple[Running, str] | None":
    """This user's box with --memory. Where several run: the one on the default port, else Misused, which names them."""
    from pulsarbox.server.process.memory_box_entry import entries, pid_of
    from pulsarbox.server.process.runtime_file import read

    found = [running for path in entries() if (running := read(path, pid_of(path))) is not None]
    if len(found) > 1:
        usual = [running for running in found if running.port == _SERVICE.port]
        if not usual:
            told = "; ".join(f"process {each.pid}: {each.local_url(False)}, {each.local_url(True)}" for each in found)
            raise Misused(f"several boxes run in memory ({told}): name one with --url or --admin-url")
        found = usual
    return (found[0], f"the box in memory, process {found[0].pid}") if found else None


def _target(door: _Door, url: str, origin: str) -> Target:
    scheme, port = door.scheme, door.port
    found, mark, rest = url.strip().partition("://")
    looks = f"it looks like {scheme}://localhost:{port}"
    if not mark:
        raise Misused(f"{origin}: '{url}' is no URL: {looks}")
    if found == door.secure:
        scheme, port = found, door.tls_port
    if found != scheme:
        raise Misused(f"{origin}: '{url}' has the scheme {found}: {looks}")
    rest = rest.rstrip("/")
    hosts = tuple(_host_and_port(each, port, f"{origin}: '{url}'", looks) for each in rest.split(","))
    return Target(f"{scheme}://{rest}", origin, hosts)


def _host_and_port(text: str, default: int, where: str, looks: str) -> tuple[str, int]:
    """``host``, ``host:port``, ``[::1]:port``."""
    if text.startswith("["):
        host, bracket, after = text[1:].partition("]")
        number = after.removeprefix(":") if after else ""
        fits = bool(bracket) and (not after or after.startswith(":"))
    else:
        host, _, number = text.partition(":")
        fits = True
    if not fits or not host or set(host) & set("/?#@ ") or (number and not (number.isascii() and number.isdigit())):
        raise Misused(f"{where} does not name a host and a port: {looks}")
    if number and not 0 < int(number) < 65536:
        raise Misused(f"{where}: {number} is no port: {looks}")
    return host, int(number) if number else default
