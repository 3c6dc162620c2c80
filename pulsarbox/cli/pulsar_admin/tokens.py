"""``pulsarbox admin tokens``: keys and tokens, as ``pulsar tokens`` makes them. No broker is asked."""

import base64
import secrets
import sys
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from pulsarbox.cli.common.exits import Failed, Misused
from pulsarbox.cli.common.lazy_group import Group
from pulsarbox.cli.common.terminal_text import clean
from pulsarbox.cli.connect.token_files import given_token, read_token, write
from pulsarbox.cli.pulsar_admin.values import end_of, pair

_SECRETS: Final = ("HS256", "HS384", "HS512")
_PAIRS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
_F = TypeVar("_F", bound=Callable[..., Any])
_HELP: Final = {"help_option_names": ["-h", "--help"]}


@click.group(cls=Group, context_settings=_HELP)
def tokens() -> None:
    """Keys and tokens (JWT) for authentication.

    A key is named by a file, file:///path, data:;base64,... or is given in base64.

    \b
    Examples:
      pulsarbox admin tokens create-secret-key --output secret.key
      pulsarbox admin tokens create --secret-key file:///etc/secret.key --subject ann --expiry-time 30d
      pulsarbox admin tokens show -f ann.token
    """


def _algorithm(names: tuple[str, ...], default: str) -> Callable[[_F], _F]:
    return click.option(
        "-a", "--signature-algorithm", "algorithm", type=click.Choice(names), default=default, show_default=True,
        help="The algorithm of the signature.",
    )  # fmt: skip


@tokens.command("create-secret-key")
@_algorithm(_SECRETS, "HS256")
@click.option("-o", "--output", metavar="FILE", help="Write the key to a file that only its owner can read.")
@click.option("-b", "--base64", "encoded", is_flag=True, help="Write it in base64.")
def create_secret_key(algorithm: str, output: str | None, encoded: bool) -> None:
    """Make a secret key, for signing and for checking.

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
@click.option("--output-private-key", "private", metavar="FILE", required=True, help="Where the private key goes.")
@click.option("--output-public-key", "public", metavar="FILE", required=True, help="Where the public key goes.")
def create_key_pair(algorithm: str, private: str, public: str) -> None:
    """Make a pair of keys: the private one signs, the public one checks.

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
@click.option("-s", "--subject", metavar="ROLE", required=True, help="The role that the token is for.")
@click.option("-e", "--expiry-time", "expiry", metavar="TIME", help="When it expires, from now: 1h, 3d, 10y. [never]")
@click.option("-sk", "--secret-key", "secret", metavar="KEY", help="Sign with this secret key.")
@click.option("-pk", "--private-key", "private", metavar="KEY", help="Sign with this private key.")
@click.option("-hs", "--headers", metavar="K=V", multiple=True, help="One more header of the token; repeatable.")
def create(
    algorithm: str, subject: str, expiry: str | None, secret: str | None, private: str | None, headers: tuple[str, ...]
) -> None:
    """Make a token for a role.

    \b
    Examples:
      pulsarbox admin tokens create --secret-key secret.key --subject ann --expiry-time 30d
    """
    from pulsarbox.protocol import tokens as jwt

    claims: dict[str, Any] = {"sub": subject}
    key: Any
    try:
        if expiry is not None:
            claims["exp"] = end_of(expiry, time.time())
        more = dict(map(pair, headers))
        if _one_of(secret, private, "--private-key"):
            key = jwt.key_bytes(secret or "")
            algorithm = jwt.secret_algorithms(key)[-1]
        else:
            key = jwt.private_key(jwt.key_bytes(private or ""))
        click.echo(jwt.create(claims, key, algorithm, more))
    except ValueError as error:
        raise Misused(str(error)) from None


@tokens.command("show")
@given_token
def show(token: str | None, from_stdin: bool, token_file: str | None) -> None:
    """Print header and claims of a token, whoever signed it. Without one, that of $TOKEN.

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
@click.option("-sk", "--secret-key", "secret", metavar="KEY", help="Check with this secret key.")
@click.option("-pk", "--public-key", "public", metavar="KEY", help="Check with this public key.")
@given_token
def validate(
    algorithm: str, secret: str | None, public: str | None, token: str | None, from_stdin: bool, token_file: str | None
) -> None:
    """Check the signature and the time of a token, and print its claims. Without one, that of $TOKEN.

    \b
    Exit codes:
      0  it is valid
      1  it is not
    \b
    Examples:
      pulsarbox admin tokens validate --secret-key secret.key -f ann.token
    """
    import json

    from pulsarbox.protocol import tokens as jwt

    text = read_token(token, from_stdin, token_file, "TOKEN").strip()
    key: Any
    try:
        if _one_of(secret, public, "--public-key"):
            key = jwt.key_bytes(secret or "")
            algorithms = jwt.secret_algorithms(key)
        else:
            key = jwt.public_key(jwt.key_bytes(public or ""))
            algorithms = [algorithm]
    except ValueError as error:
        raise Misused(str(error)) from None
    try:
        claims = jwt.validated(text, key, algorithms, time.time())
    except jwt.TokenError as error:
        raise Failed(str(error)) from None
    click.echo(json.dumps(claims, ensure_ascii=False))


def _one_of(secret: str | None, other: str | None, option: str) -> bool:
    """Whether it is the secret key of the two. Raises Misused."""
    if (secret is None) == (other is None):
        raise Misused(f"give one of --secret-key and {option}")
    return secret is not None
