"""The broker of a command: ``--url``, ``--admin-url``, and their fallbacks.

In order of precedence: the option; PULSARBOX_SERVICE_URL or PULSARBOX_ADMIN_URL; the current context; the box that runs
on the data directory; this user's box with --memory; the default ports on this machine. The broker may be a box or
Apache Pulsar. If only one of the two URLs is named, the other is that of the same broker: ``counterpart_url``.
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
from pulsarbox.cli.connect.connection_option import ConnectionOption
from pulsarbox.cli.process.directory_options import config_option, data_directory
from pulsarbox.client.errors import NotConnected

if TYPE_CHECKING:
    from pulsarbox.client.credentials import Credentials
    from pulsarbox.server.process.runtime_file import RuntimeFile

SERVICE_VARIABLE: Final = "PULSARBOX_SERVICE_URL"
ADMIN_VARIABLE: Final = "PULSARBOX_ADMIN_URL"
CONTEXT_ORIGIN: Final = "the current context"
DEFAULT_ORIGIN: Final = "the default"
DEFAULT_SERVICE: Final = "pulsar://localhost:6650"
DEFAULT_ADMIN: Final = "http://localhost:8080"

_option: Final = functools.partial(click.option, cls=ConnectionOption)
_DATA_DIR: Final = _option(
    "--data-dir", metavar="DIR", help="Connect to the box of this data directory (dataDirectory)."
)
_CONFIG: Final = config_option(cls=ConnectionOption)
_URL: Final = _option(
    "--url",
    metavar="URL",
    help=f"Service URL, such as {DEFAULT_SERVICE}. [default: {SERVICE_VARIABLE}, else that of the broker with"
    " the admin URL, else the local box]",
)
_ADMIN_URL: Final = _option(
    "--admin-url",
    metavar="URL",
    help=f"Admin URL, such as {DEFAULT_ADMIN}. [default: {ADMIN_VARIABLE}, else that of the broker with"
    " the service URL, else the local box]",
)
TRUST: Final = (
    _option("--token-file", metavar="FILE", help="Authenticate with the token in FILE. [default: PULSARBOX_TOKEN]"),
    _option(
        "--auth-plugin", metavar="NAME", help="Authentication: token, tls, basic. [default: PULSARBOX_AUTH_PLUGIN]"
    ),
    _option("--auth-params", metavar="TEXT", help="Its parameters, or file:PATH. [default: PULSARBOX_AUTH_PARAMS]"),
    _option(
        "--tls-trust-cert-path",
        metavar="FILE",
        help="Trusted CA certificates (PEM). [default: PULSARBOX_TLS_TRUST_CERT_PATH]",
    ),
    _option("--tls-allow-insecure", is_flag=True, help="Accept any server certificate."),
    _option("--tls-enable-hostname-verification", is_flag=True, help="Verify the host name in the certificate."),
)
"""Options for authentication and trust, stored in ``Target.options``."""
TRUST_NAMES: Final = (
    *("token_file", "auth_plugin", "auth_params"),
    *("tls_trust_cert_path", "tls_allow_insecure", "tls_enable_hostname_verification"),
)

_NOTHING: Final[Mapping[str, Any]] = {}


class Target(NamedTuple):
    """A broker, its URL and the origin of that URL."""

    url: str
    """URL without a trailing slash."""
    origin: str
    """Source of the URL: ``--url``, ``PULSARBOX_SERVICE_URL``, ``the box on data``, ``the default``."""
    hosts: tuple[tuple[str, int], ...]
    """Hosts and ports of the URL, in order."""
    certificate: str = ""
    """Certificate file of a local box, which clients pin."""
    operator: str = ""
    """Operator secret from the data directory of a local box; empty without any, or without access to it."""
    directory: str = ""
    """Data directory of a local box; empty for any other broker."""
    options: Mapping[str, Any] = _NOTHING
    """Options of the command line for authentication and trust."""
    by_context: bool = False
    """Whether the current context names the broker, so that its credentials apply."""
    guessed: bool = False
    """Whether the port is a guess. No secret is sent to it."""

    def __repr__(self) -> str:  # without secrets
        return f"<Target: {self.url} ({self.origin})>"

    @property
    def secure(self) -> bool:
        """Whether the URL uses TLS."""
        return self.url.startswith(("pulsar+ssl:", "https:"))

    def credentials(self, options: dict[str, Any] | None = None, file: dict[str, str] | None = None) -> "Credentials":
        """Return the credentials for this broker; see ``credentials_for``.

        Raises Misused, also if a secret is configured and the port is a guess.
        """
        from pulsarbox.cli.connect.credentials import credentials_for

        made = credentials_for({**self.options, **(options or {})}, file or {}, self)
        if self.guessed and made.secret:
            raise Misused(
                f"credentials are not sent to {self.url}: its port is a guess ({self.origin}); set the Admin URL with"
                f" {_ADMIN.option}, {ADMIN_VARIABLE} or in the context"
            )
        return made._replace(pinned=self.certificate) if self.certificate and self.secure else made

    def unreachable(self, reason: str) -> Failed:
        """Return the error for a failed or lost connection, with advice."""
        return Unreachable(f"cannot connect to {self.url} ({self.origin}): {reason}; {self._advice(reason)}")

    def silent(self, seconds: float) -> Failed:
        """Return the error for a response timeout, with advice."""
        return TimedOut(f"no response from {self.url} ({self.origin}) within {seconds:g} s; {self._advice()}")

    def _advice(self, reason: str = "") -> str:
        if "certificate" in reason and self.secure:
            return "set the trusted certificates with --tls-trust-cert-path (docs/tls.md)"
        if "EOF occurred" in reason or "unexpected eof" in reason:
            return f"this may be a port without TLS: {self.url.replace('+ssl', '').replace('https', 'http')}"
        option = "--url" if self.url.startswith("pulsar") else "--admin-url"
        return f"see `pulsarbox status`, start a box with `pulsarbox start --detach`, or select a broker with {option}"


def service_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --url, --data-dir and --config to a command, which gets a ``Target`` as ``service``.

    Its exceptions map to exit codes as in ``exits.run``. This applies to the other decorators, too.
    """
    return _with_directory(_URL(_called_with(command, service=True, admin=False)))


