"""Checks of `pulsarbox doctor`, each with a state and, if needed, advice."""

import errno
import os
import re
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Final, NamedTuple

from pulsarbox.cli.common.terminal_text import megabytes
from pulsarbox.cli.process.banner import open_to_others
from pulsarbox.cli.process.lock_holder import Unreadable, find
from pulsarbox.cli.process.setting_options import file_used
from pulsarbox.config import ConfigError, Settings, Value, load
from pulsarbox.config.cross_checks import uses_tls
from pulsarbox.config.setting import OFF
from pulsarbox.errors import PulsarBoxError
from pulsarbox.server.network.listeners import advice_on
from pulsarbox.server.process.disk_speed import SLOW_MS, percentile, sync_times
from pulsarbox.server.process.port_owner import described, listener
from pulsarbox.server.process.rlimit import FILES_MIN, WAY_OUT, file_limit, too_few
from pulsarbox.server.process.runtime_file import Running, read

OK: Final = "ok"
WARN: Final = "warn"
FAIL: Final = "fail"

SYNCS: Final = 48
TAIL_MS: Final = 100.0
"""99th percentile of sync times above which to warn, because some receipts take as long."""
FREE_MIN: Final = 256 << 20
FREE_WANTED: Final = 2 << 30
LETTERS_SECONDS: Final = 5.0
"""Timeout for asking a running box about its dead letter topics."""
_PYTHON_MIN: Final = (3, 11)
_REQUIREMENT: Final = re.compile(r"(?P<name>[\w.-]+)\s*(?:>=(?P<version>[\d.]+))?[^;]*(?P<marker>;.*)?")
_WHAT_FOR: Final = {
    "uvloop": "a faster event loop",
    "cramjam": "messages in LZ4 and SNAPPY on the command line",
    "textual-serve": "`pulsarbox top --serve`",
}
_NETWORK_DISKS: Final = ("nfs", "cifs", "smb", "fuse", "9p")


class Check(NamedTuple):
    """Result of one check."""

    name: str
    state: str
    text: str
    advice: str = ""


class Patient(NamedTuple):
    """Input of the checks of one run."""

    settings: Settings
    directory: Path


def all_checks(config_file: Path | None, given: dict[str, Value]) -> Iterator[Check]:
    """Run every check in order. An invalid configuration is replaced by the defaults."""
    settings = Settings()
    try:
        loaded = load(file_used(config_file), given, os.environ)
    except ConfigError as error:
        advice = "put that right; what follows is for the defaults (`pulsarbox config check FILE` lists all mistakes)"
        yield Check("configuration", FAIL, str(error), advice)
    else:
        settings = loaded.settings
        text = f"from {file_used(config_file) or 'the defaults'}"
        ignored = f", {len(loaded.warnings)} keys have no effect here" if loaded.warnings else ""
        advice = "`pulsarbox config check FILE` names them" if ignored else ""
        yield Check("configuration", WARN if ignored else OK, text + ignored, advice)
    patient = Patient(settings, Path(settings.dataDirectory))
    for check in CHECKS:
        yield from check(patient)


def python(_: Patient) -> Iterator[Check]:
    """Check the Python version."""
    text = f"{sys.version.split()[0]}, {sys.executable}"
    good = sys.version_info >= _PYTHON_MIN
    wanted = ".".join(map(str, _PYTHON_MIN))
    yield Check("python", OK if good else FAIL, text, "" if good else f"install Python {wanted} or newer")


def packages(_: Patient) -> Iterator[Check]:
    """Check the required packages, their versions, and their compiled extensions."""
    missing: list[str] = []
    optional: list[str] = []
    for requirement in _requirements():
        match = _REQUIREMENT.fullmatch(requirement)
        if match is None:
            continue
        try:
            version = metadata.version(match["name"])
        except metadata.PackageNotFoundError:
            (optional if match["marker"] else missing).append(match["name"])
            continue
        if match["version"] and _numbers(version) < _numbers(match["version"]):
            missing.append(f"{match['name']} {match['version']} (there is {version})")
    if missing:
        yield Check(
            "packages", FAIL, f"missing: {', '.join(missing)}", "`pip install pulsarbox`, or in a checkout `make`"
        )
        return
    slow = list(_without_their_compiled_half())
    advice = [_how_to_get(optional)] if optional else []
    advice += ["install wheels with compiled code for this system: it is much faster"] if slow else []
    without = [*slow, *([f"{', '.join(optional)} not installed"] if optional else [])]
    text = "all that is needed is there" + "".join(f"; {each}" for each in without)
    yield Check("packages", WARN if without else OK, text, "; ".join(advice))


