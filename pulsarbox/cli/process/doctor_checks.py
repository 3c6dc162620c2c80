"""Checks of `pulsarbox doctor`, each with a state and, if needed, advice."""

import errno
import os
import re
import shutil
import socket
import sys
import time
from collections.abc import Callable, Collection, Iterator
from importlib import metadata
from pathlib import Path
from typing import Final, NamedTuple

from pulsarbox.cli.common.terminal_text import counted, megabytes
from pulsarbox.cli.process.banner import open_to_others
from pulsarbox.cli.process.doctor_check import FAIL, OK, WARN, Check
from pulsarbox.cli.process.doctor_directories import directory_checks
from pulsarbox.cli.process.lock_holder import Unreadable, find
from pulsarbox.cli.process.running_box import admin_of, ensemble_of
from pulsarbox.cli.process.setting_options import file_used
from pulsarbox.config import ConfigError, Settings, Value, load
from pulsarbox.config.cross_checks import uses_tls
from pulsarbox.config.setting import OFF
from pulsarbox.errors import PulsarBoxError
from pulsarbox.server.network.listeners import advice_on
from pulsarbox.server.process.disk_speed import SLOW_MS, percentile, sync_times
from pulsarbox.server.process.home_directory import home_of_box
from pulsarbox.server.process.port_owner import described, listener
from pulsarbox.server.process.rlimit import FILES_MIN, WAY_OUT, file_limit, too_few
from pulsarbox.server.process.runtime_file import RuntimeFile, read

SYNCS: Final = 48
TAIL_MS: Final = 100.0
"""99th percentile of sync times above which to warn, because some receipts take as long."""
FREE_MIN: Final = 256 << 20
FREE_WANTED: Final = 2 << 30
_PYTHON_MIN: Final = (3, 11)
_REQUIREMENT: Final = re.compile(r"(?P<name>[\w.-]+)(?P<rest>[^;]*)(?:;.*extra == ['\"](?P<extra>[\w-]+)['\"])?.*")
_LEAST: Final = re.compile(r">=\s*([\d.]+)")
_WHAT_FOR: Final = {
    "fast": "a faster event loop",
    "codecs": "LZ4 and SNAPPY in commands",
    "serve": "`pulsarbox top --serve`",
    "sql": "`pulsarbox sql`",
    "spark": "Spark, `pulsarbox pipeline`",
    "connect": "Spark Connect",
    "iceberg": "Iceberg tables",
}
"""Features of the optional packages, by the name with which pip installs them: ``pulsarbox[fast]``."""
_NETWORK_DISKS: Final = ("nfs", "cifs", "smb", "fuse", "9p")


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
        advice = (
            "fix the configuration; the other checks use the defaults (`pulsarbox config check FILE` lists all errors)"
        )
        yield Check("configuration", FAIL, str(error), advice)
    else:
        settings = loaded.settings
        text = f"from {file_used(config_file) or 'the defaults'}"
        ignored = f", {counted(len(loaded.warnings), 'key')} without effect" if loaded.warnings else ""
        advice = "`pulsarbox config check FILE` lists them" if ignored else ""
        yield Check("configuration", WARN if ignored else OK, text + ignored, advice)
    patient = Patient(settings, _home(settings))
    for check in CHECKS:
        yield from check(patient)


def _home(settings: Settings) -> Path:
    return home_of_box(settings) if settings.dataDirectories else Path(settings.dataDirectory)


def python(_: Patient) -> Iterator[Check]:
    """Check the Python version."""
    text = f"{sys.version.split()[0]}, {sys.executable}"
    good = sys.version_info >= _PYTHON_MIN
    wanted = ".".join(map(str, _PYTHON_MIN))
    yield Check("python", OK if good else FAIL, text, "" if good else f"install Python {wanted} or newer")


def packages(_: Patient) -> Iterator[Check]:
    """Check the required packages, their versions, and their compiled extensions; name the absent optional ones."""
    missing: list[str] = []
    absent: set[str] = set()
    for requirement in _requirements():
        match = _REQUIREMENT.fullmatch(requirement)
        if match is None or not (problem := _problem(match["name"], _LEAST.search(match["rest"]))):
            continue
        if match["extra"]:
            absent.add(match["extra"])
        else:
            missing.append(problem)
    if missing:
        yield Check(
            "packages", FAIL, f"missing: {', '.join(missing)}", "`pip install pulsarbox`, or in a checkout `make`"
        )
        return
    slow = list(_without_their_compiled_half())
    advice = "install wheels with compiled extensions for this platform: they are much faster" if slow else ""
    text = "; ".join(["all required packages are installed", *slow, *_optional(absent)])
    yield Check("packages", WARN if slow else OK, text, advice)


def _problem(name: str, least: re.Match[str] | None) -> str:
    """Return what is wrong with a package; empty if it is installed in the version ``least`` or a newer one."""
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return name
    is_old = least is not None and _numbers(version) < _numbers(least[1])
    return f"{name} {least[1]} (found {version})" if least is not None and is_old else ""


