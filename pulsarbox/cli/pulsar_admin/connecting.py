"""Connection of `pulsarbox admin`: options, environment, context, Pulsar's client.conf."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pulsarbox.cli.common.exits import Misused
from pulsarbox.cli.common.terminal_text import clean, notify
from pulsarbox.cli.connect.target import ADMIN_VARIABLE, TargetOptions, admin_target
from pulsarbox.cli.pulsar_admin.session import Session
from pulsarbox.client.transport.web import Web

CONF_VARIABLE: Final = "PULSAR_CLIENT_CONF"
SECONDS: Final = 300.0
"""Default of --request-timeout, as in pulsar-admin."""


@contextmanager
def session_for(options: dict[str, Any]) -> Iterator[Session]:
    """Open a session with the broker named by the common options. Raises Misused, Unreachable."""
    file = client_conf(options.get("client_conf"))
    url = options.get("admin_url")
    if url is None and options.get("data_dir") is None and not os.environ.get(ADMIN_VARIABLE):
        url = file.get("webServiceUrl") or None
    target = admin_target(TargetOptions(None, url, options.get("config_file"), options.get("data_dir"), options))
    seconds = float(options.get("request_timeout") or SECONDS)
    web = Web(
        target.hosts,
        secure=target.secure,
        credentials=target.credentials(file=file),
        seconds=seconds,
        warn=notify,
    )
    try:
        yield Session(web, target, seconds)
    finally:
        web.close()


def client_conf(path: Path | None) -> dict[str, str]:
    """Return the settings of client.conf, named by the option or PULSAR_CLIENT_CONF; empty without either."""
    named = path or (Path(os.environ[CONF_VARIABLE]) if os.environ.get(CONF_VARIABLE) else None)
    if named is None:
        return {}
    try:
        text = named.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Misused(f"cannot read {named}: {error}") from None
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith(("#", "!")):
            continue
        key, mark, value = line.partition("=")
        if not mark:
            notify(f"warning: {named}:{number}: expected name=value, not: {clean(line)}")
            continue
        found[key.strip()] = value.strip()
    return found
