"""Requests of ``status`` and ``doctor`` to the box of a data directory, with the secret of its runtime file."""

from typing import TYPE_CHECKING, Any

from pulsarbox.config.setting import OFF

if TYPE_CHECKING:
    from pulsarbox.client.admin import Admin
    from pulsarbox.server.process.runtime_file import RuntimeFile

SECONDS = 5.0
"""Timeout of a request."""


def admin_of(running: "RuntimeFile") -> "Admin":
    """Return a client of the box; it connects with the first request."""
    from pulsarbox.client.admin import Admin
    from pulsarbox.client.credentials import Credentials

    secure = running.web_port == OFF
    place = (running.host, running.web_tls_port if secure else running.web_port)
    known = Credentials(pinned=running.certificate, operator=running.operator)
    return Admin([place], SECONDS, secure=secure, credentials=known)


def ensemble_of(running: "RuntimeFile") -> dict[str, Any] | None:
    """Return the status of the data directories; None if there is only one. Raises PulsarBoxError."""
    with admin_of(running) as admin:
        document: dict[str, Any] = admin.own("/ensemble")
    return document if document["several"] else None
