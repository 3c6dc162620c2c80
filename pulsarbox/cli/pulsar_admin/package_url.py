"""Names of packages: ``type://tenant/namespace/name@version``."""

from typing import Final, NamedTuple

from pulsarbox.cli.common.terminal_text import clean
from pulsarbox.names import PACKAGE_TYPES

_LATEST: Final = "latest"


class PackageUrl(NamedTuple):
    """A package, as in the paths of the Admin API."""

    kind: str
    """``function``, ``sink`` or ``source``."""
    tenant: str
    namespace: str
    """Without the tenant."""
    name: str
    version: str
    text: str
    """The name as given."""

    @classmethod
    def parsed(cls, text: str) -> "PackageUrl":
        """Parse a name; without a version, it is ``latest``. Raises ValueError."""
        kind, mark, rest = text.partition("://")
        place, _, version = rest.partition("@")
        words = place.split("/")
        if not mark or len(words) != 3 or "@" in version or not all(words):
            raise ValueError(f"invalid package '{clean(text)}': expected type://tenant/namespace/name@version")
        if kind.lower() not in PACKAGE_TYPES:
            raise ValueError(f"unknown package type '{clean(kind)}': expected one of {', '.join(PACKAGE_TYPES)}")
        tenant, namespace, name = words
        return cls(kind.lower(), tenant, namespace, name, version or _LATEST, text)

    def __str__(self) -> str:
        return self.text

    def path(self, version: bool) -> tuple[str, ...]:
        """Return the segments of its path, with or without the version."""
        words = (self.kind, self.tenant, self.namespace, self.name)
        return (*words, self.version) if version else words
