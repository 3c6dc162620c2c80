"""Names of packages: ``type://tenant/namespace/name@version``. The rules and messages are those of Pulsar 4.2."""

import re
from typing import Final, NamedTuple

from pulsarbox.errors import PreconditionFailed
from pulsarbox.names import PACKAGE_TYPES, check_entity_name
from pulsarbox.storage.catalog import package_key

NAME_MAX: Final = 255
"""Maximum characters of a name and of a version; Pulsar's file systems have the same limit."""
_UNFIT: Final = re.compile(r"[@\x00-\x1f\x7f\ud800-\udfff]")


class PackageName(NamedTuple):
    """The name of one version of a package."""

    kind: str
    """One of ``PACKAGE_TYPES``."""
    namespace: str
    """``tenant/namespace``."""
    name: str
    version: str

    @classmethod
    def of(cls, kind: str, tenant: str, namespace: str, name: str, version: str = "") -> "PackageName":
        """Return the name with these parts. Raises PreconditionFailed."""
        made = cls(type_of(kind), namespace_of(tenant, namespace), name, version)
        for part in (name, version):
            if _UNFIT.search(part) or len(part) > NAME_MAX:
                raise PreconditionFailed(
                    f"Invalid package name {str(made)[:400]!r}: a name and a version have at most {NAME_MAX}"
                    " characters, none of them @ or a control character"
                )
        if not name or "/" in name:
            raise PreconditionFailed(f"Invalid package name {str(made)[:400]!r}: a name is not empty and has no slash")
        return made

    @property
    def key(self) -> str:
        """The key of its row."""
        return package_key(self.namespace, self.kind, self.name, self.version)

    def __str__(self) -> str:
        return f"{self.kind}://{self.namespace}/{self.name}@{self.version}"


def type_of(text: str) -> str:
    """Return the type of packages that a path names. Raises PreconditionFailed."""
    kind = text.lower()
    if kind not in PACKAGE_TYPES:
        raise PreconditionFailed(f"Invalid package domain: {text[:40]!r}; expected {', '.join(PACKAGE_TYPES)}")
    return kind


def namespace_of(tenant: str, namespace: str) -> str:
    """Return ``tenant/namespace``. Raises PreconditionFailed if it is no valid name."""
    return "/".join(check_entity_name("Namespace", part) for part in (tenant, namespace))