def _how_to_get(optional: list[str]) -> str:
    uses = ", ".join(f"{name} is for {_WHAT_FOR[name]}" for name in optional if name in _WHAT_FOR)
    return f"`pip install {' '.join(optional)}` where you want it{f': {uses}' if uses else ''}"


def _requirements() -> list[str]:
    try:
        return metadata.requires("pulsarbox") or []
    except metadata.PackageNotFoundError:  # run from source, not installed
        return []


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


def _without_their_compiled_half() -> Iterator[str]:
    import google_crc32c
    from google.protobuf.internal import api_implementation

    if google_crc32c.implementation != "c":
        yield "google-crc32c is not compiled"
    if api_implementation.Type() != "upb":
        yield "protobuf is not compiled"


def files(patient: Patient) -> Iterator[Check]:
    """Check the limit of open files; a start raises the soft limit to the hard one."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limit = file_limit() if hard == resource.RLIM_INFINITY else hard
    problem = too_few(limit, patient.settings)
    state = FAIL if limit < FILES_MIN else WARN if problem else OK
    yield Check("files", state, f"up to {limit} may be open", problem and WAY_OUT)


def data_directory(patient: Patient) -> Iterator[Check]:
    """Check access to the data directory, and report the box that runs on it."""
    directory = patient.directory
    if not directory.exists():
        above = _existing(directory)
        good = above.is_dir() and os.access(above, os.W_OK | os.X_OK)
        text = f"{directory} does not exist, a start makes it" if good else f"{directory} cannot be made in {above}"
        advice = "" if good else "choose another with --data-dir, or give this user the right to write there"
        yield Check("data", OK if good else FAIL, text, advice)
    elif not directory.is_dir() or not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        text = f"{directory} is not a directory that this user can read and write"
        yield Check("data", FAIL, text, "run this as the user of the box, or choose another with --data-dir")
    elif (found := find(directory)) is not None:
        yield Check("data", OK, f"{directory}, a box runs on it: {described(found.pid)}")
    elif (directory / "INSTANCE").exists() or not any(directory.iterdir()):
        yield Check("data", OK, f"{directory}, no box runs on it")
    else:
        text = f"{directory} is not empty, and not the data directory of a box"
        yield Check("data", WARN, text, "choose another with --data-dir, or look whether that is what you mean")


def disk(patient: Patient) -> Iterator[Check]:
    """Check free space and the type of file system."""
    place = _existing(patient.directory)
    free, kind = shutil.disk_usage(place).free, _file_system(place)
    text = f"{megabytes(free)} free on {kind or 'the file system'} of {place}"
    if free < FREE_MIN:
        yield Check("disk", FAIL, text, "make room: publishing is refused when the disk is full")
    elif free < FREE_WANTED:
        yield Check("disk", WARN, text, "make room soon: publishing is refused when the disk is full")
    elif kind in ("tmpfs", "ramfs"):
        yield Check("disk", WARN, text, "this is memory: all is lost with the power; choose a disk with --data-dir")
    elif kind.startswith(_NETWORK_DISKS):
        yield Check("disk", WARN, text, "locks and maps of files are not reliable over a network: choose a local disk")
    else:
        yield Check("disk", OK, text)


def sync(patient: Patient) -> Iterator[Check]:
    """Check sync times, which bound the latency of receipts."""
    place = _existing(patient.directory)
    try:
        times = sync_times(place, SYNCS)
    except OSError as error:
        advice = "choose another with --data-dir, or give this user the right to write there"
        yield Check("sync", FAIL, f"nothing can be written to {place}: {error.strerror}", advice)
        return
    median, tail = percentile(times, 0.5), percentile(times, 0.99)
    text = f"half of {SYNCS} syncs of 4 KiB took up to {median:.2f} ms (p50), 99 % up to {tail:.2f} ms (p99)"
    slow = median > SLOW_MS or tail > TAIL_MS
    advice = "each receipt waits for a sync: choose a faster disk with --data-dir, or see what else writes to this one"
    yield Check("sync", WARN if slow else OK, text, advice if slow else "")


def ports(patient: Patient) -> Iterator[Check]:
    """Check that the ports are free, or served by the running box."""
    settings = patient.settings
    running = _running(patient.directory)
    wanted = (
        ("brokerServicePort", settings.brokerServicePort, "--port", running and running.port),
        ("webServicePort", settings.webServicePort, "--web-port", running and running.web_port),
        ("brokerServicePortTls", settings.brokerServicePortTls, "--tls-port", running and running.tls_port),
        ("webServicePortTls", settings.webServicePortTls, "--web-tls-port", running and running.web_tls_port),
    )
    for name, port, option, own in wanted:
        if port == OFF:
            continue
        if not port:
            yield Check("port", OK, f"any free one ({name} is 0)")
        elif port == own:
            yield Check("port", OK, f"{port} ({name}) is served by the box that runs")
        elif (error := _not_bound(settings.bindAddress, port)) is None:
            yield Check("port", OK, f"{port} ({name}) is free on {settings.bindAddress}")
        else:
            pid = listener(port)
            text = f"{port} ({name}) cannot be had on {settings.bindAddress}: {error.strerror}"
            text += f", by {described(pid)}" if pid else ""
            yield Check("port", FAIL, text, advice_on(error, option))


def _running(directory: Path) -> Running | None:
    """Return the box that serves the directory, None without any or without access to it."""
    try:
        found = find(directory)
    except Unreadable:
        return None
    return read(directory, found.pid) if found is not None else None


def _not_bound(host: str, port: int) -> OSError | None:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        return error
    problem: OSError | None = None
    for family, kind, _, _, address in found:
        try:
            with socket.socket(family, kind) as tried:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    tried.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                tried.bind(address)
        except OSError as error:
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT) or len(found) == 1:
                problem = error
    return problem


def address(patient: Patient) -> Iterator[Check]:
    """Check whether other machines can reach the box."""
    settings = patient.settings
    others = open_to_others(settings)
    if not others:
        yield Check("address", OK, f"listens on {settings.bindAddress} only (bindAddress)")
    elif settings.authenticationEnabled:
        yield Check(
            "address", OK, f"listens on {', '.join(others)}: others can reach it, and have to prove who they are"
        )
    else:
        name = "bindAddress" if others == [settings.bindAddress] else "bindAddress, bindAddresses"
        advice = "there is no authentication (authenticationEnabled): let nobody reach it whom you do not trust"
        yield Check("address", WARN, f"listens on {', '.join(others)}, so others can reach it ({name})", advice)


def authentication(patient: Patient) -> Iterator[Check]:
    """Check the configuration of authentication."""
    from pulsarbox.broker.security.configured import authentication_of

    try:
        found = authentication_of(patient.settings)
    except ConfigError as error:
        yield Check("authentication", FAIL, str(error), "put that right: a box does not start like this")
        return
    if found is None:
        yield Check("authentication", OK, "off: whoever reaches the box may do everything (authenticationEnabled)")
        return
    anonymous = patient.settings.anonymousUserRole
    rest = f", all others are {anonymous} (anonymousUserRole)" if anonymous else ""
    yield Check("authentication", OK, f"clients prove who they are: {', '.join(found.methods)}{rest}")


def authorization(patient: Patient) -> Iterator[Check]:
    """Check the configuration of authorization; no result without authentication."""
    settings, name = patient.settings, "authorization"
    if not settings.authenticationEnabled:
        return
    if not settings.authorizationEnabled:
        yield Check(name, OK, "off: whoever has proved a name may do everything (authorizationEnabled)")
        return
    from pulsarbox.broker.security.authorization import roles_of

    superusers = roles_of(settings.superUserRoles)
    if not superusers:
        yield Check(
            name, WARN, "there is no superuser: nobody can create a tenant", 'set superUserRoles, as in "admin"'
        )
    elif settings.anonymousUserRole in superusers:
        text = f"whoever proves nothing is {settings.anonymousUserRole} (anonymousUserRole), who may do everything"
        yield Check(name, WARN, text, "take that role out of superUserRoles")
    else:
        yield Check(name, OK, f"roles may do what they were granted; superusers: {', '.join(sorted(superusers))}")


def certificate(patient: Patient) -> Iterator[Check]:
    """Check the certificate and its validity; no result without TLS."""
    if not uses_tls(patient.settings):
        return
    from pulsarbox.server.network.certificates import CertificateError, certificate_in, context_of, day

    try:
        context_of(patient.settings)
        found = certificate_in(Path(patient.settings.tlsCertificateFilePath))
    except CertificateError as error:
        advice = "name others with --tls-cert and --tls-key, or in the configuration (see docs/tls.md)"
        yield Check("certificate", FAIL, str(error), advice)
        return
    now = time.time_ns() // 1_000_000
    text = f"of {found.subject}, {found.warning(now) or f'valid until {day(found.ends)}'}"
    advice = f"renew {patient.settings.tlsCertificateFilePath}: a box that runs takes the new one by itself"
    bad, soon = bool(found.problem(now)), bool(found.warning(now))
    yield Check("certificate", FAIL if bad else WARN if soon else OK, text, advice if soon else "")


def dead_letters(patient: Patient) -> Iterator[Check]:
    """Check that dead letter topics of the running box retain messages; no result if no box answers."""
    from pulsarbox.client.admin import Admin
    from pulsarbox.client.credentials import Credentials

    running = _running(patient.directory)
    if running is None:
        return
    try:
        secure = running.web_port == OFF
        place = (running.host, running.web_tls_port if secure else running.web_port)
        known = Credentials(pinned=running.certificate, operator=running.operator)
        with Admin([place], LETTERS_SECONDS, secure=secure, credentials=known) as admin:
            namespaces = [each for tenant in admin.tenants() for each in admin.namespaces(tenant)]
            topics = [row for each in namespaces for row in admin.dead_letter_topics(each)]
    except PulsarBoxError:
        return
    lost = [row["topic"] for row in topics if row["lost"]]
    if not lost:
        yield Check("dead letters", OK, f"{len(topics)} topics are for them, all keep what they are given")
        return
    text = f"{len(lost)} of {len(topics)} topics for them keep none, without subscription and retention: {lost[0]}"
    yield Check("dead letters", WARN, text, f"`pulsarbox sub create {lost[0]} NAME --at earliest` keeps them")


def loopback(_: Patient) -> Iterator[Check]:
    """Check that 127.0.0.1 and localhost work."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(("127.0.0.1", server.getsockname()[1]), timeout=5).close()
        names = {str(info[4][0]) for info in socket.getaddrinfo("localhost", None, type=socket.SOCK_STREAM)}
    except OSError as error:
        yield Check(
            "loopback", FAIL, f"127.0.0.1 or localhost cannot be reached: {error}", "look at /etc/hosts, `ip a`"
        )
        return
    good = names & {"127.0.0.1", "::1"}
    advice = "" if good else "localhost should be 127.0.0.1 in /etc/hosts; until then name addresses, not localhost"
    yield Check("loopback", OK if good else WARN, f"works, localhost is {', '.join(sorted(names))}", advice)


