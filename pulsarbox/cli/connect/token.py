"""``pulsarbox token``: create and validate tokens with the keys of the configuration."""

import json
import secrets
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pulsarbox.cli.common.exits import Failed, Misused, run
from pulsarbox.cli.common.lazy_group import SuggestingGroup
from pulsarbox.cli.common.terminal_text import OUTPUT, clean, notify, print_document
from pulsarbox.cli.connect.token_files import read_token, token_options, write
from pulsarbox.cli.process.directory_options import CONFIG

if TYPE_CHECKING:
    from pulsarbox.config import Settings


@click.group(cls=SuggestingGroup, context_settings={"help_option_names": ["-h", "--help"]})
def token() -> None:
    """Create, show and validate authentication tokens.

    Tokens are signed and verified with the keys of the configuration, such as tokenSecretKey. `pulsarbox admin tokens`
    is compatible with Pulsar's own command, and also creates key pairs.

    \b
    Examples:
      pulsarbox token create admin > admin.token
      pulsarbox token create ann --expires 30d --to ann.token
      pulsarbox token validate -f ann.token
    """


_KEY: Final = click.option(
    "--key", metavar="FILE", help="Secret key. [default: tokenSecretKey of the configuration, else your own key]"
)


@token.command()
@click.argument("role")
@click.option("-e", "--expires", metavar="TIME", help="Lifetime: 1h, 30d, 1y. [default: no expiry]")
@_KEY
@click.option("--private-key", metavar="FILE", help="Sign with the private key of a key pair.")
@click.option("-a", "--algorithm", metavar="NAME", help="With --private-key: RS256, ES256, ... [default: by key]")
@click.option("--audience", metavar="TEXT", help="Audience claim. [default: tokenAudience of the configuration]")
@click.option("--to", "file", metavar="FILE", help="Write the token to FILE, readable only by you.")
@CONFIG
@OUTPUT
def create(role: str, output: str, **options: Any) -> None:
    """Create a token for ROLE.

    Creates a missing secret key file, readable only by you: --key, or the file named by tokenSecretKey, or else
    token.key in the directory of contexts.

    \b
    Examples:
      pulsarbox token create admin > admin.token
      pulsarbox token create ann --expires 30d --to ann.token
      pulsarbox token create ann --private-key private.key --algorithm ES256 -o json
    """
    run(_create, role, output, **options)


def _create(
    role: str, output: str, expires: str | None, audience: str | None, file: str | None, **options: Any
) -> None:
    from pulsarbox.cli.pulsar_admin.values import end_of
    from pulsarbox.protocol import tokens

    settings = _settings(options["config_file"])
    if not role.strip():
        raise Misused("ROLE must not be empty")
    claims: dict[str, Any] = {settings.tokenAuthClaim: role}
    try:
        if expires is not None:
            claims["exp"] = end_of(expires, time.time())
        audience = audience or settings.tokenAudience
        if audience:
            claims[settings.tokenAudienceClaim or "aud"] = audience
        key, algorithm, named = _signing(settings, options["key"], options["private_key"], options["algorithm"])
        made = tokens.create(claims, key, algorithm, {})
    except ValueError as error:
        raise Misused(str(error)) from None
    if file is not None:
        write(file, made.encode() + b"\n")
    if output != "table":
        shown = {"role": role, "expires": claims.get("exp"), "algorithm": algorithm, "key": named}
        print_document({"token": made, **shown} if file is None else {"file": file, **shown}, output)
        return
    if file is None:
        click.echo(made)
    notify(f"token for {role}{f' in {file}' if file else ''}, signed with {named}; it {_until(claims.get('exp'))}")


def _signing(
    settings: "Settings", secret: str | None, private: str | None, algorithm: str | None
) -> tuple[Any, str, str]:
    """Return the signing key, its algorithm and its source. Raises Misused, ValueError."""
    from pulsarbox.config.secret_source import read_from
    from pulsarbox.protocol import tokens

    if private is not None:
        if secret is not None:
            raise Misused("--key and --private-key cannot be combined")
        key = tokens.private_key(read_from(private))
        fitting = tokens.public_algorithms(key.public_key())
        if algorithm is not None and algorithm not in fitting:
            raise Misused(f"--algorithm: the key supports only {', '.join(fitting)}")
        return key, algorithm or fitting[0], private
    if algorithm is not None:
        raise Misused("--algorithm requires --private-key: the length of a secret key determines its algorithm")
    if secret is None and not settings.tokenSecretKey and settings.tokenPublicKey:
        raise Misused("the configuration has only a public key: specify its private key with --private-key")
    named = secret or settings.tokenSecretKey or str(_own_key())
    _make_where_missing(named)
    found = read_from(named)
    return found, tokens.secret_algorithms(found)[-1], _place(settings, named)


def _own_key() -> Path:
    from pulsarbox.cli.connect import context_store

    return context_store.path().with_name("token.key")