def admin_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --admin-url, --data-dir and --config to a command, which gets a ``Target`` as ``admin``."""
    return _with_directory(_ADMIN_URL(_called_with(command, service=False, admin=True)))


def late_admin_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Like ``admin_options``, but ``admin`` is a function that resolves the ``Target``."""
    return _with_directory(_ADMIN_URL(_called_with(command, service=False, admin=True, late=True)))


def service_and_admin_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add both URLs, --data-dir and --config to a command, which gets ``service`` and ``admin``."""
    return _with_directory(_URL(_ADMIN_URL(_called_with(command, service=True, admin=True))))


def service_and_late_admin_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Like ``service_and_admin_options``, but ``admin`` is a function that resolves the ``Target``."""
    return _with_directory(_URL(_ADMIN_URL(_called_with(command, service=True, admin=True, late=True))))


def late_service_and_admin_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Like ``service_and_admin_options``, but both are functions that resolve the ``Target``. The command also gets
    ``data_dir``, whether or not a box runs on it."""

    @functools.wraps(command)
    def called(
        *args: Any,
        config_file: Path | None,
        data_dir: str | None,
        url: str | None,
        admin_url: str | None,
        **kwargs: Any,
    ) -> Any:
        options = {name: kwargs.pop(name) for name in TRUST_NAMES}
        given = TargetOptions(url, admin_url, config_file, data_dir, options)
        targets = {"service": lambda: service_target(given), "admin": lambda: admin_target(given)}
        return run(command, *args, **targets, data_dir=data_dir, **kwargs)

    return _with_directory(_URL(_ADMIN_URL(called)))


def _with_directory(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(TRUST):
        command = option(command)
    return _DATA_DIR(_CONFIG(command))


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

        given = TargetOptions(url, admin_url, config_file, data_dir, options)

        def find() -> Target:
            return _find(_ADMIN, given, os.environ)

        if service:
            kwargs["service"] = _find(_SERVICE, given, os.environ)
        if admin:
            kwargs["admin"] = find if late else find()
        return run(_placed(command, kwargs.get("service")), *args, **kwargs)

    return called


def _placed(command: Callable[..., Any], service: Target | None) -> Callable[..., Any]:
    """Wrap a command to report an unreachable broker with the origin of its URL."""

    def placed(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except NotConnected as error:
            if service is None:
                raise
            raise service.unreachable(str(error)) from error

    return placed


class TargetOptions(NamedTuple):
    """Command line options that select the broker."""

    url: str | None = None
    admin_url: str | None = None
    config_file: Path | None = None
    data_dir: str | None = None
    options: Mapping[str, Any] = _NOTHING
    """See ``Target.options``."""
    seconds: float = 10.0
    """Timeout of the request for the broker's other URL."""


