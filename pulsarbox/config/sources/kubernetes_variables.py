"""Environment variables that Kubernetes sets in the containers of a namespace, for a Service whose name begins alike.

Source: Kubernetes documentation, "Service: discovering services, environment variables".
"""

import re
from typing import Final

_ENDPOINT: Final = r"(tcp|udp|sctp)://[^\s/]+:\d{1,5}"
_PORT: Final = r"\d{1,5}"
_VALUES: Final = tuple(
    (re.compile(f"[A-Z0-9_]*{name}"), re.compile(value, re.IGNORECASE))
    for name, value in (
        ("SERVICE_HOST", r"[0-9a-f.:]+"),
        (r"SERVICE_PORT(_[A-Z0-9_]+)?", _PORT),
        (r"PORT(_\d+_(TCP|UDP|SCTP))?", _ENDPOINT),
        (r"PORT_\d+_(TCP|UDP|SCTP)_PROTO", "tcp|udp|sctp"),
        (r"PORT_\d+_(TCP|UDP|SCTP)_PORT", _PORT),
        (r"PORT_\d+_(TCP|UDP|SCTP)_ADDR", r"[0-9a-f.:]+"),
    )
)


def describes_a_service(name: str, value: str) -> bool:
    """Return whether a variable, named without the prefix ``PULSARBOX_``, has the form that Kubernetes gives it."""
    return any(names.fullmatch(name) and values.fullmatch(value) for names, values in _VALUES)
