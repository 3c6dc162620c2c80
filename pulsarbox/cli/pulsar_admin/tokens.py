"""``pulsarbox admin tokens``: keys and tokens, compatible with ``pulsar tokens``. Needs no broker."""

import base64
import secrets
import sys
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from pulsarbox.cli.common.exits import Failed, Misused
from pulsarbox.cli.common.lazy_group import SuggestingGroup
from pulsarbox.cli.common.terminal_text import clean
from pulsarbox.cli.connect.token_files import read_token, token_options, write
from pulsarbox.cli.pulsar_admin.values import end_of, pair

_SECRETS: Final = ("HS256", "HS384", "HS512")
_PAIRS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
_F = TypeVar("_F", bound=Callable[..., Any])
_HELP: Final = {"help_option_names": ["-h", "--help"]}


@click.group(cls=SuggestingGroup, context_settings=_HELP)
def tokens() -> None:
    """Create, show and validate keys and tokens (JWT).

    A key is a file name, file:///path, data:;base64,..., or base64 text.

    \b
    Examples:
      pulsarbox admin tokens create-secret-key --output secret.key
      pulsarbox admin tokens create --secret-key file:///etc/secret.key --subject ann --expiry-time 30d
      pulsarbox admin tokens show -f ann.token
    """


def _algorithm(names: tuple[str, ...], default: str) -> Callable[[_F], _F]:
    return click.option(
        "-a", "--signature-algorithm", "algorithm", type=click.Choice(names), default=default, show_default=True,
        help="Signature algorithm.",
    )  # fmt: skip


@tokens.command("create-secret-key")
@_algorithm(_SECRETS, "HS256")
@click.option("-o", "--output", metavar="FILE", help="Write the key to FILE, readable only by its owner.")
@click.option("-b", "--base64", "encoded", is_flag=True, help="Encode the key in base64.")
def create_secret_key(algorithm: str, output: str | None, encoded: bool) -> None:
    """Create a secret key, used both to sign and to verify.

    \b
    Examples:
      pulsarbox admin tokens create-secret-key --output secret.key
    """
    from pulsarbox.protocol.tokens import SECRET_SIZES

    key = secrets.token_bytes(SECRET_SIZES[algorithm])
    data = base64.b64encode(key) if encoded else key
    if output is None:
        sys.stdout.buffer.write(data)
    else:
        write(output, data)


@tokens.command("create-key-pair")
@_algorithm(_PAIRS, "RS256")
@click.option("--output-private-key", "private", metavar="FILE", required=True, help="Private key file.")
@click.option("--output-public-key", "public", metavar="FILE", required=True, help="Public key file.")
def create_key_pair(algorithm: str, private: str, public: str) -> None:
    """Create a key pair: a private key to sign and a public key to verify.

    \b
    Examples:
      pulsarbox admin tokens create-key-pair --output-private-key private.key --output-public-key public.key
    """
    from pulsarbox.protocol.tokens import new_pair

    signing, checking = new_pair(algorithm)
    write(private, signing)
    write(public, checking, mode=0o644)


@tokens.command("create")
@_algorithm(_PAIRS, "RS256")
@click.option("-s", "--subject", metavar="ROLE", required=True, help="Role of the token.")
@click.option("-e", "--expiry-time", "expiry", metavar="TIME", help="Lifetime: 1h, 3d, 10y. [default: no expiry]")
@click.option("-sk", "--secret-key", "secret", metavar="KEY", help="Sign with this secret key.")
@click.option("-pk", "--private-key", "private", metavar="KEY", help="Sign with this private key.")
@click.option("-hs", "--headers", metavar="K=V", multiple=True, help="Additional token header; repeatable.")
def create(
    algorithm: str, subject: str, expiry: str | None, secret: str | None, private: str | None, headers: tuple[str, ...]
) -> None:
    """Create a token for a role.

    \b
    Examples:
      pulsarbox admin tokens create --secret-key secret.key --subject ann --expiry-time 30d
    """
    from pulsarbox.config.secret_source import read_from
    from pulsarbox.protocol import tokens as jwt

    claims: dict[str, Any] = {"sub": subject}
    key: Any
    try:
        if expiry is not None:
            claims["exp"] = end_of(expiry, time.time())
        more = dict(map(pair, headers))
        if _one_of(secret, private, "--private-key"):
            key = read_from(secret or "")
            algorithm = jwt.secret_algorithms(key)[-1]
        else:
            key = jwt.private_key(read_from(private or ""))
        click.echo(jwt.create(claims, key, algorithm, more))
    except ValueError as error:
        raise Misused(str(error)) from None


@tokens.command("show")
@token_options
def show(token: str | None, from_stdin: bool, token_file: str | None) -> None:
    """Print header and claims of a token, by default $TOKEN, without verifying its signature.

    \b
    Examples:
      pulsarbox admin tokens show -f ann.token
    """
    from pulsarbox.protocol.tokens import content

    try:
        header, claims = content(read_token(token, from_stdin, token_file, "TOKEN"))
    except ValueError as error:
        raise Misused(str(error)) from None
    click.echo(f"{clean(header)}\n---\n{clean(claims)}")


@tokens.command("validate")
@_algorithm(_PAIRS, "RS256")
@click.option("-sk", "--secret-key", "secret", metavar="KEY", help="Verify with this secret key.")
@click.option("-pk", "--public-key", "public", metavar="KEY", help="Verify with this public key.")
@token_options
def validate(
    algorithm: str, secret: str | None, public: str | None, token: str | None, from_stdin: bool, token_file: str | None
) -> None:
    """Validate the signature and lifetime of a token, by default $TOKEN, and print its claims.

    \b
    Exit codes:
      0  valid
      1  invalid
    \b
    Examples:
      pulsarbox admin tokens validate --secret-key secret.key -f ann.token
    """
    import json

    from pulsarbox.config.secret_source import read_from
    from pulsarbox.protocol import tokens as jwt

    text = read_token(token, from_stdin, token_file, "TOKEN").strip()
    key: Any
    try:
        if _one_of(secret, public, "--public-key"):
            key = read_from(secret or "")
            algorithms = jwt.secret_algorithms(key)
        else:
            key = jwt.public_key(read_from(public or ""))
            algorithms = [algorithm]
    except ValueError as error:
        raise Misused(str(error)) from None
    try:
        claims = jwt.validated(text, key, algorithms, time.time())
    except jwt.TokenError as error:
        raise Failed(str(error)) from None
    click.echo(json.dumps(claims, ensure_ascii=False))


def _one_of(secret: str | None, other: str | None, option: str) -> bool:
    """Return whether the secret key is given, rather than the other. Raises Misused for both or none."""
    if (secret is None) == (other is None):
        raise Misused(f"specify exactly one of --secret-key and {option}")
    return secret is not None
