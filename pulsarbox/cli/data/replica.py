"""``pulsarbox storage serve``: a data directory for a box on another machine."""

import sys
from pathlib import Path
from typing import Any

import click

from pulsarbox.cli.common.terminal_text import notify
from pulsarbox.cli.process.directory_options import CONFIG

DEFAULT_LISTEN = "127.0.0.1:6680"


class ListenAddress(click.ParamType[tuple[str, int]]):
    """HOST:PORT."""

    name = "address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        """See click.ParamType."""
        if isinstance(value, tuple):
            return value
        host, colon, port = str(value).rpartition(":")
        if not colon or not host or not port.isdecimal() or int(port) > 65535:
            self.fail(f"{value!r} is not HOST:PORT, such as {DEFAULT_LISTEN}", param, ctx)
        return host.strip("[]"), int(port)


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@CONFIG
@click.option(
    "--listen",
    metavar="HOST:PORT",
    type=ListenAddress(),
    default=DEFAULT_LISTEN,
    show_default=True,
    help="Address to listen on; port 0: any free port.",
)
@click.option(
    "--secret-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="File with the secret that the box has too (ensembleReplicaSecretFile).",
)
@click.option("--tls-cert", metavar="FILE", help="Server certificate, PEM (tlsCertificateFilePath).")
@click.option("--tls-key", metavar="FILE", help="Private key of the certificate, PEM (tlsKeyFilePath).")
@click.option("--plaintext", is_flag=True, help="Allow connections of other machines without TLS.")
@click.option("--log-level", help="Minimum severity of log messages (logLevel).")
def serve(
    directory: Path,
    config_file: Path | None,
    listen: tuple[str, int],
    secret_file: Path | None,
    tls_cert: str | None,
    tls_key: str | None,
    plaintext: bool,
    log_level: str | None,
) -> None:
    """Serve DIR as a data directory of a box on another machine, in the foreground.

    The box lists it in dataDirectories as replica://HOST:PORT, or with TLS as replica+ssl://HOST:PORT. Each copy is
    confirmed once it is on the disk of DIR. DIR is created if missing. Prints the address once the replica is ready.

    \b
    Exit codes:
      0  stopped cleanly
      1  DIR cannot be used
      2  an option, the configuration or the secret is invalid
      4  another process uses DIR or the port

    \b
    Examples:
      pulsarbox storage serve /disk1/replica --secret-file secret
      pulsarbox storage serve /disk1/replica --secret-file secret --listen 10.0.0.2:6680 \\
          --tls-cert server.crt --tls-key server.key
    """
    from pulsarbox.cli.process.setting_options import loaded_or_exit, overrides

    given = {"tls_cert": tls_cert, "tls_key": tls_key, "log_level": log_level}
    settings = loaded_or_exit(config_file, overrides(given)).settings
    secret = secret_file or (Path(found) if (found := settings.ensembleReplicaSecretFile) else None)
    if secret is None:
        raise click.UsageError("--secret-file or the setting ensembleReplicaSecretFile is required")
    from pulsarbox.server.process.engine_sizes import sizes_of
    from pulsarbox.server.replica.replica_process import ReplicaRefused
    from pulsarbox.server.replica.replica_process import serve as run

    host, port = listen
    try:
        run(directory, host, port, secret, settings, sizes_of(settings), plaintext=plaintext, ready=_ready)
    except ReplicaRefused as refusal:
        notify(str(refusal))
        sys.exit(refusal.code)


def _ready(host: str, port: int) -> None:
    click.echo(f"listening on {f'[{host}]' if ':' in host else host}:{port}")
    sys.stdout.flush()