_NOTHING_GIVEN: Final = TargetOptions()


def service_target(given: TargetOptions = _NOTHING_GIVEN, environ: Mapping[str, str] = os.environ) -> Target:
    """Return the broker for the Pulsar protocol. Raises Misused for an invalid URL."""
    return _find(_SERVICE, given, environ)


def admin_target(given: TargetOptions = _NOTHING_GIVEN, environ: Mapping[str, str] = os.environ) -> Target:
    """Return the broker for the Admin API. Raises Misused for an invalid URL."""
    return _find(_ADMIN, given, environ)


def is_served(seconds: float = 0.3) -> bool:
    """Return whether the broker that commands select without options accepts connections."""
    import socket

    try:
        hosts = admin_target().hosts
    except Misused:  # several boxes
        return True
    except Failed:
        return False
    for host in hosts:
        with contextlib.suppress(OSError), socket.create_connection(host, seconds):
            return True
    return False


class _Door(NamedTuple):
    """One of the two services of a broker, with the option, variable and field that name it."""

    option: str
    variable: str
    field: str
    """Field of a context."""
    default: str
    scheme: str
    secure: str
    """Scheme with TLS."""
    port: int
    tls_port: int


_SERVICE: Final = _Door("--url", SERVICE_VARIABLE, "url", DEFAULT_SERVICE, "pulsar", "pulsar+ssl", 6650, 6651)
_ADMIN: Final = _Door("--admin-url", ADMIN_VARIABLE, "admin_url", DEFAULT_ADMIN, "http", "https", 8080, 443)


def _find(door: _Door, given: TargetOptions, environ: Mapping[str, str]) -> Target:
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


