"""Packages: files with the code of functions, sinks and sources, stored and returned as they are.

Codes and shapes are those of Pulsar 4.2; see docs/COMPATIBILITY.md for the differences.
"""

from collections.abc import Iterable
from typing import Any, Final

from pulsarbox.broker.packages.package_name import PackageName, namespace_of, type_of
from pulsarbox.clock import Now
from pulsarbox.errors import BadRequest
from pulsarbox.server.http.framework.cooperative_work import in_turns
from pulsarbox.server.http.framework.request import (
    DONE,
    DeferredAnswer,
    Download,
    HttpRequest,
    HttpResponse,
    answer,
)
from pulsarbox.server.http.framework.routes import HttpRoute, Permission
from pulsarbox.server.http.resources.package_metadata import NO_METADATA, parse_metadata, shown_metadata
from pulsarbox.server.http.resources.package_upload import PackageForm

_AT_ONCE: Final = 500
"""Names listed per turn."""


def names(call: HttpRequest) -> DeferredAnswer:
    """Return the names of the packages of a type in a namespace."""
    packages, kind = call.broker.packages, type_of(call.path["type"])
    packages.check_enabled()
    return _listed(call, packages.names(namespace_of(call.path["tenant"], call.path["namespace"]), kind))


def versions(call: HttpRequest) -> DeferredAnswer:
    """Return the versions of a package; none for an unknown one."""
    name, packages = _name(call), call.broker.packages
    packages.check_enabled()
    return _listed(call, packages.versions(name))


def _listed(call: HttpRequest, found: Iterable[str]) -> DeferredAnswer:
    """Return texts without duplicates."""
    unique: dict[str, None] = {}

    def add(text: str, now: Now) -> None:
        unique[text] = None

    return in_turns(call, found, add, lambda now, later: later.complete(answer(list(unique))), _AT_ONCE)


def metadata(call: HttpRequest) -> HttpResponse:
    """Return the metadata of a package."""
    name = _enabled(call)
    return answer(shown_metadata(call.broker.packages.metadata(name)))


def set_metadata(call: HttpRequest) -> HttpResponse:
    """Replace the metadata of a package."""
    name = _enabled(call)
    value = call.json()
    if value is None:
        raise BadRequest(NO_METADATA)
    call.broker.packages.set_metadata(name, parse_metadata(value), call.now)
    return DONE


def upload(call: HttpRequest) -> PackageForm:
    """Store a package from a form with its metadata and its file."""
    name = _enabled(call)
    return PackageForm(call.broker.packages.begin_upload(name))


def download(call: HttpRequest) -> Download:
    """Return the file of a package."""
    name = _enabled(call)
    reader = call.broker.packages.reader(name)
    return Download(reader.size, reader.read)


def delete(call: HttpRequest) -> HttpResponse:
    """Delete a version of a package."""
    name = _enabled(call)
    call.broker.packages.delete(name, call.now)
    return DONE


def _enabled(call: HttpRequest) -> PackageName:
    """Return the package of the path. Raises PreconditionFailed, and ServiceNotReady if packages are disabled."""
    name = _name(call)
    call.broker.packages.check_enabled()
    return name


def _name(call: HttpRequest) -> PackageName:
    path: Any = call.path
    return PackageName.of(path["type"], path["tenant"], path["namespace"], path["packageName"], path.get("version", ""))


_PACKAGES: Final = "/admin/v3/packages/{type}/{tenant}/{namespace}"
_VERSION: Final = _PACKAGES + "/{packageName}/{version}"

ROUTES = (
    HttpRoute("GET", _PACKAGES, Permission.PACKAGES, names),
    HttpRoute("GET", f"{_PACKAGES}/{{packageName}}", Permission.PACKAGES, versions),
    HttpRoute("GET", f"{_VERSION}/metadata", Permission.PACKAGES, metadata),
    HttpRoute("PUT", f"{_VERSION}/metadata", Permission.PACKAGES, set_metadata),
    HttpRoute("POST", _VERSION, Permission.PACKAGES, upload, streams_body=True),
    HttpRoute("GET", _VERSION, Permission.PACKAGES, download),
    HttpRoute("DELETE", _VERSION, Permission.PACKAGES, delete),
)