def _optional(absent: Collection[str]) -> Iterator[str]:
    """Yield how to install the optional packages that are absent, and what they are for."""
    known = [*(each for each in _WHAT_FOR if each in absent), *sorted(set(absent) - set(_WHAT_FOR))]
    if known:
        names = ", ".join(f"{each} ({_WHAT_FOR[each]})" if each in _WHAT_FOR else each for each in known)
        yield f"optional, by `pip install 'pulsarbox[NAME]'`: {names}"


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
    yield Check("files", state, f"at most {limit} open files", problem and WAY_OUT)


def data_directory(patient: Patient) -> Iterator[Check]:
    """Check access to the data directory, and report the box that runs on it."""
    directory = patient.directory
    if not directory.exists():
        above = _existing(directory)
        good = above.is_dir() and os.access(above, os.W_OK | os.X_OK)
        text = (
            f"{directory} does not exist; it is created on start"
            if good
            else f"{directory} cannot be created in {above}"
        )
        advice = "" if good else "choose another directory with --data-dir, or grant this user write access"
        yield Check("data", OK if good else FAIL, text, advice)
    elif not directory.is_dir() or not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        text = f"{directory} is not a directory this user can read and write"
        yield Check("data", FAIL, text, "run this as the user of the box, or choose another directory with --data-dir")
    elif (found := find(directory)) is not None:
        yield Check("data", OK, f"{directory}, in use by a running box: {described(found.pid)}")
    elif (directory / "INSTANCE").exists() or not any(directory.iterdir()):
        yield Check("data", OK, f"{directory}, not in use")
    else:
        text = f"{directory} is not empty, and is not the data directory of a box"
        yield Check("data", WARN, text, "choose another directory with --data-dir, or check the path")


def disk(patient: Patient) -> Iterator[Check]:
    """Check free space and the type of file system."""
    place = _existing(patient.directory)
    free, kind = shutil.disk_usage(place).free, _file_system(place)
    text = f"{megabytes(free)} free on {kind or 'the file system'} of {place}"
    if free < FREE_MIN:
        yield Check("disk", FAIL, text, "free disk space: publishing is rejected when the disk is full")
    elif free < FREE_WANTED:
        yield Check("disk", WARN, text, "free disk space soon: publishing is rejected when the disk is full")
    elif kind in ("tmpfs", "ramfs"):
        yield Check(
            "disk", WARN, text, "a memory file system loses all data at shutdown: choose a disk with --data-dir"
        )
    elif kind.startswith(_NETWORK_DISKS):
        yield Check(
            "disk", WARN, text, "file locks and memory maps are unreliable on network file systems: choose a local disk"
        )
    else:
        yield Check("disk", OK, text)


def sync(patient: Patient) -> Iterator[Check]:
    """Check sync times, which bound the latency of receipts."""
    place = _existing(patient.directory)
    try:
        times = sync_times(place, SYNCS)
    except OSError as error:
        advice = "choose another directory with --data-dir, or grant this user write access"
        yield Check("sync", FAIL, f"cannot write to {place}: {error.strerror}", advice)
        return
    median, tail = percentile(times, 0.5), percentile(times, 0.99)
    text = f"{SYNCS} syncs of 4 KiB: p50 {median:.2f} ms, p99 {tail:.2f} ms"
    slow = median > SLOW_MS or tail > TAIL_MS
    advice = "each receipt waits for a sync: choose a faster disk with --data-dir, or find what else writes to this one"
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
            yield Check("port", OK, f"any free port ({name} is 0)")
        elif port == own:
            yield Check("port", OK, f"{port} ({name}) is served by the running box")
        elif (error := _not_bound(settings.bindAddress, port)) is None:
            yield Check("port", OK, f"{port} ({name}) is free on {settings.bindAddress}")
        else:
            pid = listener(port)
            text = f"{port} ({name}) cannot be bound on {settings.bindAddress}: {error.strerror}"
            text += f"; in use by {described(pid)}" if pid else ""
            yield Check("port", FAIL, text, advice_on(error, option))


def _running(directory: Path) -> RuntimeFile | None:
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
        yield Check("address", OK, f"listens on {', '.join(others)}: other machines can connect, and must authenticate")
    else:
        name = "bindAddress" if others == [settings.bindAddress] else "bindAddress, bindAddresses"
        advice = (
            "authentication is disabled (authenticationEnabled): enable it, or block access from untrusted machines"
        )
        yield Check("address", WARN, f"listens on {', '.join(others)}: other machines can connect ({name})", advice)


def authentication(patient: Patient) -> Iterator[Check]:
    """Check the configuration of authentication."""
    from pulsarbox.server.security.configured import authentication_of

    try:
        found = authentication_of(patient.settings)
    except ConfigError as error:
        yield Check("authentication", FAIL, str(error), "fix the configuration: a box does not start with it")
        return
    if found is None:
        yield Check("authentication", OK, "off: every client may do everything (authenticationEnabled)")
        return
    anonymous = patient.settings.anonymousUserRole
    rest = f"; all other clients have the role {anonymous} (anonymousUserRole)" if anonymous else ""
    yield Check("authentication", OK, f"on: {', '.join(found.methods)}{rest}")