def _make_where_missing(named: str) -> None:
    """Create a secret key if ``named`` is a missing file."""
    from pulsarbox.config.secret_source import path_of
    from pulsarbox.protocol.tokens import SECRET_SIZES

    path = path_of(named)
    if path is None and not named.startswith(("data:", "env:")) and not _is_base64(named):
        path = Path(named)
    if path is None or path.exists():
        return
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write(path, secrets.token_bytes(SECRET_SIZES["HS256"]), replace=False)
    except FileExistsError:
        return  # another process created it
    except OSError as error:
        raise Misused(f"{path}: {error.strerror}") from None
    notify(f"created the secret key {path}; set tokenSecretKey to it on each box that accepts these tokens")


def _is_base64(named: str) -> bool:
    from pulsarbox.config.secret_source import read_from

    try:
        return len(read_from(named)) >= 32
    except ValueError:
        return False


def _place(settings: "Settings", named: str) -> str:
    from pulsarbox.config import settings_by_name

    return str(settings_by_name()["tokenSecretKey"].shown(named))


@token.command()
@token_options
@OUTPUT
def show(token: str | None, from_stdin: bool, token_file: str | None, output: str) -> None:
    """Print the claims of a token, by default $PULSARBOX_TOKEN, without verifying its signature.

    \b
    Examples:
      pulsarbox token show -f ann.token
      pulsarbox token show --stdin -o json < ann.token
    """
    run(_show, token, from_stdin, token_file, output)


def _show(token: str | None, from_stdin: bool, token_file: str | None, output: str) -> None:
    from pulsarbox.protocol.tokens import content

    try:
        header, claims = map(json.loads, content(_token_of(token, from_stdin, token_file)))
    except ValueError as error:
        raise Misused(str(error)) from None
    if not isinstance(header, dict) or not isinstance(claims, dict):
        raise Misused("invalid token: header or claims are not a JSON object")
    if output != "table":
        print_document({"header": header, "claims": claims}, output)
        return
    for name, value in {"algorithm": header.get("alg"), **claims}.items():
        text = f"{value}, {_when(value)}" if name in ("exp", "nbf", "iat") else value
        click.echo(clean(f"{name:<10} {text}"))


@token.command()
@token_options
@_KEY
@click.option("--public-key", metavar="FILE", help="Verify with this public key.")
@CONFIG
@OUTPUT
def validate(token: str | None, from_stdin: bool, token_file: str | None, output: str, **options: Any) -> None:
    """Validate a token, by default $PULSARBOX_TOKEN, and print its role.

    Checks signature, validity period, audience and issuer as a box with this configuration does.

    \b
    Exit codes:
      0  valid
      1  invalid
      2  the configuration has no key, or an option is invalid
    \b
    Examples:
      pulsarbox token validate -f ann.token
      pulsarbox token validate -f ann.token --public-key public.key -o json
    """
    run(_validate, token, from_stdin, token_file, output, **options)


def _validate(token: str | None, from_stdin: bool, token_file: str | None, output: str, **options: Any) -> None:
    from dataclasses import replace

    from pulsarbox.broker.security.provider import Refused
    from pulsarbox.config import ConfigError
    from pulsarbox.server.security.configured import token_provider
    from pulsarbox.server.security.credential_files import CredentialFiles

    text = _token_of(token, from_stdin, token_file)
    settings = _settings(options["config_file"])
    if options["key"] is not None or options["public_key"] is not None:
        secret, public = options["key"] or "", options["public_key"] or ""
        settings = replace(settings, tokenJwksFile="", tokenSecretKey=secret, tokenPublicKey=public)
    elif not (settings.tokenSecretKey or settings.tokenPublicKey or settings.tokenJwksFile) and _own_key().exists():
        settings = replace(settings, tokenSecretKey=str(_own_key()))
    try:
        found = token_provider(settings, CredentialFiles()).authenticate(
            text.strip().encode(), "", int(time.time() * 1000)
        )
    except ConfigError as error:
        raise Misused(str(error)) from None
    except Refused as error:
        raise Failed(str(error)) from None
    expires = None if found.expires is None else found.expires // 1000
    if output != "table":
        print_document({"role": found.role, "expires": expires}, output)
    else:
        click.echo(clean(f"{found.role}, {_until(expires)}"))


def _token_of(token: str | None, from_stdin: bool, token_file: str | None) -> str:
    from pulsarbox.cli.connect.credentials import TOKEN_VARIABLE

    return read_token(token, from_stdin, token_file, TOKEN_VARIABLE).strip().removeprefix("token:")


def _settings(config_file: Path | None) -> "Settings":
    from pulsarbox.cli.process.setting_options import loaded_or_exit

    return loaded_or_exit(config_file, {}).settings


def _until(expires: Any) -> str:
    return "does not expire" if expires is None else f"expires {_when(expires)}"


def _when(at: Any) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (TypeError, ValueError, OverflowError, OSError):
        return "which is not a valid time"