def _named(door: _Door, given: TargetOptions, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the URL of the option or the variable, and its source; None without either."""
    url = given.url if door is _SERVICE else given.admin_url
    if url is not None:
        if given.data_dir is not None:
            raise Misused(f"{door.option} and --data-dir cannot be combined: both select a broker")
        return url, door.option
    if given.data_dir is not None:  # options take precedence over the environment
        return None
    return (environ[door.variable], door.variable) if environ.get(door.variable) else None


def _counterpart(door: _Door, named: Target, given: TargetOptions) -> Target:
    """Return the other URL of a named broker. Raises Misused if it is unknown."""
    from pulsarbox.cli.connect import counterpart_url

    if door is _SERVICE:
        url, guessed = counterpart_url.service_url_of(named, given.seconds), False
    else:
        url, guessed = counterpart_url.admin_url_of(named, _boxes(given.config_file), given.seconds)
    found = _target(door, url, counterpart_url.origin_of(named))
    return found._replace(options=named.options, by_context=named.by_context, guessed=guessed)


def _of_this_machine(door: _Door, given: TargetOptions) -> Target:
    found = _of_the_box(given.config_file, given.data_dir) or _in_memory()
    if found is None:
        return _target(door, door.default, DEFAULT_ORIGIN)
    running, origin = found
    target = _target(door, running.local_url(door is _ADMIN), origin)
    return target._replace(certificate=running.certificate, operator=running.operator, directory=running.data)


def _boxes(config_file: Path | None) -> "Iterator[RuntimeFile]":
    """Yield the known boxes on this machine: that of the data directory, and those in memory."""
    from pulsarbox.server.process.memory_box_entry import entries, pid_of
    from pulsarbox.server.process.runtime_file import read

    with contextlib.suppress(Unreachable):  # the box is starting
        found = _of_the_box(config_file, None)
        if found is not None:
            yield found[0]
    yield from (running for path in entries() if (running := read(path, pid_of(path))) is not None)


def current_context(environ: Mapping[str, str] = os.environ) -> dict[str, Any] | None:
    """Return the fields of the current context, None without any. Raises NotThere, Misused."""
    from pulsarbox.cli.connect import context_store

    if not environ.get(context_store.VARIABLE) and not context_store.path(environ).exists():
        return None
    found = context_store.current(environ)
    return None if found is None else found[1]


def checked_urls(context: Mapping[str, str]) -> None:
    """Raise Misused for an invalid URL of a context."""
    for door in (_SERVICE, _ADMIN):
        if context.get(door.field):
            _target(door, context[door.field], door.option)


def _of_the_box(config_file: Path | None, data_dir: str | None) -> "tuple[RuntimeFile, str] | None":
    """Return the box that runs on the data directory, None without any. Raises Unreachable if ``data_dir`` is given."""
    from pulsarbox.cli.process.lock_holder import Unreadable, find
    from pulsarbox.server.process.runtime_file import read

    directory = data_directory(config_file, data_dir)
    try:
        found = find(directory)
    except Unreadable:
        if data_dir is None:  # the directory was not named
            return None
        raise
    if found is None:
        if data_dir is None:
            return None
        where = shlex.quote(data_dir)
        raise Unreachable(
            f"no box is running on {directory}: start it with `pulsarbox start --detach --data-dir {where}`"
        )
    running = read(directory, found.pid)
    if running is None:
        raise Unreachable(f"the box on {directory} (process {found.pid or 'unknown'}) is not ready yet: try again")
    return running, f"the box on {directory}"


def _in_memory() -> "tuple[RuntimeFile, str] | None":
    """Return this user's in-memory box; of several, the one on the default port. Raises Misused without that one."""
    from pulsarbox.server.process.memory_box_entry import entries, pid_of
    from pulsarbox.server.process.runtime_file import read

    found = [running for path in entries() if (running := read(path, pid_of(path))) is not None]
    if len(found) > 1:
        usual = [running for running in found if running.port == _SERVICE.port]
        if not usual:
            told = "; ".join(f"process {each.pid}: {each.local_url(False)}, {each.local_url(True)}" for each in found)
            raise Misused(f"several boxes run in memory ({told}): select one with --url or --admin-url")
        found = usual
    return (found[0], f"the box in memory, process {found[0].pid}") if found else None


def _target(door: _Door, url: str, origin: str) -> Target:
    scheme, port = door.scheme, door.port
    found, mark, rest = url.strip().partition("://")
    looks = f"expected a URL such as {scheme}://localhost:{port}"
    if not mark:
        raise Misused(f"{origin}: invalid URL '{url}': {looks}")
    if found == door.secure:
        scheme, port = found, door.tls_port
    if found != scheme:
        raise Misused(f"{origin}: invalid scheme {found} in '{url}': {looks}")
    rest = rest.rstrip("/")
    hosts = tuple(_host_and_port(each, port, f"{origin}: '{url}'", looks) for each in rest.split(","))
    return Target(f"{scheme}://{rest}", origin, hosts)


def _host_and_port(text: str, default: int, where: str, looks: str) -> tuple[str, int]:
    """Parse ``host``, ``host:port`` or ``[::1]:port``. Raises Misused."""
    if text.startswith("["):
        host, bracket, after = text[1:].partition("]")
        number = after.removeprefix(":") if after else ""
        fits = bool(bracket) and (not after or after.startswith(":"))
    else:
        host, _, number = text.partition(":")
        fits = True
    if not fits or not host or set(host) & set("/?#@ ") or (number and not (number.isascii() and number.isdigit())):
        raise Misused(f"{where} has no valid host and port: {looks}")
    if number and not 0 < int(number) < 65536:
        raise Misused(f"{where}: invalid port {number}: {looks}")
    return host, int(number) if number else default