def authorization(patient: Patient) -> Iterator[Check]:
    """Check the configuration of authorization; no result without authentication."""
    settings, name = patient.settings, "authorization"
    if not settings.authenticationEnabled:
        return
    if not settings.authorizationEnabled:
        yield Check(name, OK, "off: every authenticated client may do everything (authorizationEnabled)")
        return
    from pulsarbox.broker.security.authorization import roles_of

    superusers = roles_of(settings.superUserRoles)
    if not superusers:
        yield Check(name, WARN, "no superuser: tenants cannot be created", 'set superUserRoles, such as "admin"')
    elif settings.anonymousUserRole in superusers:
        text = f"unauthenticated clients have the role {settings.anonymousUserRole} (anonymousUserRole), a superuser"
        yield Check(name, WARN, text, "remove that role from superUserRoles")
    else:
        yield Check(name, OK, f"on; superusers: {', '.join(sorted(superusers))}")


def certificate(patient: Patient) -> Iterator[Check]:
    """Check the certificate and its validity; no result without TLS."""
    if not uses_tls(patient.settings):
        return
    from pulsarbox.server.network.certificates import CertificateError, certificate_in, context_of, day

    try:
        context_of(patient.settings)
        found = certificate_in(Path(patient.settings.tlsCertificateFilePath))
    except CertificateError as error:
        advice = "set other files with --tls-cert and --tls-key, or in the configuration (see docs/tls.md)"
        yield Check("certificate", FAIL, str(error), advice)
        return
    now = time.time_ns() // 1_000_000
    text = f"of {found.subject}, {found.warning(now) or f'valid until {day(found.ends)}'}"
    advice = f"renew {patient.settings.tlsCertificateFilePath}: a running box reloads it automatically"
    bad, soon = bool(found.problem(now)), bool(found.warning(now))
    yield Check("certificate", FAIL if bad else WARN if soon else OK, text, advice if soon else "")


def dead_letters(patient: Patient) -> Iterator[Check]:
    """Check that dead letter topics of the running box retain messages; no result if no box answers."""
    running = _running(patient.directory)
    if running is None:
        return
    try:
        with admin_of(running) as admin:
            namespaces = [each for tenant in admin.tenants() for each in admin.namespaces(tenant)]
            topics = [row for each in namespaces for row in admin.dead_letter_topics(each)]
    except PulsarBoxError:
        return
    lost = [row["topic"] for row in topics if row["lost"]]
    if not lost:
        yield Check("dead letters", OK, f"{counted(len(topics), 'dead letter topic')}, retaining all messages")
        return
    text = f"{len(lost)} of {counted(len(topics), 'dead letter topic')} without subscription and retention: {lost[0]}"
    yield Check("dead letters", WARN, text, f"`pulsarbox sub create {lost[0]} NAME --at earliest` retains them")


def directories(patient: Patient) -> Iterator[Check]:
    """Check the data directories of the running box and the copies; no result if it has one, or no box answers."""
    running = _running(patient.directory)
    if running is None:
        return
    try:
        document = ensemble_of(running)
    except PulsarBoxError:
        return
    if document is not None:
        yield from directory_checks(document, patient.settings.ensembleScrubDays)


def loopback(_: Patient) -> Iterator[Check]:
    """Check that 127.0.0.1 and localhost work."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(("127.0.0.1", server.getsockname()[1]), timeout=5).close()
        names = {str(info[4][0]) for info in socket.getaddrinfo("localhost", None, type=socket.SOCK_STREAM)}
    except OSError as error:
        yield Check(
            "loopback",
            FAIL,
            f"cannot connect to 127.0.0.1 or resolve localhost: {error}",
            "check /etc/hosts and `ip a`",
        )
        return
    good = names & {"127.0.0.1", "::1"}
    advice = "" if good else "map localhost to 127.0.0.1 in /etc/hosts; until then use addresses instead of localhost"
    yield Check("loopback", OK if good else WARN, f"works, localhost resolves to {', '.join(sorted(names))}", advice)


def terminal(_: Patient) -> Iterator[Check]:
    """Check the encoding of the terminal."""
    encoding = (sys.stdout.encoding or "unknown").lower()
    size = shutil.get_terminal_size()
    where = f"{size.columns}x{size.lines}, TERM {os.environ.get('TERM', 'not set')}" if sys.stdout.isatty() else "none"
    text = f"{where}; encoding {encoding}" + (", no colour (NO_COLOR)" if os.environ.get("NO_COLOR") else "")
    good = encoding.replace("-", "") == "utf8"
    yield Check("terminal", OK if good else WARN, text, "" if good else "set LANG=C.UTF-8: other characters show as ?")


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
    directories,
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