def terminal(_: Patient) -> Iterator[Check]:
    """Check the encoding of the terminal."""
    encoding = (sys.stdout.encoding or "unknown").lower()
    size = shutil.get_terminal_size()
    where = f"{size.columns}x{size.lines}, TERM {os.environ.get('TERM', 'not set')}" if sys.stdout.isatty() else "none"
    text = f"{where}; encoding {encoding}" + (", no colour (NO_COLOR)" if os.environ.get("NO_COLOR") else "")
    good = encoding.replace("-", "") == "utf8"
    yield Check("terminal", OK if good else WARN, text, "" if good else "set LANG=C.UTF-8: other signs show as ?")


CHECKS: Final[tuple[Callable[[Patient], Iterator[Check]], ...]] = (
    python,
    packages,
    files,
    data_directory,
    disk,
    sync,
    ports,
    address,
    authentication,
    authorization,
    certificate,
    dead_letters,
    loopback,
    terminal,
)


def _existing(directory: Path) -> Path:
    """Return the directory, or its nearest existing parent."""
    directory = directory.absolute()
    return next(path for path in (directory, *directory.parents) if path.exists())


def _file_system(place: Path) -> str:
    """Return the type of a file system, empty if unknown."""
    best, kind = "", ""
    try:
        lines = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return ""
    real = str(place.resolve())
    for words in map(str.split, lines):
        mount = words[1].replace("\\040", " ")
        if (real == mount or real.startswith(mount.rstrip("/") + "/")) and len(mount) >= len(best):
            best, kind = mount, words[2]
    return kind
